"""Decodes pages of a column's chunks with pyarrow, from a file that is built of them in memory.

    PAR1 | dictionary page | some data pages | ... of the next chunk | footer of one column | length | PAR1

Pages keep their bytes, except those that Arrow can't decode, which become PLAIN ones: ALP pages, and deltas of INT32
with more bits than the type. Each chunk is a row group of one column. The column has the chunks' levels and physical
type but no logical type, so that the stored values are decoded; INT96 becomes 12 bytes. For the values of records,
the footer has the file's schema.

The page headers are checked before that: no size in them is trusted, and at most `_TOGETHER_BYTES`, or one page, are
decoded at a time. Pages of small chunks come together into one file, which takes as long to open as a large one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import add, gt
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.arrays import counting, numbers_of
from bloomcli.formats.parquet import codecs, page_index, pages, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.encodings import slices, unread
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.page_index import PagePlace
from bloomcli.formats.parquet.pages import (
    ChunkReader,
    StoredPage,
    can_become,
    read_page,
    refuse_encrypted,
    stored_pages,
)
from bloomcli.formats.parquet.spec import STRUCT, encoded, listed
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import counted

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Item = TypeVar("Item")

_TOGETHER_BYTES: Final = 8 << 20
"""Decompressed bytes of pages that are decoded together."""
_JOINED_BYTES: Final = 32 << 20
"""Bytes of values that are looked up together."""
_VALUES_TOGETHER: Final = 1 << 22
"""Values of pages that are decoded together, nulls included."""
_CHUNKS_TOGETHER: Final = 1 << 10
"""Chunks whose pages are decoded together."""
_ROWS_AT_ONCE: Final = 1 << 15
_WIDE: Final = 12
"""Bytes of an INT96."""
_NAME: Final = b"c"
_ALP: Final = "ALP"
_DELTA: Final = "DELTA_BINARY_PACKED"


class RawPage(NamedTuple):
    """A page as stored in the file."""

    data: bytes
    """The page with its header."""
    values: int
    """The number of values, including nulls; 0 for a dictionary."""
    size: int
    """The decompressed size in bytes."""
    is_dictionary: bool
    longest: int
    """The size of the longest value, if values can share bytes; else 0."""


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
    """The position of the chunk among those that are decoded."""
    end: int
    """The number of values up to the end of this chunk's."""
    pages: int
    """The number of data pages whose first values these are."""


class DecodedValues(NamedTuple):
    """Values of consecutive column chunks that were decoded together, in order."""

    values: pa.Array
    """Leaf values. Nulls and empty lists may be included, as nulls."""
    rows: pa.Int64Array
    """The row of each value in its row group."""
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
        ends = [end._replace(end=bisect_left(numbers, end.end)) for end in self.ends]
        return DecodedValues(self.values.take(positions), self.rows.take(positions), ends)


def arrow_file(file: pa.NativeFile, footer: bytes, unit: str | None = None) -> pq.ParquetFile:
    """Arrow's reader of a file with this FileMetaData: Arrow would read more of the file's end. Raises its errors.

    Args:
        file: the file.
        footer: its FileMetaData.
        unit: the unit of INT96 timestamps; by default nanoseconds, in which years beyond 1678 to 2261 wrap around.
    """
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(
        pa.BufferReader(b"".join((spec.MAGIC, footer, len(footer).to_bytes(4, "little"), spec.MAGIC)))
    )
    # a background read of Arrow's threads aborts the process if Python ends during it
    return pq.ParquetFile(
        file, metadata=metadata, pre_buffer=False, page_checksum_verification=True, coerce_int96_timestamp_unit=unit
    )


def whole_column(
    opened: Callable[[], pq.ParquetFile], row_groups: Sequence[int], column: int, kind: pa.DataType, values: int
) -> pa.ChunkedArray | None:
    """The values of a column in row groups of a file, whose page headers have been checked.

    None if Arrow can't decode them as this type, or decodes another number: single pages show where the fault is.
    """
    try:
        file = opened()
        names = [file.schema.column(column).path]
        stored = file.read_row_groups(row_groups, names, use_threads=False).column(0)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, BloomError):
            raise
        return None
    return stored if stored.type == kind and len(stored) == values else None


