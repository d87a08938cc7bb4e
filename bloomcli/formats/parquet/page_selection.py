"""Selects the pages of a column chunk that can hold a value, by its column index and offset index.

A page is left out if its bounds exclude every value, or if it has only nulls; readers do the same. An index that
contradicts itself or the row group (`statistics.PageBounds`) isn't used: all pages are read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bloomcli.errors import BloomError
from bloomcli.formats.parquet import page_list
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, read_page
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

HasWithin = Callable[[Any, Any], bool]
"""Whether a value lies between two bounds, as `decode_bound` returns them; None for a bound that isn't known."""


class PagePlace(NamedTuple):
    """The location and the rows of a data page in the offset index."""

    offset: int
    length: int
    """The length including the header."""
    first_row: int
    """The position in the row group."""
    rows: int
    before: int
    """The bytes of the chunk before its first data page, which have its dictionary."""


class Selection(NamedTuple):
    """The pages that can hold a value."""

    pages: Sequence[PagePlace]
    left_out: int


def select(
    filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int, has_within: HasWithin | None
) -> Selection | None:
    """The pages of a chunk that may have one of some values; None without a usable index.

    Args:
        filters: the filters of the file.
        key, chunk: the chunk.
        rows: the number of rows of its row group.
        has_within: whether one of the values lies between a page's bounds; None: every page may have a value.
    """
    try:
        places = _places(filters, key, chunk, rows)
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
        if not (null or (has_within is not None and not has_within(*bounds)))
    ]
    return Selection(kept, len(places) - len(kept))


def pages_of(filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk in its offset index; None without a usable one."""
    try:
        return _places(filters, key, chunk, rows)
    except BloomError:
        return None


def pages_by_headers(source: Source, chunk: ColumnChunk, data_end: int, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk, from their headers instead of an offset index; None if they contradict the row group.

    The column must not be repeated: each value is a row.
    """
    try:
        reader = ChunkReader(source, chunk, data_end, HEADER_WINDOW)
        found: list[PagePlace] = []
        end, first = chunk.data_offset + chunk.compressed_bytes, 0
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
            before = found[0].before if found else at - chunk.data_offset
            found.append(PagePlace(at, length, first, count, before))
            first += count
    except BloomError:
        return None
    return found if first == rows == chunk.num_values else None


def dictionary_extent(chunk: ColumnChunk, places: Sequence[PagePlace]) -> tuple[int, int] | None:
    """The offset and length of the page that has to be read before these pages of a chunk: its dictionary; None
    without pages, and if the chunk begins with a data page."""
    return (chunk.data_offset, places[0].before) if places and places[0].before else None


def agree(source: Source, chunk: ColumnChunk, data_end: int, places: Sequence[PagePlace]) -> bool:
    """Whether the pages at these places have the length and the number of rows that the places say."""
    repeated = chunk.column.max_repetition_level > 0
    try:
        reader = ChunkReader(source, chunk, data_end)
        for place in places:
            reader.position, reader.window = place.offset, place.length if repeated else HEADER_WINDOW
            page = read_page(reader, lambda _: not repeated)  # levels are needed of repeated columns only
            if page is None or page.dictionary or page.end != place.offset + place.length:
                return False
            if page.rows(chunk.column) != place.rows:
                return False
    except BloomError:
        return False
    return True


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


def _places(filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int) -> list[PagePlace] | None:
    """The pages of a chunk's offset index in order; None without an index, or if it contradicts the chunk: pages that
    don't fill the chunk, pages without rows, first rows that don't ascend from 0. Raises CorruptFile.

    xitongsys/parquet-go's lengths leave out the page headers. A page's header is compared with the index before the
    page is read (`agree`). In a local file, where that costs no request, the last page's is compared here: first rows
    that don't count all rows of pages (those of nulls, for example) leave it too many.
    """
    numbers = page_list.page_locations(filters, key)
    if not numbers or any(not isinstance(n, int) for page in numbers for n in page):
        return None
    before, end = numbers[0][0] - chunk.data_offset, chunk.data_offset + chunk.compressed_bytes
    if before < 0 or numbers[0][2] != 0 or (chunk.dictionary_bytes or before) != before:
        return None
    ends = [first for _, _, first in numbers[1:]] + [rows]
    places = [
        PagePlace(offset, length, first, last - first, before)
        for (offset, length, first), last in zip(numbers, ends, strict=True)
    ]
    at = chunk.data_offset + before
    for place in places:
        if place.offset != at or place.length <= 0 or place.rows <= 0:
            return None
        at += place.length
    if at != end or (
        not filters.source.request_bytes and not agree(filters.source, chunk, filters.footer.start, places[-1:])
    ):
        return None
    return places
