"""Reads a Parquet file's footer from the end of the file: walked once, and decoded only as far as needed.

... | FileMetaData (Thrift compact) | u32 LE footer length | "PAR1" |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

from bloomcli import limits, words
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import contradictions, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bounds import NO_VALUES, kind_of_bounds
from bloomcli.formats.parquet.schema import leaf_columns
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.formats.parquet.usual_chunks import UsualChunks, first_page
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.rules.writer_types import Part, WriterFault
from bloomcli.rules.writers import fault_of
from bloomcli.storage.base import Source

_INDEXES: Final = ("column_index", "offset_index")
_INTEGER_BOUNDS: Final = ("INT32", "INT64")
_ORDERS: Final = ("TYPE_ORDER", "IEEE_754_TOTAL_ORDER")
"""The orders of bounds that are known here. Zeros of both signs are equal in lookups, and NaN isn't used."""
_INTERVALS: Final = (b"duckdb.interval_bloom_filter", b"normalized-v1")
"""Key and value in the metadata with which DuckDB declares that its filters have both hashes of each interval."""


class Tail(NamedTuple):
    """The last eight bytes of a Parquet file. The magic "PARE" means that the footer is encrypted."""

    footer_length: int
    magic: bytes


class ChunkKey(NamedTuple):
    """A column chunk: its row group, its column, and the location of its metadata in the footer."""

    row_group: int
    column: int
    """The leaf column's ordinal."""
    start: int
    """Position of its ColumnChunk in the footer."""


class RowGroup(NamedTuple):
    """One row group's row count and compressed bytes, and the positions of its chunks' metadata in the footer."""

    ordinal: int
    rows: int
    chunks: tuple[int, ...]
    compressed_bytes: int | None
    """The row group's own total_compressed_size."""


class Claim(NamedTuple):
    """A chunk whose metadata has a filter's offset or length, as written."""

    key: ChunkKey
    offset: int | None
    length: int | None
    walked: Struct
    """The ColumnChunk."""

    @property
    def is_filter(self) -> bool:
        """Whether the chunk has a filter. Writers without filters have written 0 and less (PARQUET-1979)."""
        return self.offset is not None and self.offset > 0