class ChunkPages:
    """Pages of a chunk that are decoded together, with the first row and the number of rows of each data page. Their
    bytes and values are counted as they are added: a chunk can have a page for each value.

    Args:
        reader: the reader of the chunk, for errors.
        dictionary: the chunk's dictionary page.
    """

    def __init__(self, reader: ChunkReader, dictionary: RawPage | None = None) -> None:
        self.reader, self.chunk, self.dictionary = reader, reader.chunk, dictionary
        self.pages: list[RawPage] = []
        """Data pages that together begin and end with whole rows."""
        self.rows: list[tuple[int, int]] = []
        self.values = 0

    def add(self, page: RawPage, rows: tuple[int, int]) -> None:
        """Add a page. A dictionary has no rows."""
        if page.is_dictionary:
            self.dictionary = page
            return
        self.pages.append(page)
        self.rows.append(rows)
        self.values += page.values

    def add_any(self, page: RawPage, rows: int) -> None:
        """Add a page of a whole chunk, whose rows aren't those of single pages."""
        self.add(page, (0, 0) if self.pages else (0, rows))

    @property
    def every(self) -> list[RawPage]:
        """All pages."""
        return [*([] if self.dictionary is None else [self.dictionary]), *self.pages]

    @property
    def row_count(self) -> int:
        """The number of rows of the data pages."""
        return sum(number for _, number in self.rows)

    @property
    def memory(self) -> int:
        """The bytes of the pages, compressed or decompressed."""
        return sum(max(page.size, len(page.data)) for page in self.every)

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose values take at most `_TOGETHER_BYTES`, if lists have about the same length."""
        longest = max(page.longest for page in self.every)
        in_row = -(-self.values // max(self.row_count, 1))
        return max(min(_ROWS_AT_ONCE, _TOGETHER_BYTES // max(longest * in_row, 1)), 1)


def decoded(
    source: Source,
    chunks: Iterable[ChosenPages],
    typed: Footer | None = None,
    unit: str | None = None,
) -> Iterator[DecodedValues]:
    """Decode the values of a column in some of its chunks, some pages at a time.

    Args:
        source: the file.
        chunks: chunks of one column, and their pages.
        typed: the file's footer, to decode values of logical types as PyArrow reads them, for a column at the top
            level that isn't repeated. By default they have the physical type.
        unit: with `typed`, as for `arrow_file`.

    Raises:
        CorruptFile: the pages contradict their headers or the metadata.
        UnsupportedError: the chunk is encrypted, or its codec or encoding isn't supported.
    """
    parts = ((at, part) for at, chosen in enumerate(chunks) for part in _together(source, chosen))
    most = _CHUNKS_TOGETHER, _TOGETHER_BYTES, _VALUES_TOGETHER
    for some in runs(parts, lambda pair: (1, pair[1].memory, pair[1].values), most):
        yield from _decode(some, typed, unit)


def _together(source: Source, chosen: ChosenPages) -> Iterator[ChunkPages]:
    """Yield the chosen pages of a chunk, those together that are decoded together."""
    chunk, rows, places, by_headers = chosen
    refuse_encrypted(source, chunk)
    reader = ChunkReader(source, chunk, checked=True)
    if not codecs.supported(chunk.codec):
        raise UnsupportedError(f"the codec {chunk.codec}", path=source.path, field=reader.field)
    if places is not None:
        source.will_read((place.offset, place.length) for place in places)
        if by_headers or page_index.agree(source, chunk, places):
            return _some_at_a_time(reader, _from_places(reader, places))
    pages = _every_page(reader)
    if chunk.column.max_repetition_level:
        return _whole(reader, pages, rows)
    return _some_at_a_time(reader, _in_order(pages))


def runs(
    items: Iterable[Item], sizes: Callable[[Item], tuple[int, ...]], most: tuple[int, ...]
) -> Iterator[list[Item]]:
    """Yield runs of items whose sums of each size are at most `most`. An item that is larger is a run of its own."""
    run: list[Item] = []
    sums: tuple[int, ...] = ()
    for item in items:
        own = sizes(item)
        sums = tuple(map(add, sums, own))
        if run and any(map(gt, sums, most)):
            yield run
            run = []
        if not run:
            sums = own
        run.append(item)
    if run:
        yield run


def _some_at_a_time(reader: ChunkReader, pages: Iterable[tuple[RawPage, tuple[int, int]]]) -> Iterator[ChunkPages]:
    """Yield pages with their rows, those together that are decoded together."""
    dictionary = None
    for some in runs(pages, lambda pair: (pair[0].size, pair[0].values), (_TOGETHER_BYTES, _VALUES_TOGETHER)):
        chunk_pages = ChunkPages(reader, dictionary)
        for page, rows in some:
            chunk_pages.add(page, rows)
        dictionary = chunk_pages.dictionary
        if chunk_pages.pages:
            yield chunk_pages


def _in_order(pages: Iterable[RawPage]) -> Iterator[tuple[RawPage, tuple[int, int]]]:
    """Yield all pages of a column that isn't repeated, where each value is a row."""
    first = 0
    for page in pages:
        yield page, (first, page.values)
        first += page.values


