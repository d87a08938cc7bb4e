"""Samples: a seed selects the same part of the requested size, and invalid samples are errors."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bloomcli
from bloomcli.commands.sampling import chosen, chosen_files, share
from bloomcli.errors import UsageError

NAMES = [f"part-{i:05}.parquet" for i in range(1000)]


@pytest.mark.parametrize(
    ("text", "total", "expected"),
    [
        ("5%", 1000, 50),
        ("5%", 1, 1),
        ("0.1%", 10, 1),
        ("100%", 7, 7),
        ("33.3%", 3, 1),
        ("50%", 3, 2),
        ("10%", 30, 3),
        ("200", 1000, 200),
        ("200", 7, 7),
        (" 1 ", 7, 1),
    ],
)
def test_a_share_is_rounded_up_and_never_nothing(text: str, total: int, expected: int) -> None:
    assert share(text).of(total) == expected


@pytest.mark.parametrize("text", ["", "0", "0%", "-1", "101%", "1.5", "5 %", "five", "nan%", "1e3", "٣"])
def test_what_is_no_sample_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid sample") as caught:
        share(text)
    assert "5%" in str(caught.value.hint)


def test_the_same_seed_takes_the_same_files_in_whatever_order_they_are_listed() -> None:
    taken = {NAMES[i] for i in chosen(NAMES, share("10%"), 7)}
    turned = NAMES[::-1]
    assert {turned[i] for i in chosen(turned, share("10%"), 7)} == taken
    assert len(taken) == 100
    assert {NAMES[i] for i in chosen(NAMES, share("10%"), 8)} != taken


def test_a_new_file_changes_little_of_the_sample() -> None:
    before = {NAMES[i] for i in chosen(NAMES, share("100"), 1)}
    more = [*NAMES, "part-new.parquet"]
    after = {more[i] for i in chosen(more, share("100"), 1)}
    assert len(before & after) >= 99


@given(st.lists(st.text(max_size=5), min_size=1, max_size=30), st.integers(1, 40), st.integers(-(2**63), 2**63 - 1))
def test_a_sample_has_its_size_regardless_of_the_names_and_the_seed(names: list[str], number: int, seed: int) -> None:
    taken = chosen(names, share(str(number)), seed)
    assert len(taken) == min(number, len(names))
    assert taken <= set(range(len(names)))


def test_every_file_is_taken_by_some_seed() -> None:
    seen: set[int] = set()
    for seed in range(200):
        seen |= chosen(NAMES[:50], share("10%"), seed)
    assert seen == set(range(50))


# --- files of other kinds


def drawn(text: str, sure: list[bool], known: list[bool], seed: int) -> tuple[set[int], int]:
    """The files in a sample, and the number of files that were opened to select them."""
    opened: list[int] = []

    def is_known(position: int) -> bool:
        opened.append(position)
        return known[position]

    names = [f"f{i}" for i in range(len(sure))]
    return chosen_files(names, share(text), seed, sure=sure, known=is_known), len(opened)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("text", ["1", "3", "1%", "50%"])
def test_a_sample_takes_files_of_a_known_format_where_there_are_some(text: str, seed: int) -> None:
    known = [i % 10 == 0 for i in range(30)]
    for sure in (known, [False] * 30, [i == 0 for i in range(30)]):
        taken, _ = drawn(text, sure, known, seed)
        wanted = {"1": 1, "3": 3}.get(text)
        found = sum(known[i] for i in taken)
        assert found == wanted if wanted else found >= 1


def test_files_are_opened_only_if_nothing_else_shows_their_format() -> None:
    everything = [True] * 100
    assert drawn("20", everything, everything, 1) == (chosen([f"f{i}" for i in range(100)], share("20"), 1), 0)
    assert drawn("20%", [i < 50 for i in range(100)], everything, 1)[1] == 0
    assert drawn("20", [False] * 100, everything, 1)[1] == 20
    taken, opened = drawn("20%", [False] * 100, everything, 1)
    assert (len(taken), opened) == (20, 1)
    assert drawn("1", [False] * 100, [False] * 100, 1) == (set(range(100)), 100), "none is of a known format"


@pytest.mark.parametrize("text", ["100%", "100"])
def test_all_is_all(text: str) -> None:
    assert drawn(text, [i < 3 for i in range(9)], [i < 5 for i in range(9)], 4)[0] == set(range(9))


def test_a_sample_may_be_a_number_in_python(fixtures: Path) -> None:
    path, number = fixtures / "parquet" / "orders.parquet", cast("str", 1)  # "5% or a number"
    assert bloomcli.validate(path, deep=True, sample_row_groups=number).row_groups_read == 1
    assert bloomcli.gate(path, deep=True, sample_row_groups=number).row_groups_read == 1
    assert share(7) == share("7")
