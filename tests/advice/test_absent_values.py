"""Absent values resemble the column's values: most lie within the bounds of its row groups, like users' lookups."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from support.columns import column

from bloomcli.advice.absent_values import absent_values
from bloomcli.model.file import Column

UNITS = 4
ROWS = 300
COUNT = 100
TEXT = column("BYTE_ARRAY", "STRING")
BINARY = column("BYTE_ARRAY")
FIXED = column("FIXED_LEN_BYTE_ARRAY", type_length=16)


def _hex(chance: random.Random, number: int) -> str:
    return hashlib.md5(f"{number}{chance.random()}".encode()).hexdigest()


def _url(chance: random.Random, number: int) -> str:
    return f"https://example.com/{chance.choice(['shop', 'blog', 'help'])}/{number * 37 % 9973}.html"


def _comment(chance: random.Random, number: int) -> str:
    words = ["final", "deposits", "sleep", "quickly", "above", "the", "even", "packages", str(number)]
    return " ".join(chance.choice(words) for _ in range(6))


def _umlaut(chance: random.Random, number: int) -> str:
    return "".join(chance.choice("äöüßéabc") for _ in range(6)) + str(number)


FORMS: dict[str, tuple[Callable[[random.Random, int], Any], Column]] = {
    "hexadecimal trace ids": (_hex, TEXT),
    "URLs": (_url, TEXT),
    "comments": (_comment, TEXT),
    "numbered names": (lambda _, number: f"User {number}", TEXT),
    "texts that aren't ASCII": (_umlaut, TEXT),
    "binary": (lambda chance, _: chance.randbytes(9), BINARY),
    "fixed length": (lambda chance, _: chance.randbytes(16), FIXED),
}


def encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_most_absent_texts_lie_within_the_bounds_and_none_is_a_sampled_one(form: str, seed: int) -> None:
    make, typed = FORMS[form]
    chance = random.Random(seed)
    values = [encoded(make(chance, number)) for number in range(UNITS * ROWS)]
    chance.shuffle(values)
    units = [values[at * ROWS : (at + 1) * ROWS] for at in range(UNITS)]
    found = absent_values(units, typed, None, COUNT, seed)
    assert [len(group) for group in found] == [COUNT] * UNITS
    every = [value for group in found for value in group]
    assert not set(every) & set(values)
    within = [min(unit) <= value <= max(unit) for unit in units for value in every]
    assert sum(within) >= 0.9 * len(within)
    if form == "fixed length":
        assert {len(value) for value in every} == {16}
    elif typed is TEXT:
        assert all(value.decode() for value in every)


def test_a_text_that_all_rows_have_is_changed_as_well() -> None:
    found = absent_values([[b"constant"]] * 2, TEXT, None, COUNT, 1)
    assert all(value != b"constant" for group in found for value in group)


def test_the_same_seed_gives_the_same_texts_and_another_one_others() -> None:
    units = [[f"id-{number * 7919 % 100_000}".encode() for number in range(200)]]
    assert absent_values(units, TEXT, None, 9, 1) == absent_values(units, TEXT, None, 9, 1)
    assert absent_values(units, TEXT, None, 9, 1) != absent_values(units, TEXT, None, 9, 2)
