"""The compiled kernels find the least and the greatest value in each order, as Python's comparisons do."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli import kernels
from bloomcli.formats.parquet.proof import SortingColumn, compared_rows
from bloomcli.formats.parquet.spec import varint

NUMBERS: Final[dict[str, tuple[int, str, Any]]] = {
    "int32": (kernels.SIGNED, "<i", st.integers(-(1 << 31), (1 << 31) - 1)),
    "int64": (kernels.SIGNED, "<q", st.integers(-(1 << 63), (1 << 63) - 1)),
    "uint32": (kernels.UNSIGNED, "<I", st.integers(0, (1 << 32) - 1)),
    "uint64": (kernels.UNSIGNED, "<Q", st.integers(0, (1 << 64) - 1)),
    "float16": (kernels.FLOATING, "<e", st.floats(width=16)),
    "float32": (kernels.FLOATING, "<f", st.floats(width=32)),
    "float64": (kernels.FLOATING, "<d", st.floats()),
    "boolean": (kernels.SIGNED, "<B", st.integers(0, 1)),
}


def total(value: float) -> tuple[float, float]:
    """A key in total order: -0.0 is less than 0.0."""
    return value, math.copysign(1, value)


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data(), tracked=st.booleans())
def test_numbers(kind: str, data: st.DataObject, tracked: bool) -> None:
    order, form, strategy = NUMBERS[kind]
    values: list[Any] = data.draw(st.lists(strategy, min_size=1, max_size=40))
    bounds = kernels.Bounds(order, struct.calcsize(form), tracked)
    cut = data.draw(st.integers(0, len(values)))
    for part in (values[:cut], values[cut:]):
        bounds.fixed(b"".join(struct.pack(form, value) for value in part), len(part))
    some = [value for value in values if value == value]
    assert bounds.nans == len(values) - len(some)
    if not some:
        assert bounds.least_and_greatest == (None, None)
        return
    found = [struct.unpack(form, bound or b"")[0] for bound in bounds.least_and_greatest]
    key: Callable[[Any], Any] = total if order == kernels.FLOATING else int
    assert [key(value) for value in found] == [key(min(some, key=key)), key(max(some, key=key))]
    if tracked:
        # zeros of either sign are equal in the order of rows
        assert (bounds.rises, bounds.falls) == (some == sorted(some), some == sorted(some, reverse=True))
    bounds.reset()
    assert (bounds.least_and_greatest, bounds.nans) == ((None, None), 0)


def two_complement(number: int, width: int) -> bytes:
    return number.to_bytes(width, "big", signed=True)


DECIMALS: Final = st.builds(
    lambda number, more: two_complement(number, (number.bit_length() + 8) // 8 + more),
    st.integers(-(1 << 70), 1 << 70),
    st.integers(0, 3),
)
BYTES: Final = st.builds(
    lambda head, tail: head + tail, st.sampled_from([b"", b"commonly", b"\xff" * 9]), st.binary(max_size=12)
)
ARRAYS: Final[dict[str, tuple[int, Any, Callable[[bytes], Any]]]] = {
    "bytes": (kernels.BYTEWISE, BYTES, bytes),
    "decimals": (kernels.DECIMAL, DECIMALS, lambda value: int.from_bytes(value, "big", signed=True)),
}


@pytest.mark.parametrize("kind", ARRAYS)
@given(data=st.data())
def test_byte_arrays_in_either_encoding(kind: str, data: st.DataObject) -> None:
    order, strategy, key = ARRAYS[kind]
    values: list[bytes] = data.draw(st.lists(strategy, min_size=1, max_size=30))
    plain = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    prefixed, sized = kernels.Bounds(order, 0, tracked=True), kernels.Bounds(order, 0, tracked=True)
    hashes = bytearray(8 * len(values))
    kernels.hash_plain_binary(b"ab" + plain, 2, True, hashes, len(values), len(values), False, prefixed)
    sized.sized(b"c" + b"".join(values), 1, struct.pack(f"<{len(values)}q", *map(len, values)), len(values))
    keys = [key(value) for value in values]
    for bounds in (prefixed, sized):
        low, high = bounds.least_and_greatest
        assert low is not None
        assert high is not None
        assert (key(low), key(high), bounds.size) == (min(keys), max(keys), sum(map(len, values)))
        assert (bounds.rises, bounds.falls) == (keys == sorted(keys), keys == sorted(keys, reverse=True))
    alone = kernels.Bounds(order, 0, tracked=True)
    alone.alone = True
    none = bytearray(8)
    done = kernels.hash_plain_binary(plain, 0, True, none, 1, len(values), False, alone)
    assert done == (len(values), 0, len(plain))
    assert (alone.least_and_greatest, alone.size) == (prefixed.least_and_greatest, prefixed.size)
    assert none == bytes(8)


def indices_of(numbers: Sequence[int]) -> bytes:
    """Indices of 8 bits: their width, and a bit-packed run."""
    groups = -(-len(numbers) // 8)
    return b"\x08" + varint(groups << 1 | 1) + bytes(numbers) + bytes(groups * 8 - len(numbers))


def test_timestamps_of_int96_are_in_the_order_of_days_then_nanoseconds() -> None:
    bounds = kernels.Bounds(kernels.INT96, 12)
    days = [(5, 2), (9, 1), (-1, 2), (0, -3)]
    bounds.fixed(b"".join(struct.pack("<qi", nanos, day) for nanos, day in days), 4)
    assert bounds.least_and_greatest == (struct.pack("<qi", 0, -3), struct.pack("<qi", 5, 2))


def test_what_is_beyond_the_bytes_is_refused() -> None:
    bounds = kernels.Bounds(kernels.BYTEWISE, 0)
    calls: list[Callable[[], object]] = [
        lambda: bounds.sized(b"abc", 0, struct.pack("<q", 4), 1),
        lambda: bounds.sized(b"abc", 0, struct.pack("<q", -1), 1),
        lambda: bounds.sized(b"abc", 0, b"", 1),
        lambda: kernels.Entries(bounds, 1).add(b"\5\0\0\0abc", 0, 1),
        lambda: kernels.Entries(bounds, 1).add(b"abc", 4, 1),
    ]
    for call in calls:
        with pytest.raises(kernels.PageError):
            call()
    for call in (
        lambda: kernels.Bounds(kernels.SIGNED, 3),
        lambda: kernels.Bounds(kernels.SIGNED, 8).fixed(b"abc", 1),
        lambda: kernels.Entries(bounds, 1).add(b"\0\0\0\0" * 2, 0, 2),
        lambda: kernels.Indices(1, bytearray(2), 2, kernels.Entries(bounds, 1)),
    ):
        with pytest.raises(ValueError):
            call()


def padded(order: int, value: Any) -> bytes:
    """The PLAIN bytes of an entry."""
    if isinstance(value, bytes):
        return len(value).to_bytes(4, "little") + value
    return struct.pack("<d" if order == kernels.FLOATING else "<q", value)


ENTRIES: Final[dict[str, tuple[int, int, Any, Callable[[Any], Any]]]] = {
    "numbers": (kernels.SIGNED, 8, st.integers(-5000, 5000), int),
    "reals": (kernels.FLOATING, 8, st.sampled_from([math.nan, -0.0, 0.0, math.inf, *range(300)]), total),
    "texts": (kernels.BYTEWISE, 0, st.binary(max_size=11).map(lambda end: b"https://example.org/" + end), bytes),
    "texts of any length": (kernels.BYTEWISE, 0, BYTES, bytes),
    "decimals": (kernels.DECIMAL, 0, DECIMALS, ARRAYS["decimals"][2]),
}


@pytest.mark.parametrize("count", [3, 1100])
@pytest.mark.parametrize("kind", ENTRIES)
@given(data=st.data())
def test_few_and_many_entries_are_measured_by_page(kind: str, count: int, data: st.DataObject) -> None:
    order, width, strategy, key = ENTRIES[kind]
    some = data.draw(st.lists(strategy, min_size=1, max_size=12))
    values = [some[at % len(some)] for at in range(count)]
    bounds = kernels.Bounds(order, width)
    entries, seen = kernels.Entries(bounds, count), bytearray(count)
    entries.add(b"".join(padded(order, value) for value in values), 0, count)
    pages = data.draw(st.lists(st.lists(st.integers(0, min(count, 256) - 1), min_size=1, max_size=40), max_size=3))
    for page in pages:
        twice = page + page * data.draw(st.sampled_from([0, 60]))  # more than are added at once
        kernels.Indices(len(twice), seen, count, entries).feed(indices_of(twice), 0, True)
        used = [values[at] for at in twice]
        compared = [value for value in used if value == value]
        assert bounds.nans == len(used) - len(compared)
        assert width or bounds.size == sum(map(len, used))
        low, high = bounds.least_and_greatest
        if width and low is not None and high is not None:
            form = "<d" if order == kernels.FLOATING else "<q"
            found = [struct.unpack(form, bound)[0] for bound in (low, high)]
        else:
            found = [low, high]
        expected = [min(compared, key=key), max(compared, key=key)] if compared else [None, None]
        assert [None if one is None else key(one) for one in found] == [
            None if one is None else key(one) for one in expected
        ]
        bounds.reset()
    assert {at for at, mark in enumerate(seen) if mark} == {at for page in pages for at in page}


VALUES: Final = st.none() | st.sampled_from([-1.0, -0.0, 0.0, 2.0, math.nan])


def order_of(rows: Sequence[float | None], cuts: Sequence[int], dictionary: bool) -> kernels.Bounds:
    """A column's `Bounds`, from pages that end at `cuts`."""
    bounds = kernels.Bounds(kernels.FLOATING, 8, tracked=True)
    entries = kernels.Entries(bounds, 5)
    known = [-1.0, -0.0, 0.0, 2.0, math.nan]
    entries.add(struct.pack("<5d", *known), 0, 5)
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        page = rows[start:end]
        values = [value for value in page if value is not None]
        if len(values) < len(page):
            bounds.nulls(bytes(value is not None for value in page))
        if dictionary:
            numbers = [next(at for at, one in enumerate(known) if str(one) == str(value)) for value in values]
            kernels.Indices(len(values), bytearray(5), 5, entries).feed(indices_of(numbers), 0, True)
        else:
            bounds.fixed(struct.pack(f"<{len(values)}d", *values), len(values))
        bounds.reset()
    return bounds