def joined(parts: Iterable[DecodedValues], values: int) -> Iterator[list[DecodedValues]]:
    """Join neighbouring parts of about `values` values in all, and at most `_JOINED_BYTES` bytes: a lookup of many
    values builds a hash table each time."""
    return runs(parts, lambda part: (len(part.values), part.values.nbytes), (2 * values, _JOINED_BYTES))


def _whole(reader: ChunkReader, pages: Iterable[RawPage], rows: int) -> Iterator[ChunkPages]:
    """Yield all pages of a repeated column without an offset index, where a row can continue on the next page."""
    chunk_pages = ChunkPages(reader)
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
        chunk_pages.add_any(page, rows)
    if chunk_pages.pages:
        yield chunk_pages


def _from_places(reader: ChunkReader, places: Sequence[PagePlace]) -> Iterator[tuple[RawPage, tuple[int, int]]]:
    """Yield the chunk's dictionary and these pages."""
    if (extent := page_index.dictionary_extent(reader.chunk, places)) is not None:
        reader.position, reader.window = extent
        dictionary = _raw_page(reader.page())
        if dictionary is not None and dictionary.is_dictionary:
            yield dictionary, (0, 0)
    for place in places:
        reader.position, reader.window = place.offset, place.length
        page = _raw_page(reader.page())
        if page is not None:
            yield page, (place.first_row, place.rows)


def _every_page(reader: ChunkReader) -> Iterator[RawPage]:
    """Yield all pages of the chunk. Raises CorruptFile, UnsupportedError."""
    return (page for page in map(_raw_page, stored_pages(reader)) if page is not None)


def _raw_page(stored: StoredPage) -> RawPage | None:
    """A page with its bytes; None for one without values. Raises CorruptFile, UnsupportedError."""
    reader, header, at, packed, size = stored.reader, stored.header, stored.at, stored.packed, stored.size
    if header.head_field is None:
        return None
    encoding = header.encoding_name()
    if encoding not in spec.ENUMS["Encoding"]:
        raise unread(encoding, header.location)
    count = header.required_of_head("num_values")
    if not can_become(packed, size, reader.chunk):
        raise reader.fault(f"a page of {counted(size, 'byte')} can't be in {packed} compressed ones", at)
    if max(size, packed) > parquet_limits.PAGE_WHOLE_MAX_BYTES:
        raise header.location.unsupported(
            f"a page of {counted(max(size, packed), 'byte')}; at most {parquet_limits.PAGE_WHOLE_MAX_BYTES} are read",
            "rewrite the file with smaller pages",
        )
    if count > parquet_limits.PAGE_VALUES_MOST:
        raise header.location.unsupported(
            f"a page of {counted(count, 'value')}; at most {parquet_limits.PAGE_VALUES_MOST} are read",
            "rewrite the file with smaller pages",
        )
    if not stored.is_dictionary and (encoding == _ALP or (encoding == _DELTA and reader.chunk.wide_deltas)):
        return _plain(stored)
    data = bytes(reader.bytes_at(at, header.size + packed))
    longest = pages.longest(stored)
    head = header.head() if header.is_packed and not header.is_compressed else None
    if head is not None:  # Arrow doesn't decompress a page whose header says that it isn't compressed
        fields = {name: head.integer(name) for name in spec.FIELDS[head.name] if name != "is_compressed"}
        sizes = {"uncompressed_page_size": size, "compressed_page_size": packed, "crc": header.crc}
        data = encoded("PageHeader", {"type": header.type, **sizes, header.head_field: fields}) + data[header.size :]
    return RawPage(data, 0 if stored.is_dictionary else count, size, stored.is_dictionary, longest)


def _plain(stored: StoredPage) -> RawPage:
    """A data page with its values in PLAIN, not compressed. Raises CorruptFile, UnsupportedError."""
    reader, at = stored.reader, stored.at
    page = read_page(stored)
    assert page is not None  # noqa: S101  it is a data page
    column, nulls = reader.chunk.column, page.num_values - page.non_null
    histogram = page.histogram(column, repetition=True)
    if histogram is None:
        raise reader.fault(f"a page in {page.encoding} whose repetition levels have a deprecated encoding", at)
    repetition, definition = (
        b"" if levels is None else bytes(memoryview(levels.body.whole())[levels.start : levels.end])
        for levels in (page.repetition, page.levels)
    )
    values = [part.data for part in slices(page, column)]
    data = b"".join([repetition, definition, *values])
    head = {
        "num_values": page.num_values,
        "num_nulls": nulls,
        "num_rows": histogram[0],
        "encoding": "PLAIN",
        "definition_levels_byte_length": len(definition),
        "repetition_levels_byte_length": len(repetition),
        "is_compressed": False,
    }
    sizes = {"uncompressed_page_size": len(data), "compressed_page_size": len(data)}
    header = encoded("PageHeader", {"type": "DATA_PAGE_V2", **sizes, "data_page_header_v2": head})
    return RawPage(header + data, page.num_values, len(data), False, _WIDE)


