"""Compares the chosen filters with all possible choices, in small cases."""

from __future__ import annotations

import random
from itertools import product

import pytest

from bloomcli.advice.budget import Choice, Size, approximate, choose, exact

SEEDS = range(300)


def small_case(seed: int) -> tuple[list[list[Size]], float]:
    """Up to 4 columns with up to 4 sizes, as filters have them (larger ones gain more) or at random; and a budget."""
    rng = random.Random(seed)
    columns = []
    for _ in range(rng.randint(1, 4)):
        count = rng.randint(1, 4)
        if rng.random() < 0.5:
            first, best = 2 ** rng.randint(5, 12), rng.uniform(0, 1e6)
            sizes = [Size(first << n, best * (1 - rng.uniform(0.2, 0.6) ** (n + 1))) for n in range(count)]
        else:
            sizes = [Size(rng.randint(1, 1000), rng.uniform(-100, 1000)) for _ in range(count)]
        rng.shuffle(sizes)
        columns.append(sizes)
    whole = sum(max(size.nbytes for size in sizes) for sizes in columns)
    return columns, rng.uniform(0, 1.1) * whole


def best_of_all(columns: list[list[Size]], budget: float) -> float:
    """The gain of the best of all choices."""
    gains = []
    for sizes in product(*([None, *sizes] for sizes in columns)):
        taken = [size for size in sizes if size is not None]
        if sum(size.nbytes for size in taken) <= budget:
            gains.append(sum(size.gain for size in taken))
    return max(gains)


def assert_adds_up(choice: Choice, columns: list[list[Size]], budget: float) -> None:
    taken = [sizes[at] for sizes, at in zip(columns, choice.sizes, strict=True) if at is not None]
    assert choice.nbytes == pytest.approx(sum(size.nbytes for size in taken))
    assert choice.gain == pytest.approx(sum(size.gain for size in taken))
    assert choice.nbytes <= budget * (1 + 1e-9)


def test_the_exact_choice_is_the_best_of_all_choices_and_says_so() -> None:
    for columns, budget in map(small_case, SEEDS):
        choice = choose(columns, budget)
        assert_adds_up(choice, columns, budget)
        assert choice.gain == pytest.approx(best_of_all(columns, budget)), (columns, budget)
        assert (choice.bound, choice.gap) == (choice.gain, 0)


def test_the_approximate_choice_gains_half_of_the_best_at_least_and_in_most_small_cases_all_of_it() -> None:
    gains = []
    for columns, budget in map(small_case, SEEDS):
        choice, best = approximate(columns, budget), best_of_all(columns, budget)
        assert_adds_up(choice, columns, budget)
        assert choice.gain <= best * (1 + 1e-9) + 1e-9, (columns, budget)
        assert best <= choice.bound * (1 + 1e-9) + 1e-9, (columns, budget)
        assert choice.bound <= 2 * choice.gain * (1 + 1e-9) + 1e-9, (columns, budget)
        gains.append((choice.gain, best))
    assert sum(gain >= best * (1 - 1e-9) for gain, best in gains) >= 0.85 * len(gains)
    assert sum(gain for gain, _ in gains) >= 0.98 * sum(best for _, best in gains)


def test_the_bound_is_reached_where_every_size_fits_so_that_the_gap_is_none() -> None:
    columns = [[Size(10, 5), Size(20, 8)], [Size(5, 1)], [Size(30, -1)]]
    choice = approximate(columns, 25)
    assert choice == choose(columns, 25)
    assert choice.sizes == (1, 0, None)
    assert (choice.gain, choice.bound, choice.gap) == (9, 9, 0)


def test_a_hot_column_gets_a_large_filter_and_the_others_small_ones() -> None:
    """All columns have the same sizes; one is looked up a hundred times as often as the others."""
    sizes = [Size(1024, 0.5), Size(2048, 0.8), Size(4096, 0.95), Size(8192, 0.99)]
    columns = [[Size(nbytes, gain * weight) for nbytes, gain in sizes] for weight in (100, 1, 1)]
    assert choose(columns, 10240).sizes == (3, 0, 0)
    assert choose(columns, 8192).sizes == (3, None, None)
    assert choose(columns, 1000).sizes == (None, None, None)


def test_a_step_that_does_not_fit_ends_its_column_only() -> None:
    columns = [[Size(10, 100), Size(1000, 1000)], [Size(20, 10)]]
    assert approximate(columns, 40).sizes == (0, 0)


def test_one_large_filter_is_chosen_where_small_ones_gain_more_per_byte_but_less() -> None:
    """Without this step, the choice could be worse than the best one by any factor."""
    choice = approximate([[Size(1, 2)], [Size(1000, 1000)]], 1000)
    assert choice.sizes == (None, 0)
    assert choice.gap == pytest.approx(1 / 1000, rel=0.1)


def test_a_size_off_the_hull_is_taken_where_it_fits_into_what_is_left() -> None:
    columns = [[Size(10, 10), Size(15, 11), Size(20, 19)]]
    assert approximate(columns, 16).sizes == choose(columns, 16).sizes == (1,)


@pytest.mark.parametrize("columns", [[], [[]], [[Size(8, 0)]], [[Size(8, -5)]]])
def test_nothing_is_chosen_where_nothing_gains(columns: list[list[Size]]) -> None:
    choice = choose(columns, 100)
    assert approximate(columns, 100) == choice
    assert set(choice.sizes) <= {None}
    assert (choice.nbytes, choice.gain, choice.bound, choice.gap) == (0, 0, 0, 0)


@pytest.mark.slow
def test_thousands_of_columns_take_a_moment() -> None:
    rng = random.Random(7)
    columns = [[Size(2.0**n, rng.random() * (1 - 0.4**n)) for n in range(5, 14)] for _ in range(3000)]
    assert exact(columns, 3e6) is None
    choice = choose(columns, 3e6)
    assert 0 < choice.gap < 0.001


def test_of_sizes_that_are_alike_but_for_rounding_the_first_is_chosen() -> None:
    columns = [[Size(64, 0.3), Size(64, 0.1 + 0.2), Size(128, 0.3)]]
    assert choose(columns, 200).sizes == (0,)
    assert choose([list(reversed(columns[0]))], 200).sizes == (1,)
