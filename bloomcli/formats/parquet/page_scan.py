"""Finds the positions of values in pages, page by page in compiled code, without decoding values and without Arrow,
whose import takes longer than the search of one file.

It reads PLAIN and dictionary-encoded pages of columns that aren't nested. It ends at a page with another encoding, or
one that can't be read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import page_selection
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.limits import PAGE_VALUES_MOST
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page
from bloomcli.model.file import ColumnChunk
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Source

_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")
_MORE: Final = 4
"""The factor by which the number of gathered rows grows: the first row is returned right after its page."""


class ScanResult(NamedTuple):
    """Matching rows of some pages."""

    rows: array[int]
    """Positions in the row group, ascending."""
    numbers: array[int]
    """For each row, the number of its value in the table."""
    pages: int
    """The number of data pages that were read."""


class UnreadablePage(NamedTuple):
    """The page from which Arrow continues."""

    row: int
    """The first row of the page that couldn't be read."""


def readable(chunk: ColumnChunk) -> bool:
    """Whether a chunk can be scanned: its column isn't nested, and it isn't encrypted."""
    column = chunk.column
    return not column.max_repetition_level and column.max_definition_level < 2 and not chunk.encrypted


def scanned(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    places: Sequence[PagePlace] | None,
    table: kernels.ValueTable,
) -> Iterator[ScanResult | UnreadablePage]:
    """Yield the rows that have one of the values, some pages at a time.

    If a page can't be read, the last item is an `UnreadablePage`, from which Arrow continues.

    Args:
        source: the file.
        chunk: the chunk, for which `readable` is true.
        data_end: the end of the file's data.
        places: the pages to read; None for all.
        table: the values to find.
    """
    reader = ChunkReader(source, chunk, data_end, checked=True)
    rows, numbers = array("q"), array("q")
    pages, due, first = 0, 1, 0
    entries: array[int] | None = None
    try:
        for page, first in _from_places(reader, places) if places is not None else _all(reader):
            if page.dictionary:
                entries = _entries(page, table, chunk)
                continue
            pages += 1
            here, found = _of_page(page, table, entries, chunk)
            if here and here[-1] >= page.num_values:
                raise kernels.PageError("a value beyond the page's last one")
            rows.frombytes(kernels.shifted_hashes(here.cast("B"), first))
            numbers.frombytes(found.cast("B"))
            if len(rows) >= due:
                yield ScanResult(rows, numbers, pages)
                rows, numbers, pages, due = array("q"), array("q"), 0, due * _MORE
    except (CorruptFile, UnsupportedError, kernels.PageError):
        yield ScanResult(rows, numbers, pages)
        yield UnreadablePage(first)
        return
    yield ScanResult(rows, numbers, pages)


def _all(reader: ChunkReader) -> Iterator[tuple[Page, int]]:
    """Yield all pages of the chunk, each with its first row. Raises CorruptFile, UnsupportedError."""
    first, most, dictionaries = 0, reader.chunk.num_values, 0
    while first < most:
        page = read_page(reader, lambda _: False)
        if page is None:
            continue
        dictionaries += page.dictionary
        if dictionaries > 1:
            raise reader.fault("the chunk has more than one dictionary page")
        if page.num_values < 0 or (not page.dictionary and page.num_values > most - first):
            raise reader.fault("the pages have more values than the metadata")
        yield page, first
        first += 0 if page.dictionary else page.num_values


def _from_places(reader: ChunkReader, places: Sequence[PagePlace]) -> Iterator[tuple[Page, int]]:
    """Yield the dictionary page and the pages at `places`. Raises CorruptFile, UnsupportedError."""
    chunk = reader.chunk
    if (extent := page_selection.dictionary_extent(chunk, places)) is not None:
        reader.position, reader.window = extent
        page = read_page(reader, lambda _: False)
        if page is not None and page.dictionary:
            yield page, places[0].first_row
    reader.source.will_read([(place.offset, place.length) for place in places])
    for place in places:
        reader.position, reader.window = place.offset, place.length
        page = read_page(reader, lambda _: False)
        if page is None or page.dictionary or page.end != place.offset + place.length:
            raise reader.fault("the offset index and the page's header contradict each other", place.offset)
        if page.num_values != place.rows:
            raise reader.fault("the offset index and the page's header contradict each other", place.offset)
        yield page, place.first_row


def _entries(page: Page, table: kernels.ValueTable, chunk: ColumnChunk) -> array[int]:
    """The number of each dictionary entry in the table, -1 for others; empty if no entry is in the table."""
    assert page.body is not None  # noqa: S101  none was skipped
    positions, numbers = _plain(page, table, chunk, page.num_values)
    if not positions:
        return array("q")
    entries = array("q", [-1]) * page.num_values
    for position, number in zip(positions, numbers, strict=True):
        entries[position] = number
    return entries


def _of_page(
    page: Page, table: kernels.ValueTable, entries: array[int] | None, chunk: ColumnChunk
) -> tuple[memoryview, memoryview]:
    """The positions of the values to find in a data page, and their numbers. Raises PageError."""
    assert page.body is not None  # noqa: S101  none was skipped
    if page.num_values > PAGE_VALUES_MOST:
        raise kernels.PageError("more values than are found in a page")
    if page.encoding in _DICTIONARY:
        if entries is None:
            raise kernels.PageError("there is no dictionary page")
        if not entries:
            return _numbers(b""), _numbers(b"")
        found = kernels.match_indices(page.body.whole(), page.start, page.non_null, entries)
        positions, numbers = map(_numbers, found)
    elif page.encoding == "PLAIN":
        positions, numbers = _plain(page, table, chunk, page.non_null)
    else:
        raise kernels.PageError(f"the encoding {page.encoding}")
    if page.non_null != page.num_values:
        if page.levels is None:
            raise kernels.PageError("nulls without levels")
        kernels.place_values(page.levels.body.whole(), page.levels.start, page.levels.end, positions)
    return positions, numbers


def _plain(page: Page, table: kernels.ValueTable, chunk: ColumnChunk, count: int) -> tuple[memoryview, memoryview]:
    assert page.body is not None  # noqa: S101  none was skipped
    data, width = page.body.whole(), width_of(chunk.column)
    found = table.fixed(data, page.start, width, count) if width else table.binary(data, page.start, count)
    positions, numbers = map(_numbers, found)
    return positions, numbers


def _numbers(found: bytes) -> memoryview:
    return memoryview(bytearray(found)).cast("q")