class Footer:
    """The parsed footer of one file. All fields are decoded lazily from `raw`.

    Attributes:
        path: the file, as the user named it.
        file_bytes: its size.
        start: file offset of FileMetaData's first byte; data can only lie before it.
        raw: FileMetaData as stored.
    """

    def __init__(self, path: str, file_bytes: int, start: int, raw: bytes) -> None:
        self.path = path
        self.file_bytes = file_bytes
        self.start = start
        self.raw = raw
        self.location = Location(path, start, "")
        self.top = Struct("FileMetaData", raw, 0, self.location)
        for field in ("schema", "row_groups"):
            if self.top.span(field) is None:
                raise self.location.fault(f"FileMetaData has no {field}", 0, field)
        self.rows = self.top.required_int("num_rows")
        self._groups = self.top.list_starts("row_groups")
        self._row_groups: dict[int, RowGroup] = {}
        self._chunks_walked = 0

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The leaf columns, in schema order."""
        return leaf_columns(self.top)

    @cached_property
    def created_by(self) -> str | None:
        """The writer's name and version."""
        return self.top.text("created_by")

    @cached_property
    def normalises_intervals(self) -> bool:
        """Whether DuckDB 2.0 looks up the normal form of intervals in this file, because the footer promises it.

        Source: DuckDB, parquet_statistics.cpp, GetIntervalBloomFilterVersion.
        """
        starts = self.top.list_starts("key_value_metadata")
        pairs = (Struct("KeyValue", self.raw, start, self.location.at("key_value_metadata")) for start in starts[:-1])
        return any(pair.binary("key") == _INTERVALS[0] and pair.binary("value") == _INTERVALS[1] for pair in pairs)

    @property
    def signed(self) -> bool:
        """Whether the footer is plain text with a signature, which any change breaks."""
        return self.top.span("encryption_algorithm") is not None

    @property
    def signed_error(self) -> UnsupportedError | None:
        """The error about any change to a signed file; None if it isn't signed."""
        if not self.signed:
            return None
        return UnsupportedError(
            "the footer is signed: any change to it breaks the signature",
            path=self.path,
            field="encryption_algorithm",
            hint="bloom has no keys; let the engine that wrote the file write it with filters",
        )

    @property
    def row_group_count(self) -> int:
        """The number of row groups."""
        return max(len(self._groups) - 1, 0)

    @cached_property
    def column_count(self) -> int:
        """The number of leaf columns; taken from a row group, if the file has one, without decoding the schema."""
        return len(self.row_group(0).chunks) if self.row_group_count else len(self.columns)

    def group_struct(self, index: int) -> Struct:
        """One row group's metadata, walked."""
        return Struct("RowGroup", self.raw, self._groups[index], self.location.at(f"row_groups[{index}]"))

    def row_group(self, index: int) -> RowGroup:
        """One row group's sizes, and the positions of its chunks' metadata; walked once for all columns."""
        found = self._row_groups.get(index)
        if found is None:
            group = self.group_struct(index)
            starts = group.list_starts("columns")
            self._chunks_walked += len(starts)
            if self._chunks_walked > parquet_limits.CHUNKS_MAX:
                raise group.location.too_many(
                    "the column chunks of all row groups", parquet_limits.CHUNKS_MAX, group.start, "columns"
                )
            found = self._row_groups[index] = RowGroup(
                index, group.required_int("num_rows"), tuple(starts[:-1]), group.integer("total_compressed_size")
            )
        return found

    def chunk_keys(self, columns: set[int] | None = None) -> Iterator[ChunkKey]:
        """Yield the keys of all chunks in file order, of all columns or of these leaf ordinals."""
        everything = range(self.column_count)
        chosen = everything if columns is None else sorted(c for c in columns if c in everything)
        for index in range(self.row_group_count):
            yield from self._keys_in(index, chosen)

    def chunk_keys_in(self, row_group: int, columns: set[int]) -> Iterator[ChunkKey]:
        """Yield the keys of a row group's chunks of these leaf ordinals, in order. Walks no other row group."""
        everything = range(self.column_count)
        yield from self._keys_in(row_group, sorted(c for c in columns if c in everything))

    def _keys_in(self, index: int, columns: Iterable[int]) -> Iterator[ChunkKey]:
        group = self.row_group(index)
        if len(group.chunks) != self.column_count:
            raise self.location.fault(
                f"row group {index} has {len(group.chunks)} of {self.column_count} column chunks",
                self._groups[index],
                f"row_groups[{index}].columns",
            )
        for ordinal in columns:
            yield ChunkKey(index, ordinal, group.chunks[ordinal])

    def filter_claims(self, columns: set[int] | None) -> Iterator[Claim]:
        """Yield the chunks whose metadata have a filter's offset or length."""
        return filter(None, map(self.filter_claim, self.chunk_keys(columns)))

    def filter_claim(self, key: ChunkKey) -> Claim | None:
        """The filter's offset and length in a chunk's metadata; None if it has neither."""
        outer = self.chunk_struct(key)
        meta = outer.struct("meta_data", "ColumnMetaData")
        if meta is None:
            return None
        offset, length = meta.integer("bloom_filter_offset"), meta.integer("bloom_filter_length")
        return None if offset is None and length is None else Claim(key, offset, length, outer)

    def chunk_struct(self, key: ChunkKey) -> Struct:
        """One ColumnChunk, walked."""
        field = f"row_groups[{key.row_group}].columns[{key.column}]"
        return Struct("ColumnChunk", self.raw, key.start, self.location.at(field))

    def dictionary_and_filter(self, key: ChunkKey) -> tuple[bool, int | None]:
        """(all data pages are dictionary-encoded, the filter's length in the metadata). Decodes nothing else."""
        meta = self.chunk_struct(key).struct("meta_data", "ColumnMetaData")
        return (False, None) if meta is None else (_only_dictionary(meta), meta.integer("bloom_filter_length"))

    def extents(self, key: ChunkKey, outer: Struct) -> tuple[range | None, tuple[int, int | None] | None]:
        """(bytes of the pages, (offset, length) of the filter) of a walked chunk. Decodes nothing else."""
        meta = outer.struct("meta_data", "ColumnMetaData")
        if meta is None or outer.text("file_path"):
            self.chunk(key)  # raises, unless the chunk is encrypted
            return None, None
        size = meta.required_int("total_compressed_size")
        start = meta.required_int("data_page_offset", minimum=-(1 << 63))
        start, _ = first_page(start, meta.integer("dictionary_page_offset"))
        pages = range(start, start + size) if size or meta.required_int("num_values") else None
        offset = meta.integer("bloom_filter_offset")
        claim = (offset, meta.integer("bloom_filter_length")) if offset is not None and offset > 0 else None
        return pages, claim

    def index_extents(self, outer: Struct) -> list[tuple[str, int, int]]:
        """(offset field, offset, length) of a walked chunk's page indexes. Raises CorruptFile on bad ranges."""
        found = []
        for field in _INDEXES:
            offset, length = outer.integer(f"{field}_offset"), outer.integer(f"{field}_length")
            if offset and length:
                if not (len(spec.MAGIC) <= offset <= self.start and 0 < length <= self.start - offset):
                    index = field.replace("_", " ")
                    raise outer.location.fault(
                        f"the {index} lies at {offset} with {words.counted(length, 'byte')}, outside the file's data",
                        outer.start,
                        f"{field}_offset",
                    )
                found.append((f"{field}_offset", offset, length))
        return found

    def chunk(self, key: ChunkKey, walked: Struct | None = None) -> ColumnChunk:
        """The metadata of a column chunk that filters need. `walked` is its ColumnChunk, if already walked."""
        usual = self.usual_chunks if len(self.columns) == self.column_count else None
        found = usual and usual.read(*key, self.columns[key.column])
        return self._believed(found) if found else self.walked_chunk(key, walked)

    @cached_property
    def usual_chunks(self) -> UsualChunks:
        """The reader of chunks whose metadata are encoded as writers usually do."""
        return UsualChunks(
            self.raw, self.start, [(c, self.trusted_bounds(c), self._kind_of_bounds(c)) for c in self.columns]
        )

    def walked_chunk(self, key: ChunkKey, walked: Struct | None = None) -> ColumnChunk:
        """The result of `chunk`, from the walked structure. Raises CorruptFile, UnsupportedError."""
        outer = self.chunk_struct(key) if walked is None else walked
        if len(self.columns) != self.column_count:
            raise outer.location.fault(
                f"row groups have {self.column_count} column chunks, the schema has {len(self.columns)}",
                outer.start,
            )
        column = self.columns[key.column]
        encrypted = outer.span("crypto_metadata") is not None
        meta = outer.struct("meta_data", "ColumnMetaData")
        if meta is None:
            if not encrypted:
                raise outer.location.fault("the column chunk has no metadata", outer.start, "meta_data")
            return ColumnChunk(
                row_group=key.row_group,
                column=column,
                num_values=0,
                null_count=None,
                compressed_bytes=0,
                uncompressed_bytes=0,
                codec="encrypted",
                data_offset=0,
                bloom_filter_offset=None,
                bloom_filter_length=None,
                encrypted=True,
            )
        return self._believed(self._chunk(key, outer, meta, column, encrypted))

    def _chunk(self, key: ChunkKey, outer: Struct, meta: Struct, column: Column, encrypted: bool) -> ColumnChunk:
        if external := outer.text("file_path"):  # an empty path is none, as Arrow and parquet-java see it
            raise UnsupportedError(
                f"the data lies in another file, {external!r}",
                path=self.path,
                offset=self.start + outer.start,
                field=outer.location.field + ".file_path",
                hint="this is a summary file such as _metadata; give the data files themselves",
            )
        physical = spec.enum_name("Type", meta.required_int("type"))
        if physical != column.physical:
            raise meta.location.fault(
                f"the chunk is {physical}, the schema says {column.physical}", meta.start, "type"
            )
        pages = meta.required_int("data_page_offset", minimum=-(1 << 63))
        start, dictionary_bytes = first_page(pages, meta.integer("dictionary_page_offset"))
        offset = meta.integer("bloom_filter_offset")
        statistics = meta.struct("statistics", "Statistics")
        low, high = self._bounds(statistics, column)
        return ColumnChunk(
            row_group=key.row_group,
            column=column,
            num_values=meta.required_int("num_values"),
            null_count=_nulls(statistics, column),
            compressed_bytes=meta.required_int("total_compressed_size"),
            uncompressed_bytes=meta.required_int("total_uncompressed_size"),
            codec=spec.enum_name("CompressionCodec", meta.required_int("codec")),
            data_offset=start,
            dictionary_bytes=dictionary_bytes,
            # PARQUET-1979: writers without filters have written 0 and negative offsets
            bloom_filter_offset=offset if offset is not None and offset > 0 else None,
            bloom_filter_length=meta.integer("bloom_filter_length"),
            min_value=low,
            max_value=high,
            min_exact=statistics.truth("is_min_value_exact") if statistics else None,
            max_exact=statistics.truth("is_max_value_exact") if statistics else None,
            only_dictionary_encoded=_only_dictionary(meta),
            encodings_known=meta.span("encoding_stats") is not None,
            encrypted=encrypted,
        )

    @cached_property
    def _ordered(self) -> Sequence[bool]:
        """For each leaf column, whether the order of min_value and max_value is defined."""
        starts = self.top.list_starts("column_orders")
        orders = (Struct("ColumnOrder", self.raw, start, self.location.at("column_orders")) for start in starts[:-1])
        return [any(order.span(name) is not None for name in _ORDERS) for order in orders]

    def fault(self, part: Part, column: Column) -> WriterFault | None:
        """Why a part of a column's metadata isn't believed, because of its writer; None if it is."""
        return fault_of(self.created_by, part, column)

    def trusted_bounds(self, column: Column) -> tuple[bool, bool]:
        """Whether min_value and max_value can be trusted, if their order is defined, and whether the deprecated min
        and max can be, if the column has signed integers."""
        if self.fault(Part.BOUNDS, column) is not None:
            return False, False
        ordered = column.index < len(self._ordered) and self._ordered[column.index]
        return ordered, column.physical in _INTEGER_BOUNDS and column.signed

    def _kind_of_bounds(self, column: Column) -> tuple[int, int]:
        """`kind_of_bounds`; that of bounds that are no values if the writer's bounds can't be taken for values."""
        return NO_VALUES if self.fault(Part.EXACT_BOUNDS, column) is not None else kind_of_bounds(column)

    def believed(
        self,
        column: Column,
        values: int | None,
        nulls: int | None,
        low: bytes | None,
        high: bytes | None,
        high_exact: bool | None,
    ) -> tuple[int | None, bytes | None, bytes | None]:
        """(null count, minimum, maximum) of a chunk without those that contradict each other, or that the file's
        writer gets wrong.

        Args:
            column, values: the chunk's column and number of values, nulls included.
            nulls: the null count of the statistics; 0 for a required column.
            low, high: the bounds that can be trusted.
            high_exact: whether the maximum is a value, if the statistics say so.
        """
        if column.max_definition_level and (
            contradictions.in_counts(values, nulls, bounds=low is not None or high is not None) is not None
            or (nulls and self.fault(Part.NULL_COUNT, column) is not None)
        ):
            nulls = None
        if contradictions.has_nan(low, high, column):
            return nulls, None, None
        return nulls, low, contradictions.upper_bound(high, column, high_exact)

    def _believed(self, chunk: ColumnChunk) -> ColumnChunk:
        """A chunk with the statistics that are believed."""
        found = chunk.null_count, chunk.min_value, chunk.max_value
        nulls, low, high = self.believed(chunk.column, chunk.num_values, *found, chunk.max_exact)
        inexact = self.fault(Part.EXACT_BOUNDS, chunk.column) is not None
        if (nulls, low, high) == found and not inexact:
            return chunk
        exact = (False, False) if inexact else (chunk.min_exact, chunk.max_exact)
        return replace(chunk, null_count=nulls, min_value=low, max_value=high, min_exact=exact[0], max_exact=exact[1])

    def _bounds(self, statistics: Struct | None, column: Column) -> tuple[bytes | None, bytes | None]:
        """The bounds that can be trusted."""
        if statistics is None:
            return None, None
        ordered, deprecated = self.trusted_bounds(column)
        bounds = statistics.binary("min_value"), statistics.binary("max_value")
        if ordered and bounds != (None, None):
            return bounds
        return (statistics.binary("min"), statistics.binary("max")) if deprecated else (None, None)

    def row_group_bytes(self, index: int) -> int:
        """Compressed bytes of a row group: the sum over its chunks, which a reader can skip."""
        group = self.row_group(index)
        return group.compressed_bytes or sum(
            self.chunk(ChunkKey(index, ordinal, start)).compressed_bytes for ordinal, start in enumerate(group.chunks)
        )


