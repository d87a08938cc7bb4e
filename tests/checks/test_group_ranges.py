"""Places as text: what was put in comes back, in runs, and sets of them compare as sets do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli.checks import group_ranges

PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 12)))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((), ""), ((4,), "4"), ((0, 1, 2, 7, 3), "0-3,7"), ((5, 5), "5"), (range(100_000), "0-99999")],
)
def test_row_groups_that_follow_one_another_are_a_run(numbers: list[int], expected: str) -> None:
    assert group_ranges.of_numbers(numbers) == expected


def test_row_groups_of_stripes_stand_behind_their_stripe() -> None:
    assert group_ranges.of_units([(2, 1), (0, 0), (0, 1), (0, 3)]) == "0:0-1,3 2:1"
    assert group_ranges.of_units([(None, 1), (None, 0)]) == "0-1"


@pytest.mark.parametrize("text", ["", " ", "a", "-1", "1-", "2-1", "0,", "0:1:2", "0  1", "1 ", "٣", "9" * 19])
def test_what_names_no_places_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="names no row groups"):
        group_ranges.read(text)


@given(PAIRS, PAIRS)
def test_places_are_within_others_exactly_where_each_is_among_them(
    some: set[tuple[int, int]], others: set[tuple[int, int]]
) -> None:
    runs = [group_ranges.read(group_ranges.of_units(pairs)) if pairs else [] for pairs in (some, others)]
    assert group_ranges.within(*runs) is (some <= others)
    both = group_ranges.text([*runs[0], *runs[1]])
    assert both == group_ranges.of_units(some | others)


def test_a_run_costs_the_same_however_long_it_is() -> None:
    whole = group_ranges.read("0-999999999999999999")
    assert group_ranges.within(group_ranges.read("5,7-99999999999999"), whole)
