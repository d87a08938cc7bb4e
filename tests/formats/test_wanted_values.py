"""The values that `find` looks for as a column stores them: those between bounds, and those that pages may have."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from bloomcli.formats.arrays import binaries, int64s
from bloomcli.formats.wanted_values import WantedValues, wanted
from bloomcli.model.file import Column
from bloomcli.values.literals import decode_bound

INT64 = Column(path="n", index=0, physical="INT64")
INT32 = Column(path="n", index=0, physical="INT32")
TEXT = Column(path="s", index=0, physical="BYTE_ARRAY", logical="STRING")
DOUBLE = Column(path="d", index=0, physical="DOUBLE")
COUNTS = (3, 2000)
"""Values that are converted one by one, and in batches."""


def numbers(count: int) -> list[int]:
    return random.Random(count).sample(range(-5000, 5000), count)


def made(column: Column, values: Sequence[Any]) -> WantedValues:
    return wanted(
        binaries([str(value).encode() for value in values]), column, lambda literal: literal.encodings, "a file"
    )


def stored(column: Column, value: Any) -> bytes:
    """A value in PLAIN encoding, as statistics have it."""
    formats = {"INT64": "<q", "INT32": "<i", "DOUBLE": "<d"}
    return str(value).encode() if column is TEXT else struct.pack(formats[column.physical], value)


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("column", [INT64, INT32, TEXT, DOUBLE])
def test_values_between_bounds_are_those_that_compare_with_them(column: Column, count: int) -> None:
    values = numbers(count)
    found = made(column, values)
    order = (lambda value: str(value).encode()) if column is TEXT else int
    bounds = [*sorted(values, key=order)[:: max(count // 7, 1)], -9000, 9000]
    some = int64s(range(0, len(found.forms), 2))
    for positions in (found.every, some, found.every[:0]):
        for low in (None, *bounds):
            for high in (None, *bounds):
                low_key, high_key = (
                    None if bound is None else decode_bound(stored(column, bound), column) for bound in (low, high)
                )
                contradiction = low is not None and high is not None and order(low) > order(high)
                expected = [
                    at
                    for at in positions.to_pylist()
                    if contradiction
                    or (
                        (low is None or order(values[found.owners[at].as_py()]) >= order(low))
                        and (high is None or order(values[found.owners[at].as_py()]) <= order(high))
                    )
                ]
                assert found.within(positions, low_key, high_key).to_pylist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("column", [INT64, INT32, TEXT, DOUBLE])
def test_filters_of_both_sides_leave_all_values_that_are_equal_and_few_others(column: Column, count: int) -> None:
    values = numbers(count)
    found = made(column, values)
    kinds = {"INT64": pa.int64(), "INT32": pa.int32(), "DOUBLE": pa.float64()}
    every = [None if n % 11 == 0 else n for n in range(-9000, 9000)]
    page = (
        pa.array([None if n is None else str(n) for n in every]).cast(pa.large_binary())
        if column is TEXT
        else pa.array(every, kinds[column.physical])
    )
    page = page.view(pa.int64()) if column is DOUBLE else page
    likely = set(found.likely(page).to_pylist())
    equal = {at for at, n in enumerate(every) if n is not None and n in set(values)}
    assert equal <= likely
    assert len([at for at in likely - equal if every[at] is not None]) < 18_000 // 50
    left = page.take(int64s(sorted(likely)))
    forms = set(found.likely_forms([left, left[:0], pa.nulls(3, left.type)]).to_pylist())
    present = {at for at in range(len(found.forms)) if values[found.owners[at].as_py()] in every}
    assert present <= forms
    assert len(forms - present) < 20


def test_values_that_are_only_nulls_are_not_likely() -> None:
    found = made(INT64, numbers(2000))
    assert len(found.likely(pa.nulls(5, pa.int64()))) == 0
    assert len(found.likely_forms([pa.nulls(5, pa.int64())])) == 0


@pytest.mark.parametrize("count", COUNTS)
def test_the_texts_of_a_value_that_is_written_differently_are_known_by_its_first_form(count: int) -> None:
    values = ["1", "01", "1", "001", *map(str, range(2, count)), "7", "07", "7"]
    converted = made(INT64, values)
    forms = converted.forms.to_pylist()
    assert converted.sharing == {forms.index(1): [1, 3], forms.index(7): [len(values) - 2]}
    reals = made(DOUBLE, ["nan", "0", "-0.0", "NaN", "nan"])
    assert (reals.nan, reals.sharing) == (0, {0: [2], 2: [2], 4: [3]})