@given(st.data())
def test_rows_are_compared_as_the_sorting_columns_say(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.tuples(*[VALUES] * columns), max_size=40))
    if data.draw(st.booleans()):
        rows = sorted(rows, key=lambda row: [(one is None, -9 if one is None or one != one else one) for one in row])
    falling = data.draw(st.lists(st.booleans(), min_size=columns, max_size=columns))
    first = data.draw(st.lists(st.booleans(), min_size=columns, max_size=columns))
    orders = [
        order_of(
            [row[at] for row in rows],
            sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))),
            data.draw(st.booleans()),
        )
        for at in range(columns)
    ]
    assert [order.rows for order in orders] == [len(rows)] * columns
    proven = columns
    for above, below in pairwise(rows):
        for at, (a, b) in enumerate(zip(above, below, strict=True)):
            if a is None or b is None:
                wrong = (a is not b) and (b is None) == first[at]
                equal = a is b
            else:
                wrong, equal = (a < b if falling[at] else a > b), a == b
            if wrong:
                proven = min(proven, at)
            if wrong or not equal:
                break
    by = [SortingColumn(at, *flags, b"") for at, flags in enumerate(zip(falling, first, strict=True))]
    found, fault = compared_rows(orders, by, len(rows))
    assert (found, fault is None) == (proven, proven == columns)
