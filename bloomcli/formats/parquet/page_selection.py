"""Selects the pages of a column chunk that can hold a value, by its column index and offset index.

A page is left out if its bounds exclude every value, or if it has only nulls; readers do the same. An index that
contradicts itself or the row group (`contradictions.PageBounds`) isn't used: all pages are read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from bloomcli.errors import BloomError
from bloomcli.formats.parquet import page_list
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader
from bloomcli.model.file import ColumnChunk
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Source


class PagePlace(NamedTuple):
    """The location and the rows of a data page in the offset index."""

    offset: int
    length: int
    """The length including the header."""
    first_row: int
    """The position in the row group."""
    rows: int


class Selection(NamedTuple):
    """The pages that can hold a value."""

    pages: Sequence[PagePlace]
    left_out: int


def select(
    filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int, keys: Sequence[Any] | None
) -> Selection | None:
    """The pages of a chunk that may have one of some values; None without a usable index.

    Args:
        filters: the filters of the file.
        key, chunk: the chunk.
        rows: the number of rows of its row group.
        keys: the values as `decode_bound` returns them, in ascending order; None: every page may have a value.
    """
    try:
        places = _places(page_list.page_locations(filters, key), chunk, rows)
        index = page_list.column_tree(filters, key)
    except BloomError:
        return None
    if places is None:
        return None
    pages = page_list.page_bounds(filters, chunk, [place.rows for place in places], index)
    if pages.problem is not None:
        return None if index else Selection(places, 0)
    kept = [
        place
        for place, null, bounds in zip(places, pages.only_nulls, pages.bounds, strict=True)
        if not (null or (keys is not None and _excludes(bounds, keys)))
    ]
    return Selection(kept, len(places) - len(kept))


def pages_of(filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk in its offset index; None without a usable one."""
    try:
        return _places(page_list.page_locations(filters, key), chunk, rows)
    except BloomError:
        return None


def pages_by_headers(source: Source, chunk: ColumnChunk, data_end: int, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk, from their headers instead of an offset index; None if they contradict the row group.

    The column must not be repeated: each value is a row.
    """
    try:
        reader = ChunkReader(source, chunk, data_end, HEADER_WINDOW)
        end, first, found = chunk.data_offset + chunk.compressed_bytes, 0, []
        while reader.position < end:
            at, header = reader.position, reader.header()
            length = header.size + header.required("compressed_page_size")
            if length < header.size or length > end - at:
                return None
            reader.position = at + length
            if header.kind == "DICTIONARY_PAGE" and at > chunk.data_offset:  # a second one: which one applies?
                return None
            if header.kind == "DICTIONARY_PAGE" or header.head_field is None:
                continue
            count = header.required_of_head("num_values") if header.has_head else -1  # the type is damaged
            if count < 0:
                return None
            found.append(PagePlace(at, length, first, count))
            first += count
    except BloomError:
        return None
    return found if first == rows == chunk.num_values else None


def with_rows(pages: Sequence[PagePlace], rows: Sequence[int]) -> list[PagePlace]:
    """The pages with any of these rows, which ascend."""
    found = []
    for page in pages:
        at = bisect_left(rows, page.first_row)
        if at < len(rows) and rows[at] < page.first_row + page.rows:
            found.append(page)
    return found


def with_ranges(pages: Sequence[PagePlace], rows: Sequence[range]) -> list[PagePlace]:
    """The pages with rows of any of these ranges, which ascend and don't overlap."""
    found, at = [], 0
    for page in pages:
        while at < len(rows) and rows[at].stop <= page.first_row:
            at += 1
        if at < len(rows) and rows[at].start < page.first_row + page.rows:
            found.append(page)
    return found


def worth(pages: Sequence[PagePlace], chunk: ColumnChunk) -> bool:
    """Whether reading these pages one by one pays: they have less than half of the chunk's bytes."""
    return 2 * sum(page.length for page in pages) < chunk.compressed_bytes


def _places(numbers: Sequence[tuple[Any, Any, Any]], chunk: ColumnChunk, rows: int) -> list[PagePlace] | None:
    """The pages in order; None if they don't lie within the chunk, or don't share the row group's rows."""
    if not numbers or any(not isinstance(n, int) for page in numbers for n in page):
        return None
    if numbers[0][2] != 0:
        return None
    ends = [first for _, _, first in numbers[1:]] + [rows]
    places = [
        PagePlace(offset, length, first, end - first)
        for (offset, length, first), end in zip(numbers, ends, strict=True)
    ]
    at = chunk.data_offset
    for place in places:
        if place.offset < at or place.length <= 0 or place.rows <= 0:
            return None
        at = place.offset + place.length
    return places if at <= chunk.data_offset + chunk.compressed_bytes else None


def _excludes(bounds: tuple[Any, Any], keys: Sequence[Any]) -> bool:
    """Whether the bounds of a page exclude all values."""
    least, most = bounds
    at = 0 if least is None else bisect_left(keys, least)
    return at == len(keys) or (most is not None and bool(keys[at] > most))
