"""Cut bounds stay bounds, and encoded page indexes are read back as they were meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import thrift

from bloomcli import kernels
from bloomcli.formats.parquet.index_encoding import (
    BOUND_BYTES,
    IndexedPage,
    boundary_order,
    column_index,
    cut_high,
    cut_low,
    offset_index,
)

DEPTH, MOST = 32, 1_000_000
LONG_TEXTS = st.builds("".join, st.lists(st.text(min_size=1), min_size=20))
LONG_BYTES = st.builds(b"".join, st.lists(st.binary(min_size=1) | st.just(b"\xff" * 30), min_size=5))


@given(LONG_BYTES | st.binary())
def test_cut_bounds_of_bytes_leave_no_value_out(value: bytes) -> None:
    low, high = cut_low(value), cut_high(value)
    assert low <= value <= high
    assert len(low) <= BOUND_BYTES
    if len(value) <= BOUND_BYTES:
        assert low == high == value
    else:
        assert high == value or len(high) <= BOUND_BYTES + 1
        assert high.rstrip(b"\xff") or value[:BOUND_BYTES] == b"\xff" * BOUND_BYTES


@given(LONG_TEXTS | st.text())
def test_cut_bounds_of_text_are_text(text: str) -> None:
    value = text.encode()
    low, high = cut_low(value).decode(), cut_high(value).decode()
    assert low <= text <= high
    assert text.startswith(low)
    assert len(low.encode()) <= BOUND_BYTES
    if len(value) > BOUND_BYTES and high != text:
        assert not text.startswith(high)
        assert len(high) <= len(low)


@pytest.mark.parametrize(
    ("text", "high"),
    [
        ("a" * 63 + "\ud7ff" + "z" * 9, "a" * 62 + "b"),  # the character is cut off with its last bytes
        ("a" * 61 + "\ud7ff" + "z" * 9, "a" * 61 + "\ue000"),  # surrogates are no characters
        ("a" * 60 + "\U0010ffff" + "z" * 9, "a" * 59 + "b"),  # the last character has no successor
        ("\U0010ffff" * 20, "\U0010ffff" * 20),
        ("a" * 63 + "\x7f" + "z" * 9, "a" * 63 + "\x80"),  # the successor takes a byte more
    ],
)
def test_the_last_character_of_a_cut_maximum_is_increased(text: str, high: str) -> None:
    assert cut_high(text.encode()).decode() == high


PAGES = st.lists(
    st.builds(IndexedPage, st.binary(max_size=9), st.binary(max_size=9), st.integers(0, 2**40), st.none())
    | st.builds(IndexedPage, st.none(), st.none(), st.integers(0, 9), st.none()),
    max_size=40,
)


@given(PAGES, st.integers(0, 2))
def test_a_column_index_is_read_back_by_both_decoders(pages: list[IndexedPage], order: int) -> None:
    data = column_index(pages, order)
    found = kernels.ColumnIndex(data, DEPTH, MOST)
    assert found.null_pages == [page.low is None for page in pages]
    assert found.min_values == [page.low or b"" for page in pages]
    assert found.max_values == [page.high or b"" for page in pages]
    assert (found.boundary_order, found.null_counts) == (order, [page.nulls for page in pages])
    assert found.nan_counts is None or not pages
    tree, end = thrift.parse(data)
    assert end == len(data)
    assert tree[1][1].values == found.null_pages


@given(st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 2**31 - 1), st.integers(0, 2**60)), max_size=40))
def test_an_offset_index_is_read_back(places: list[tuple[int, int, int]]) -> None:
    assert kernels.OffsetIndex(offset_index(places), DEPTH, MOST).page_locations == places


@given(st.lists(st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_the_stated_order_is_true(bounds: list[tuple[int, int] | None]) -> None:
    pages = [
        IndexedPage(None, None) if one is None else IndexedPage(bytes([one[0]]), bytes([one[1]])) for one in bounds
    ]
    order = boundary_order(pages, lambda value: value)
    known = [one for one in bounds if one is not None]
    ascending, descending = (
        all(list(ends) == sorted(ends, reverse=falls) for ends in zip(*known, strict=True)) for falls in (False, True)
    )
    assert order == (1 if ascending else 2 if descending else 0)
