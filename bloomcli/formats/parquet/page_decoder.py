"""Decodes pages of a column chunk with pyarrow, from a file that `page_file.py` builds of them in memory.

The page headers are checked before that: no size in them is trusted, and at most `_TOGETHER_BYTES`, or one page, are
decoded at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.arrays import counting
from bloomcli.formats.parquet import codecs, page_file, page_selection, pages
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.page_file import RawPage
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, can_become
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import counted

_TOGETHER_BYTES: Final = 8 << 20
"""Decompressed bytes of pages that are decoded together."""
_JOINED_BYTES: Final = 32 << 20
"""Bytes of values that are looked up together."""
_VALUES_TOGETHER: Final = 1 << 22
"""Values of pages that are decoded together, nulls included."""
_ROWS_AT_ONCE: Final = 1 << 15


class DecodedValues(NamedTuple):
    """Values of a column, in order."""

    values: pa.Array
    """Leaf values. Nulls and empty lists may be included, as nulls."""
    rows: pa.Int64Array
    """The row of each value in the row group."""
    pages: int
    """The number of data pages whose first values these are."""


class _Reader(ChunkReader):
    """Reads a chunk's pages. `typed`: the footer, for values of logical types."""

    typed: Footer | None = None


def decoded(
    source: Source,
    chunk: ColumnChunk,
    data_end: int,
    rows: int,
    places: Sequence[PagePlace] | None,
    typed: Footer | None = None,
) -> Iterator[DecodedValues]:
    """Decode a chunk's values, some pages at a time.

    Args:
        source: the file.
        chunk: the chunk.
        data_end: the end of the file's data.
        rows: the number of rows of the row group.
        places: the pages to read; None for all. If they contradict the pages, all pages are read: the index is
            wrong, not the chunk.
        typed: the file's footer, to decode values of logical types as PyArrow reads them, for a column at the top
            level that isn't repeated. By default they have the physical type.

    Raises:
        CorruptFile: the pages contradict their headers or the metadata.
        UnsupportedError: the chunk is encrypted, or its codec or encoding isn't supported.
    """
    if chunk.encrypted:
        raise UnsupportedError(
            f"column {chunk.column.path} is encrypted",
            path=source.path,
            hint="bloom has no keys; decrypt the file with the engine that wrote it",
        )
    reader = _Reader(source, chunk, data_end, checked=True)
    reader.typed = typed
    if not codecs.supported(chunk.codec) and chunk.codec != "UNCOMPRESSED":
        raise UnsupportedError(f"the codec {chunk.codec}", path=source.path, field=reader.field)
    if places is not None:
        source.will_read((place.offset, place.length) for place in places)
        if page_selection.agree(source, chunk, data_end, places):
            yield from _from_places(reader, places)
            return
    pages = _pages(reader)
    if chunk.column.max_repetition_level:
        yield from _whole(reader, pages, rows)
        return
    yield from _some_at_a_time(reader, pages)


def _some_at_a_time(reader: _Reader, pages: Iterable[RawPage]) -> Iterator[DecodedValues]:
    """The values of a column that isn't repeated, where each value is a row."""
    first = 0
    dictionary: RawPage | None = None
    waiting = _Together()
    for page in pages:
        if page.is_dictionary:
            dictionary = page
            continue
        if not waiting.has_room(page):
            yield from _decode(reader, dictionary, waiting.pages, waiting.rows)
            waiting = _Together()
        waiting.add(page, (first, page.values))
        first += page.values
    if waiting.pages:
        yield from _decode(reader, dictionary, waiting.pages, waiting.rows)


def joined(parts: Iterable[DecodedValues], values: int) -> Iterator[DecodedValues]:
    """Join neighbouring parts until each but the last has at least `values` values or `_JOINED_BYTES` bytes: a
    lookup of many values builds a hash table for each part."""
    waiting: list[DecodedValues] = []
    count = size = 0
    for part in parts:
        if waiting and (count >= values or size >= _JOINED_BYTES):
            yield _joined(waiting)
            waiting, count, size = [], 0, 0
        waiting.append(part)
        count += len(part.values)
        size += part.values.nbytes
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[DecodedValues]) -> DecodedValues:
    if len(parts) == 1:
        return parts[0]
    values, rows = (pa.concat_arrays([part[at] for part in parts]) for at in (0, 1))
    return DecodedValues(values, rows, sum(part.pages for part in parts))


