"""Picks the stored values of some rows out of pages, without decoding the other values, and without Arrow.

The pages are PLAIN or dictionary-encoded, of a column that isn't nested. One page is in memory at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from bloomcli import kernels
from bloomcli.formats.parquet import page_selection
from bloomcli.formats.parquet.codecs import Buffer
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page
from bloomcli.model.file import ColumnChunk
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import Source

BYTES_MOST: Final = 64 << 20
"""The maximum size of the values of a column that are picked together, unless it is one value."""
_VALUE_MOST: Final = 1 << 30
"""The maximum size of one value: Arrow's strings have 32-bit offsets."""
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


class TooManyBytes(Exception):
    """The values of some rows have more than `BYTES_MOST` bytes; the caller retries with fewer rows."""


class Part(NamedTuple):
    """The values of some rows of a page."""

    values: bytearray
    """The stored bytes: values of a fixed width, with zeros for nulls; booleans, one byte each; or byte arrays."""
    sizes: bytearray
    """The size of each byte array, int64s; empty for other types."""
    positions: bytearray
    """An int64 for each row, negative for nulls; empty if there are none."""


def parts_of(
    source: Source, chunk: ColumnChunk, data_end: int, places: Sequence[PagePlace], rows: memoryview
) -> list[Part] | None:
    """The values in some rows, page by page; None if pages contradict the locations or can't be read here.

    Args:
        source: the file.
        chunk: the chunk of a column that isn't nested.
        data_end: the end of the file's data.
        places: the pages with these rows, in order.
        rows: ascending positions in the row group, int64s.

    Raises:
        TooManyBytes: several rows have more than `BYTES_MOST`, or one row more than `_VALUE_MOST`.
        CorruptFile, UnsupportedError, PageError: a page can't be read.
    """
    reader = ChunkReader(source, chunk, data_end, checked=True)
    dictionary: _Dictionary | None = None
    if (extent := page_selection.dictionary_extent(chunk, places)) is not None:
        reader.position, reader.window = extent
        page = read_page(reader, lambda _: False)
        if page is None or not page.dictionary:
            return None
        dictionary = _Dictionary(page, width_of(chunk.column))
    found: list[Part] = []
    most = BYTES_MOST if len(rows) > 1 else _VALUE_MOST
    at = 0
    for place in places:
        at = bisect_left(rows, place.first_row, at)
        end = bisect_left(rows, place.first_row + place.rows, at)
        if at == end:
            continue
        reader.position, reader.window = place.offset, place.length
        page = read_page(reader, lambda _: False)
        if page is None or page.dictionary or page.end != place.offset + place.length:
            return None
        if page.num_values != place.rows:
            return None
        part = _of_page(page, dictionary, kernels.positions_within(rows, at, end, place.first_row), chunk, most)
        if part is None:
            return None
        most -= len(part.values)
        found.append(part)
        at = end
    return found


class _Dictionary:
    """The values of a chunk's dictionary page. Raises PageError if some are missing."""

    def __init__(self, page: Page, width: int | None) -> None:
        assert page.body is not None  # noqa: S101  none was skipped
        self.data, self.start, self.count = page.body.whole(), page.start, page.num_values
        self._places = b"" if width else kernels.binary_places(self.data, page.start, page.num_values)

    def starts(self, indices: memoryview) -> memoryview:
        """The positions of the byte arrays with these indices."""
        places = memoryview(self._places).cast("q")
        return memoryview(array("q", [places[index] if index >= 0 else -1 for index in indices]))


def _of_page(
    page: Page, dictionary: _Dictionary | None, positions: bytearray, chunk: ColumnChunk, most: int
) -> Part | None:
    """The values at ascending positions of a page. Raises TooManyBytes if they have more than `most` bytes."""
    assert page.body is not None  # noqa: S101  none was skipped
    data, start = page.body.whole(), page.start
    at = memoryview(positions).cast("q")
    nulls = page.non_null != page.num_values
    if nulls:
        if page.levels is None or chunk.column.max_definition_level != 1:
            return None
        kernels.pick_levels(page.levels.body.whole(), page.levels.start, page.levels.end, at)
    there = positions if nulls else bytearray()
    width = width_of(chunk.column)
    if page.encoding in _DICTIONARY:
        if dictionary is None:
            return None
        at = memoryview(bytearray(positions)).cast("q")
        kernels.pick_indices(data, start, dictionary.count, at)
        if width:
            return Part(kernels.pick_fixed(dictionary.data, dictionary.start, width, at), bytearray(), there)
        return _binary(dictionary.data, dictionary.starts(at), there, most)
    if page.encoding != "PLAIN":
        return None
    if chunk.column.physical == "BOOLEAN":
        return Part(kernels.pick_bits(data, start, at), bytearray(), there)
    if width:
        return Part(kernels.pick_fixed(data, start, width, at), bytearray(), there)
    at = memoryview(bytearray(positions)).cast("q")
    kernels.binary_starts(data, start, at)
    return _binary(data, at, there, most)


def _binary(data: Buffer, starts: memoryview, there: bytearray, most: int) -> Part:
    sizes = bytearray(8 * len(starts))
    values = kernels.pick_binary(data, starts, most, memoryview(sizes).cast("q"))
    if values is None:
        raise TooManyBytes
    return Part(values, sizes, there)
