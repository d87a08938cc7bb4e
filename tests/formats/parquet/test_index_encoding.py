"""Encoded page indexes are read back as they were meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support import thrift

from bloomcli import kernels
from bloomcli.formats.parquet.page_index import (
    IndexedPage,
    boundary_order,
    encoded_column_index,
    encoded_offset_index,
)

DEPTH, MOST = 32, 1_000_000

PAGES = st.lists(
    st.builds(IndexedPage, st.binary(max_size=9), st.binary(max_size=9), st.integers(0, 2**40), st.none())
    | st.builds(IndexedPage, st.none(), st.none(), st.integers(0, 9), st.none()),
    max_size=40,
)


@given(PAGES, st.integers(0, 2))
def test_a_column_index_is_read_back_by_both_decoders(pages: list[IndexedPage], order: int) -> None:
    data = encoded_column_index(pages, order)
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
    assert kernels.OffsetIndex(encoded_offset_index(places), DEPTH, MOST).page_locations == places


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