class _Together:
    """Data pages that are decoded together, with the first row and the number of rows of each. Their bytes and values
    are counted as they are added: a chunk can have a page for each value."""

    def __init__(self) -> None:
        self.pages: list[RawPage] = []
        self.rows: list[tuple[int, int]] = []
        self._bytes = self._values = 0

    def has_room(self, page: RawPage) -> bool:
        """Whether another page can be added. The first one always can."""
        return not self.pages or (
            self._bytes + page.size <= _TOGETHER_BYTES and self._values + page.values <= _VALUES_TOGETHER
        )

    def add(self, page: RawPage, rows: tuple[int, int]) -> None:
        """Add a page."""
        self.pages.append(page)
        self.rows.append(rows)
        self._bytes += page.size
        self._values += page.values


def _whole(reader: _Reader, pages: Iterable[RawPage], rows: int) -> Iterator[DecodedValues]:
    """The values of a repeated column without an offset index, where a row can continue on the next page."""
    dictionary: RawPage | None = None
    data: list[RawPage] = []
    size = 0
    for page in pages:
        size += page.size
        if size > parquet_limits.PAGE_WHOLE_MAX_BYTES:
            raise UnsupportedError(
                f"a repeated column of more than {parquet_limits.PAGE_WHOLE_MAX_BYTES} bytes without an offset index",
                path=reader.source.path,
                field=reader.field,
                hint="rewrite the file with an offset index, or with smaller row groups",
            )
        if page.is_dictionary:
            dictionary = page
        else:
            data.append(page)
    if data:
        yield from _decode(reader, dictionary, data, [(0, rows)])


def _from_places(reader: _Reader, places: Sequence[PagePlace]) -> Iterator[DecodedValues]:
    """The values of these pages."""
    dictionary: RawPage | None = None
    if (extent := page_selection.dictionary_extent(reader.chunk, places)) is not None:
        reader.position, reader.window = extent
        found = _next(reader)
        dictionary = found if found is not None and found.is_dictionary else None
    waiting = _Together()
    for place in places:
        reader.position, reader.window = place.offset, place.length
        page = _next(reader)
        if page is None:
            continue
        if not waiting.has_room(page):
            yield from _decode(reader, dictionary, waiting.pages, waiting.rows)
            waiting = _Together()
        waiting.add(page, (place.first_row, place.rows))
    if waiting.pages:
        yield from _decode(reader, dictionary, waiting.pages, waiting.rows)


def _pages(reader: _Reader) -> Iterator[RawPage]:
    """Yield all pages of the chunk. Raises CorruptFile if their number of values differs from the metadata's, or if
    there are several dictionaries: readers disagree about which one applies."""
    seen, most, dictionaries = 0, reader.chunk.num_values, 0
    while seen < most:
        page = _next(reader)
        if page is None:
            continue
        dictionaries += page.is_dictionary
        if dictionaries > 1:
            raise reader.fault("the chunk has more than one dictionary page", page.offset)
        seen += page.values
        yield page
    if seen != most:
        raise reader.fault(f"the pages have {counted(seen, 'value')}, the metadata {most}")