def in_plain(
    source: Source, footer: Footer, row_groups: Iterable[int], columns: set[int], unit: str | None
) -> pq.ParquetFile | None:
    """Row groups with these columns as a file that Arrow can read; None if it can decode all of their pages.

    Raises:
        CorruptFile, UnsupportedError: the pages can't be read, or they take too much memory. Errors of Arrow.
    """
    import pyarrow.parquet as pq

    keys = [list(footer.chunk_keys(columns, number)) for number in row_groups]
    every = [key for some in keys for key in some]
    wide = (key for key in every if not footer.trust(footer.columns[key.column]).deltas)
    if not footer.encoded_by(_ALP, every) and not footer.encoded_by(_DELTA, wide):
        return None
    size, groups = 0, []
    for some in keys:
        chunks = []
        for key in some:
            reader = ChunkReader(source, footer.chunk(key), checked=True)
            chunk_pages = ChunkPages(reader)
            for page in _every_page(reader):
                chunk_pages.add_any(page, footer.row_group(key.row_group).rows)
                size += len(page.data)
                if size > parquet_limits.ROWS_FILE_MAX_BYTES:
                    raise UnsupportedError(
                        f"rows of row groups with pages that Arrow can't decode, which decoded take more than the"
                        f" {parquet_limits.ROWS_FILE_MAX_BYTES} bytes that are held in memory",
                        path=source.path,
                        field=reader.field,
                        hint="--select names other columns to show",
                    )
            chunks.append(chunk_pages)
        groups.append(chunks)
    file = pa.BufferReader(file_of(groups, footer))
    return pq.ParquetFile(file, page_checksum_verification=True, coerce_int96_timestamp_unit=unit)


def _decode(
    groups: Sequence[tuple[int, ChunkPages]], typed: Footer | None, unit: str | None
) -> Iterator[DecodedValues]:
    """Decode data pages that begin and end with whole rows, some rows at a time: pages of the chunks at these
    positions."""
    import pyarrow.parquet as pq

    for _, some in groups:
        # each row has a value or a null; the list of the rows' positions must not be larger than the pages
        if some.row_count > some.values:
            values, rows = counted(some.values, "value"), counted(some.row_count, "row")
            raise some.reader.fault(f"the column's pages have {values}, too few for {rows}")
    together = not groups[0][1].chunk.column.max_repetition_level and all(
        some.rows_at_once == _ROWS_AT_ONCE for _, some in groups
    )
    file: pq.ParquetFile | None = None
    for first, end in [(0, len(groups))] if together else pairwise(range(len(groups) + 1)):
        reader = groups[first][1].reader
        try:
            if file is None:
                data = pa.BufferReader(file_of([[some] for _, some in groups], typed))
                file = pq.ParquetFile(data, page_checksum_verification=True, coerce_int96_timestamp_unit=unit)
            names = None if typed is None else [file.schema.column(reader.chunk.column.index).path]
            batches = file.iter_batches(
                groups[first][1].rows_at_once, row_groups=range(first, end), columns=names, use_threads=False
            )
            yield from _values(batches, groups[first:end], nested=typed is None)
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            if end - first > 1:  # one of the chunks is damaged: its own error says where
                for group in groups:
                    for _ in _decode([group], typed, unit):
                        pass
            if isinstance(error, BloomError):
                raise
            reason = " ".join(str(error).split())[:200]
            raise reader.fault(f"the column's pages can't be decoded: {reason}", reader.chunk.data_offset) from None


def _values(
    batches: Iterable[pa.RecordBatch], groups: Sequence[tuple[int, ChunkPages]], *, nested: bool
) -> Iterator[DecodedValues]:
    """Yield the values of decoded pages of the chunks at these positions. `nested`: the column may be in a list, of
    one chunk."""
    places = pa.concat_arrays([counting(*rows) for _, some in groups for rows in some.rows])
    ends = list(accumulate(some.row_count for _, some in groups))
    first, count, at, begun = 0, len(places), 0, -1
    for batch in batches:
        after = first + batch.num_rows
        values, positions = batch.column(0), places.slice(first, batch.num_rows)
        parts: list[ChunkEnd] = []
        while first < after and at < len(groups):
            first = min(ends[at], after)
            chunk, some = groups[at]
            parts.append(ChunkEnd(chunk, first - after + batch.num_rows, len(some.pages) if begun < at else 0))
            begun = at
            at += first == ends[at]
        first = after
        if nested:
            values, positions = _leaves(values, positions)
            parts = [part._replace(end=len(values)) for part in parts] if len(groups) == 1 else parts
        yield DecodedValues(values, positions, parts)
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


