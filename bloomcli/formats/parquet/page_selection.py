"""The pages of a column chunk that can hold a value, by its column index and offset index.

A page is left out where its bounds exclude every value, or where it has only nulls: readers leave it out, too. An
index that contradicts itself or the row group isn't used. Bounds of which the lower is above the upper tell nothing.
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
from bloomcli.values.literals import decode_bound


class PagePlace(NamedTuple):
    """A data page, by the offset index."""

    offset: int
    length: int
    """With its header."""
    first_row: int
    """In the row group."""
    rows: int


class Selection(NamedTuple):
    """The pages that can hold a value."""

    pages: Sequence[PagePlace]
    left_out: int


def select(
    filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int, keys: Sequence[Any] | None
) -> Selection | None:
    """The pages of a chunk that may have one of some values; None where there is no index that can be used.

    Args:
        filters: of the file.
        key, chunk: the chunk.
        rows: of its row group.
        keys: of the values, as `decode_bound` gives them, in ascending order; None: every value may be anywhere.
    """
    try:
        places = _places(page_list.page_locations(filters, key), chunk, rows)
        columns = page_list.column_tree(filters, key)
    except BloomError:
        return None
    if places is None:
        return None
    ordered, _ = filters.footer.trusted_bounds(chunk.column)
    nulls, lows, highs = (columns.get(name, ()) for name in ("null_pages", "min_values", "max_values"))
    if not len(places) == len(nulls) == len(lows) == len(highs):
        return Selection(places, 0)
    kept = [
        place
        for place, null, low, high in zip(places, nulls, lows, highs, strict=True)
        if not (null or (ordered and keys is not None and _excludes(low, high, keys, chunk)))
    ]
    return Selection(kept, len(places) - len(kept))


def pages_of(filters: Filters, key: ChunkKey, chunk: ColumnChunk, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk by its offset index; None where there is none that can be used."""
    try:
        return _places(page_list.page_locations(filters, key), chunk, rows)
    except BloomError:
        return None


def walked(source: Source, chunk: ColumnChunk, data_end: int, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk by their headers, without an offset index; None where these contradict the row group.

    Of a column that isn't repeated: each value is a row.
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
            if header.kind == "DICTIONARY_PAGE" and at > chunk.data_offset:  # of which of two would the values be?
                return None
            if header.kind == "DICTIONARY_PAGE" or header.head_field is None:
                continue
            count = header.required_of_head("num_values") if header.has_head else -1  # a damaged type names another
            if count < 0:
                return None
            found.append(PagePlace(at, length, first, count))
            first += count
    except BloomError:
        return None
    return found if first == rows == chunk.num_values else None


def with_rows(pages: Sequence[PagePlace], rows: Sequence[int]) -> list[PagePlace]:
    """The pages that have some rows, which are in ascending order."""
    found = []
    for page in pages:
        at = bisect_left(rows, page.first_row)
        if at < len(rows) and rows[at] < page.first_row + page.rows:
            found.append(page)
    return found


def with_ranges(pages: Sequence[PagePlace], rows: Sequence[range]) -> list[PagePlace]:
    """The pages that have rows of some ranges, which are in ascending order and don't overlap."""
    found, at = [], 0
    for page in pages:
        while at < len(rows) and rows[at].stop <= page.first_row:
            at += 1
        if at < len(rows) and rows[at].start < page.first_row + page.rows:
            found.append(page)
    return found


def worth(pages: Sequence[PagePlace], chunk: ColumnChunk) -> bool:
    """Whether these pages are read one by one: they have less than half of the chunk's bytes."""
    return 2 * sum(page.length for page in pages) < chunk.compressed_bytes


def _places(numbers: Sequence[tuple[Any, Any, Any]], chunk: ColumnChunk, rows: int) -> list[PagePlace] | None:
    """The pages in order; None unless they lie within the chunk, and have the row group's rows."""
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
        if place.offset < at or place.length <= 0 or place.rows < 0:
            return None
        at = place.offset + place.length
    return places if at <= chunk.data_offset + chunk.compressed_bytes else None


def _excludes(low: Any, high: Any, keys: Sequence[Any], chunk: ColumnChunk) -> bool:
    """Whether the bounds of a page exclude all values."""
    try:
        least, most = (decode_bound(bytes.fromhex(bound["hex"]), chunk.column) for bound in (low, high))
    except (KeyError, TypeError, ValueError):
        return False
    if least is None or most is None or least > most:
        return False
    at = bisect_left(keys, least)
    return at == len(keys) or bool(keys[at] > most)