def _next(reader: _Reader) -> RawPage | None:
    """The page at the reader's position; None for one without values. Raises CorruptFile, UnsupportedError."""
    at = reader.position
    header = reader.header()
    packed, size = header.required("compressed_page_size"), header.required("uncompressed_page_size")
    reader.room(header.size + packed)
    if header.head_field is None:
        reader.position += header.size + packed
        return None
    if not header.has_head:
        raise reader.fault(f"the page header has no {header.head_field}", at)
    header.encoding_name()
    count = header.required_of_head("num_values")
    is_dictionary = header.kind == "DICTIONARY_PAGE"
    if count < 0 or size < 0 or packed < 0:
        raise reader.fault("a page of a negative size", at)
    if not can_become(packed, size, reader.chunk):
        raise reader.fault(f"a page of {counted(size, 'byte')} can't be in {packed} compressed ones", at)
    if max(size, packed) > parquet_limits.PAGE_WHOLE_MAX_BYTES:
        raise UnsupportedError(
            f"a page of {counted(max(size, packed), 'byte')}; at most {parquet_limits.PAGE_WHOLE_MAX_BYTES} are read",
            path=reader.source.path,
            offset=at,
            field=reader.field,
            hint="rewrite the file with smaller pages",
        )
    if count > parquet_limits.PAGE_VALUES_MOST:
        raise UnsupportedError(
            f"a page of {counted(count, 'value')}; at most {parquet_limits.PAGE_VALUES_MOST} are read",
            path=reader.source.path,
            offset=at,
            field=reader.field,
            hint="rewrite the file with smaller pages",
        )
    data = bytes(reader.take(header.size + packed))
    longest = pages.longest(reader, header, at)
    hides_codec = header.is_packed and not header.is_compressed
    return RawPage(data, 0 if is_dictionary else count, size, is_dictionary, at, longest, hides_codec)


def _decode(
    reader: _Reader, dictionary: RawPage | None, pages: Sequence[RawPage], rows: Sequence[tuple[int, int]]
) -> Iterator[DecodedValues]:
    """Decode data pages that begin and end with whole rows, some rows at a time.

    Args:
        reader: the reader of the chunk, for errors.
        dictionary: the chunk's dictionary page.
        pages: the data pages.
        rows: the ranges of their rows in the row group, as (first row, number).
    """
    import pyarrow.parquet as pq

    count, first = sum(number for _, number in rows), 0
    most = sum(page.values for page in pages)
    if (
        count > most
    ):  # each row has a value or a null; the list of the rows' positions must not be larger than the pages
        raise reader.fault(f"the column's pages have {counted(most, 'value')}, too few for {counted(count, 'row')}")
    places = pa.concat_arrays([counting(start, number) for start, number in rows])
    try:
        data = pa.BufferReader(page_file.file_of(reader.chunk, reader.typed, dictionary, pages, count))
        file = pq.ParquetFile(data, page_checksum_verification=True)
        names = None if reader.typed is None else [file.schema.column(reader.chunk.column.index).path]
        for batch in file.iter_batches(_rows_at_once(dictionary, pages, count), columns=names, use_threads=False):
            values, found = batch.column(0), places.slice(first, batch.num_rows)
            if reader.typed is None:
                values, found = _leaves(values, found)
            yield DecodedValues(values, found, len(pages) if not first else 0)
            first += batch.num_rows
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, BloomError):
            raise
        said = " ".join(str(error).split())[:200]
        raise reader.fault(f"the column's pages can't be decoded: {said}", reader.chunk.data_offset) from None
    if first != count:
        raise reader.fault(f"the column's pages have {counted(first, 'row')} instead of {count}")


def _rows_at_once(dictionary: RawPage | None, pages: Sequence[RawPage], rows: int) -> int:
    """The number of rows whose values take at most `_TOGETHER_BYTES`, if lists have the usual number of values."""
    longest = max(page.longest for page in ([*pages] if dictionary is None else [dictionary, *pages]))
    in_row = -(-sum(page.values for page in pages) // max(rows, 1))
    return max(min(_ROWS_AT_ONCE, _TOGETHER_BYTES // max(longest * in_row, 1)), 1)


def _leaves(values: pa.Array, places: pa.Int64Array) -> tuple[pa.Array, pa.Int64Array]:
    """The leaf values of a nested column, and the row of each."""
    while True:
        kind = values.type
        if pa.types.is_struct(kind):
            values = pc.struct_field(values, [0])
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            places = places.take(pc.list_parent_indices(values))
            values = pc.list_flatten(values)
        else:
            return values, places
