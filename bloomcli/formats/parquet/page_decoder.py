"""Decodes pages of a column's chunks with pyarrow, from a file that `page_file.py` builds of them in memory.

The page headers are checked before that: no size in them is trusted, and at most `_TOGETHER_BYTES`, or one page, are
decoded at a time. Pages of small chunks come together into one file, which takes as long to open as a large one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.arrays import counting, numbers_of
from bloomcli.formats.parquet import codecs, page_file, page_index, pages
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.page_file import ChunkPages, RawPage
from bloomcli.formats.parquet.page_index import PagePlace
from bloomcli.formats.parquet.pages import ChunkReader, can_become
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import counted

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_TOGETHER_BYTES: Final = 8 << 20
"""Decompressed bytes of pages that are decoded together."""
_JOINED_BYTES: Final = 32 << 20
"""Bytes of values that are looked up together."""
_VALUES_TOGETHER: Final = 1 << 22
"""Values of pages that are decoded together, nulls included."""
_CHUNKS_TOGETHER: Final = 1 << 10
"""Chunks whose pages are decoded together."""
_ROWS_AT_ONCE: Final = 1 << 15


class ChosenPages(NamedTuple):
    """The pages to decode of a column chunk."""

    chunk: ColumnChunk
    rows: int
    """The number of rows of the row group."""
    places: Sequence[PagePlace] | None
    """The pages; None for all. If they contradict the chunk, all are read: the index is wrong, not the chunk."""
    by_headers: bool = False
    """Whether the places are from the pages' headers, so that they can't contradict these."""


class ChunkValues(NamedTuple):
    """Values of a column chunk, in order."""

    chunk: int
    """The position of the chunk among those that are decoded."""
    values: pa.Array
    """Leaf values. Nulls and empty lists may be included, as nulls."""
    rows: pa.Int64Array
    """The row of each value in the row group."""
    pages: int
    """The number of data pages whose first values these are."""


class ChunkEnd(NamedTuple):
    """The end of a chunk's values among those of several chunks."""

    chunk: int
    """As `ChunkValues.chunk`."""
    end: int
    """The number of values up to the end of this chunk's."""
    pages: int
    """As `ChunkValues.pages`."""


class DecodedValues(NamedTuple):
    """Values of consecutive column chunks that were decoded together, in order."""

    values: pa.Array
    """As `ChunkValues.values`."""
    rows: pa.Int64Array
    """As `ChunkValues.rows`."""
    ends: Sequence[ChunkEnd]
    """The end of each chunk."""

    def by_chunk(self) -> Iterator[ChunkValues]:
        """Yield the values of each chunk."""
        first = 0
        for chunk, end, count in self.ends:
            yield ChunkValues(chunk, self.values[first:end], self.rows[first:end], count)
            first = end

    def take(self, positions: pa.Int64Array) -> DecodedValues:
        """The values at ascending positions."""
        numbers = numbers_of(positions)
        ends = [one._replace(end=bisect_left(numbers, one.end)) for one in self.ends]
        return DecodedValues(self.values.take(positions), self.rows.take(positions), ends)


class _Together:
    """Data pages of a chunk that are decoded together, with the first row and the number of rows of each. Their bytes
    and values are counted as they are added: a chunk can have a page for each value.

    Args:
        reader: the reader of the chunk, for errors.
        dictionary: the chunk's dictionary page.
    """

    def __init__(self, reader: ChunkReader, dictionary: RawPage | None) -> None:
        self.reader, self.dictionary = reader, dictionary
        self.pages: list[RawPage] = []
        self.rows: list[tuple[int, int]] = []
        self.values = 0
        self._bytes = 0

    def has_room(self, page: RawPage) -> bool:
        """Whether another page can be added. The first one always can."""
        return not self.pages or (
            self._bytes + page.size <= _TOGETHER_BYTES and self.values + page.values <= _VALUES_TOGETHER
        )

    def add(self, page: RawPage, rows: tuple[int, int]) -> None:
        """Add a page."""
        self.pages.append(page)
        self.rows.append(rows)
        self._bytes += page.size
        self.values += page.values

    @property
    def memory(self) -> int:
        """The bytes of the pages, compressed or decompressed."""
        every = self.pages if self.dictionary is None else [self.dictionary, *self.pages]
        return sum(max(page.size, len(page.data)) for page in every)

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose values take at most `_TOGETHER_BYTES`, if lists have about the same length."""
        every = self.pages if self.dictionary is None else [self.dictionary, *self.pages]
        longest = max(page.longest for page in every)
        in_row = -(-self.values // max(sum(number for _, number in self.rows), 1))
        return max(min(_ROWS_AT_ONCE, _TOGETHER_BYTES // max(longest * in_row, 1)), 1)

    @property
    def hides_codec(self) -> bool:
        """Whether the header of a page says that its values aren't compressed, and they are."""
        return any(page.hides_codec for page in self.pages)