def file_of(groups: Sequence[Sequence[ChunkPages]], typed: Footer | None) -> bytes:
    """Build a Parquet file from some pages.

    Args:
        groups: pages of chunks of the same columns for each row group of the new file; of one column without `typed`.
        typed: the file's footer, for values of logical types; None for values of the physical type.
    """
    parts, begin = [spec.MAGIC], len(spec.MAGIC)
    row_groups = []
    for group in groups:
        stored = [page.data for chunk in group for page in chunk.every]
        row_groups.append(_row_group(group, typed, begin))
        parts += stored
        begin += sum(map(len, stored))
    if typed is None:
        column = groups[0][0].chunk.column
        schema = _schema(*_type(column), column.max_repetition_level, column.max_definition_level)
        fields: dict[str, Any] = {"schema": schema}
    else:
        spans = {field: typed.top.span(field) for field in ("schema", "key_value_metadata", "column_orders")}
        fields = {field: typed.for_arrow[span.start : span.end] for field, span in spans.items() if span is not None}
        fields["created_by"] = typed.top.binary("created_by")
    rows = sum(group[0].row_count for group in groups)
    footer = encoded("FileMetaData", fields | {"version": 2, "num_rows": rows, "row_groups": row_groups})
    return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), spec.MAGIC])


def _row_group(group: Sequence[ChunkPages], typed: Footer | None, begin: int) -> bytes:
    """The metadata of a row group whose pages begin at an offset of the new file."""
    columns, total = {}, 0
    for some in group:
        packed = sum(len(page.data) for page in some.every)
        columns[some.chunk.column.index] = _column_chunk(some, typed, begin + total, packed)
        total += packed
    chunks = [*columns.values()] if typed is None else [columns.get(at, _UNREAD) for at in range(len(typed.columns))]
    return encoded("RowGroup", {"columns": chunks, "total_byte_size": total, "num_rows": group[0].row_count})


def _column_chunk(some: ChunkPages, typed: Footer | None, begin: int, packed: int) -> bytes:
    """The ColumnChunk of pages that begin at an offset of the new file, and take `packed` bytes."""
    column, dictionary = some.chunk.column, some.dictionary
    names = (_NAME,) * max(column.max_definition_level, 1) if typed is None else (column.path.encode(),)
    fields = {
        "type": _type(column)[0] if typed is None else column.physical,
        "encodings": ["PLAIN"],
        "path_in_schema": names,
        "codec": some.chunk.codec,
        "num_values": some.values,
        "total_uncompressed_size": max(sum(page.size for page in some.every), 1),
        "total_compressed_size": packed,
        "data_page_offset": begin + (0 if dictionary is None else len(dictionary.data)),
        "dictionary_page_offset": None if dictionary is None else begin,
    }
    return encoded("ColumnChunk", {"file_offset": 0, "meta_data": fields})


@lru_cache(maxsize=64)
def _schema(physical: str, length: int | None, repeated: int, defined: int) -> bytes:
    """The encoded schema of the column alone, from the root to the leaf, with the column's levels.

    The repeated fields come first: the order affects neither the values nor their rows.
    """
    *groups, leaf = ["REPEATED"] * repeated + ["OPTIONAL"] * (defined - repeated) or ["REQUIRED"]
    elements: list[dict[str, Any]] = [
        {"name": b"schema", "num_children": 1},
        *({"repetition_type": group, "name": _NAME, "num_children": 1} for group in groups),
        {"type": physical, "type_length": length, "repetition_type": leaf, "name": _NAME},
    ]
    return listed(STRUCT, [encoded("SchemaElement", element) for element in elements])


def _type(column: Column) -> tuple[str, int | None]:
    """The physical type, and its length."""
    physical, length = column.physical, column.type_length
    if physical == "INT96":
        physical, length = "FIXED_LEN_BYTE_ARRAY", _WIDE
    return physical, length if physical == "FIXED_LEN_BYTE_ARRAY" else None


_UNREAD: Final = encoded("ColumnChunk", {"file_offset": 0})
"""The ColumnChunk of a column that isn't read."""