def _nulls(statistics: Struct | None, column: Column) -> int | None:
    """Return the null count of the statistics; always 0 for a required column."""
    if column.max_definition_level == 0:
        return 0
    return statistics.integer("null_count") if statistics else None


def _only_dictionary(meta: Struct) -> bool:
    """Whether encoding stats exist and say that every data page is dictionary-encoded."""
    starts = meta.list_starts("encoding_stats")
    location = meta.location.at("encoding_stats")
    encodings = set()
    for start in starts[:-1]:
        stats = Struct("PageEncodingStats", meta.data, start, location)
        page_type = spec.enum_name("PageType", stats.required_int("page_type"))
        encoding = spec.enum_name("Encoding", stats.required_int("encoding"))
        if stats.required_int("count", minimum=-(1 << 31)) > 0 and page_type in {"DATA_PAGE", "DATA_PAGE_V2"}:
            encodings.add(encoding)
    return bool(encodings) and encodings <= {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def read_tail(source: Source) -> Tail:
    """Read the tail and check it against the file's size."""
    smallest = len(spec.MAGIC) + spec.FOOTER_TAIL_BYTES
    if source.size < smallest:
        raise CorruptFile(
            f"not a Parquet file: {words.counted(source.size, 'byte')}, the shortest has {smallest}",
            path=source.path,
            offset=0,
            hint="an empty or cut-off file; get it from its source again",
        )
    at = source.size - spec.FOOTER_TAIL_BYTES
    raw = source.read_at(at, spec.FOOTER_TAIL_BYTES)
    tail = Tail(int.from_bytes(raw[:4], "little"), raw[4:])
    if tail.magic == spec.MAGIC_ENCRYPTED:
        raise UnsupportedError(
            "the footer is encrypted",
            path=source.path,
            offset=at + 4,
            hint="bloom has no keys; decrypt the file with the engine that wrote it",
        )
    if tail.magic != spec.MAGIC:
        raise CorruptFile(
            f"not a Parquet file, or cut off: it ends in {tail.magic!r}, not {spec.MAGIC!r}",
            path=source.path,
            offset=at + 4,
            hint="a writer that was stopped leaves such a file; get it from its source again",
        )
    if tail.footer_length > at - len(spec.MAGIC):
        raise CorruptFile(
            f"the footer's length, {tail.footer_length}, is beyond the file's {source.size} bytes",
            path=source.path,
            offset=at,
            hint="the file is cut off or damaged; get it from its source again",
        )
    if tail.footer_length > limits.FOOTER_MAX_BYTES:
        raise UnsupportedError(
            f"the footer has {tail.footer_length} bytes, more than the {limits.FOOTER_MAX_BYTES} that are read",
            path=source.path,
            offset=at,
        )
    return tail


def read_footer(source: Source) -> Footer:
    """Read and walk the footer: two reads, the tail and FileMetaData."""
    tail = read_tail(source)
    start = source.size - spec.FOOTER_TAIL_BYTES - tail.footer_length
    return Footer(source.path, source.size, start, source.read_at(start, tail.footer_length))