def decoded(
    source: Source, data_end: int, chunks: Iterable[ChosenPages], typed: Footer | None = None
) -> Iterator[DecodedValues]:
    """Decode the values of a column in some of its chunks, some pages at a time.

    Args:
        source: the file.
        data_end: the end of the file's data.
        chunks: chunks of one column, and their pages.
        typed: the file's footer, to decode values of logical types as PyArrow reads them, for a column at the top
            level that isn't repeated. By default they have the physical type.

    Raises:
        CorruptFile: the pages contradict their headers or the metadata.
        UnsupportedError: the chunk is encrypted, or its codec or encoding isn't supported.
    """
    waiting: list[tuple[int, _Together]] = []
    memory = values = 0
    for at, chosen in enumerate(chunks):
        for part in _together(source, data_end, chosen):
            memory += part.memory
            values += part.values
            if waiting and (
                len(waiting) >= _CHUNKS_TOGETHER
                or memory > _TOGETHER_BYTES
                or values > _VALUES_TOGETHER
                or waiting[-1][1].hides_codec != part.hides_codec  # a property of the whole file in memory
            ):
                yield from _decode(waiting, typed)
                waiting, memory, values = [], part.memory, part.values
            waiting.append((at, part))
    if waiting:
        yield from _decode(waiting, typed)


def _together(source: Source, data_end: int, chosen: ChosenPages) -> Iterator[_Together]:
    """Yield the chosen pages of a chunk, those together that are decoded together."""
    chunk, rows, places, by_headers = chosen
    if chunk.encrypted:
        raise UnsupportedError(
            f"column {chunk.column.path} is encrypted",
            path=source.path,
            hint="bloom has no keys; decrypt the file with the engine that wrote it",
        )
    reader = ChunkReader(source, chunk, data_end, checked=True)
    if not codecs.supported(chunk.codec) and chunk.codec != "UNCOMPRESSED":
        raise UnsupportedError(f"the codec {chunk.codec}", path=source.path, field=reader.field)
    if places is not None:
        source.will_read((place.offset, place.length) for place in places)
        if by_headers or page_index.agree(source, chunk, data_end, places):
            return _from_places(reader, places)
    pages = _pages(reader)
    return _whole(reader, pages, rows) if chunk.column.max_repetition_level else _some_at_a_time(reader, pages)


def _some_at_a_time(reader: ChunkReader, pages: Iterable[RawPage]) -> Iterator[_Together]:
    """Yield the pages of a column that isn't repeated, where each value is a row."""
    first = 0
    waiting = _Together(reader, None)
    for page in pages:
        if page.is_dictionary:
            waiting.dictionary = page
            continue
        if not waiting.has_room(page):
            yield waiting
            waiting = _Together(reader, waiting.dictionary)
        waiting.add(page, (first, page.values))
        first += page.values
    if waiting.pages:
        yield waiting


def joined(parts: Iterable[DecodedValues], values: int) -> Iterator[list[DecodedValues]]:
    """Join neighbouring parts until they have at least `values` values or `_JOINED_BYTES` bytes: a lookup of many
    values builds a hash table each time. The last ones may have fewer."""
    waiting: list[DecodedValues] = []
    count = size = 0
    for part in parts:
        if waiting and (count >= values or size >= _JOINED_BYTES):
            yield waiting
            waiting, count, size = [], 0, 0
        waiting.append(part)
        count += len(part.values)
        size += part.values.nbytes
    if waiting:
        yield waiting


def _whole(reader: ChunkReader, pages: Iterable[RawPage], rows: int) -> Iterator[_Together]:
    """Yield all pages of a repeated column without an offset index, where a row can continue on the next page."""
    found = _Together(reader, None)
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
            found.dictionary = page
        else:
            found.add(page, (0, 0) if found.pages else (0, rows))
    if found.pages:
        yield found


def _from_places(reader: ChunkReader, places: Sequence[PagePlace]) -> Iterator[_Together]:
    """Yield these pages."""
    waiting = _Together(reader, None)
    if (extent := page_index.dictionary_extent(reader.chunk, places)) is not None:
        reader.position, reader.window = extent
        found = _next(reader)
        waiting.dictionary = found if found is not None and found.is_dictionary else None
    for place in places:
        reader.position, reader.window = place.offset, place.length
        page = _next(reader)
        if page is None:
            continue
        if not waiting.has_room(page):
            yield waiting
            waiting = _Together(reader, waiting.dictionary)
        waiting.add(page, (place.first_row, place.rows))
    if waiting.pages:
        yield waiting


def _pages(reader: ChunkReader) -> Iterator[RawPage]:
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


def _next(reader: ChunkReader) -> RawPage | None:
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


def _decode(groups: Sequence[tuple[int, _Together]], typed: Footer | None) -> Iterator[DecodedValues]:
    """Decode data pages that begin and end with whole rows, some rows at a time: pages of the chunks at these
    positions."""
    import pyarrow.parquet as pq

    stored = []
    for _, some in groups:
        count = sum(number for _, number in some.rows)
        # each row has a value or a null; the list of the rows' positions must not be larger than the pages
        if count > some.values:
            raise some.reader.fault(
                f"the column's pages have {counted(some.values, 'value')}, too few for {counted(count, 'row')}"
            )
        stored.append(ChunkPages(some.reader.chunk, some.dictionary, some.pages, count))
    reader = groups[0][1].reader
    together = not reader.chunk.column.max_repetition_level and all(
        some.rows_at_once == _ROWS_AT_ONCE for _, some in groups
    )
    file: pq.ParquetFile | None = None
    for first, end in [(0, len(groups))] if together else pairwise(range(len(groups) + 1)):
        reader = groups[first][1].reader
        try:
            if file is None:
                data = pa.BufferReader(page_file.file_of(stored, typed))
                file = pq.ParquetFile(data, page_checksum_verification=True)
            names = None if typed is None else [file.schema.column(reader.chunk.column.index).path]
            batches = file.iter_batches(
                groups[first][1].rows_at_once, row_groups=range(first, end), columns=names, use_threads=False
            )
            yield from _values(batches, groups[first:end], nested=typed is None)
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            if end - first > 1:  # one of the chunks is damaged: its own error says where
                for one in groups:
                    for _ in _decode([one], typed):
                        pass
            if isinstance(error, BloomError):
                raise
            said = " ".join(str(error).split())[:200]
            raise reader.fault(f"the column's pages can't be decoded: {said}", reader.chunk.data_offset) from None


def _values(
    batches: Iterable[pa.RecordBatch], groups: Sequence[tuple[int, _Together]], *, nested: bool
) -> Iterator[DecodedValues]:
    """Yield the values of decoded pages of the chunks at these positions. `nested`: the column may be in a list, of
    one chunk."""
    places = pa.concat_arrays([counting(*rows) for _, some in groups for rows in some.rows])
    ends = list(accumulate(sum(number for _, number in some.rows) for _, some in groups))
    first, count, at, begun = 0, len(places), 0, -1
    for batch in batches:
        after = first + batch.num_rows
        values, found = batch.column(0), places.slice(first, batch.num_rows)
        parts: list[ChunkEnd] = []
        while first < after and at < len(groups):
            first = min(ends[at], after)
            chunk, some = groups[at]
            parts.append(ChunkEnd(chunk, first - after + batch.num_rows, len(some.pages) if begun < at else 0))
            begun = at
            at += first == ends[at]
        first = after
        if nested:
            values, found = _leaves(values, found)
            parts = [part._replace(end=len(values)) for part in parts] if len(groups) == 1 else parts
        yield DecodedValues(values, found, parts)
    if first != count:
        reader = groups[0][1].reader
        raise reader.fault(f"the column's pages have {counted(first, 'row')} instead of {count}")


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
