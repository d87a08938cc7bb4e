"""Reads a Parquet file's footer from the end of the file: walked once, and decoded only as far as needed.

... | FileMetaData (Thrift compact) | u32 LE footer length | "PAR1" |

Field 32767 of any structure may hold bytes in a format of the writer's choice. The experimental FlatBuffers metadata
(parquet-format issue 530, its schema in pull request 544, Arrow C++ pull request 48431) are such an extension of
FileMetaData, with a second copy of the offsets of filters and page indexes. Source: the Parquet format's
BinaryProtocolExtensions.md. Its example writes the field's number as a plain varint, 08 FF FF 01, which the compact
protocol reads as -16384 (zigzag): both ids are treated as the extension.

New filters are written after all existing bytes, so nothing moves that an extension may refer to. If filters are cut
out, the bytes after them move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bloomcli import kernels, limits, words
from bloomcli.errors import CorruptFile, KeyMissing, UnsupportedError
from bloomcli.formats.base import Tree
from bloomcli.formats.keys import key_hint
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec, statistics
from bloomcli.formats.parquet.schema import key_values, leaf_columns, with_enums_as_text
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.formats.parquet.statistics import NO_VALUES, kind_of_bounds
from bloomcli.kernels import ChunkMetadata
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.rules.writer_table import Part, faults, has_fault
from bloomcli.storage.base import Source

if TYPE_CHECKING:
    from bloomcli.formats.parquet.encryption import Encryption

_ANY: Final = -(1 << 63)
_Required = Literal[
    "type", "codec", "num_values", "total_uncompressed_size", "total_compressed_size", "data_page_offset"
]
_INTEGER_BOUNDS: Final = ("INT32", "INT64")
_ORDERS: Final = ("TYPE_ORDER", "IEEE_754_TOTAL_ORDER")
"""The orders of bounds that are known here. Zeros of both signs are equal in lookups, and NaN isn't used."""
_INTERVALS: Final = (b"duckdb.interval_bloom_filter", b"normalized-v1")
"""Key and value in the metadata with which DuckDB declares that its filters have both hashes of each interval."""
UNSIGNED_HINT: Final = (
    "get the file from its source again: without its signature, nothing shows what else was changed"
)
PAGES: Final = "pages"
FILTER: Final = "filter"
COLUMN_INDEX: Final = "column_index"
OFFSET_INDEX: Final = "offset_index"


class Tail(NamedTuple):
    """The last eight bytes of a Parquet file. The magic "PARE" means that the footer is encrypted."""

    footer_length: int
    magic: bytes


class RowGroup(NamedTuple):
    """One row group's row count and compressed bytes, and the positions of its chunks' metadata in the footer."""

    rows: int
    chunks: tuple[int, ...]
    compressed_bytes: int | None
    """The row group's own total_compressed_size."""


class Trust(NamedTuple):
    """Which statistics of a column are believed."""

    ordered: bool
    """min_value and max_value: their order is defined."""
    deprecated: bool
    """min and max: the column has signed integers."""
    exact: bool
    """What the statistics say about whether a bound is a value."""
    kind_of_bounds: tuple[int, int]
    """Which bounds are values of their chunk, as for `kernels.is_certain`."""
    null_count: bool
    page_bounds: bool
    """The bounds of the column index."""
    deltas: bool
    """Pages in DELTA_BINARY_PACKED: their deltas have at most the type's bits."""


class Footer:
    """The parsed footer of one file. All fields are decoded lazily from `raw`.

    Attributes:
        path: the file, as the user named it.
        file_bytes: its size.
        start: file offset of FileMetaData's first byte; data can only lie before it.
        raw: FileMetaData as stored; in plain text, with the metadata of columns whose keys are known.
        encryption: how the file is encrypted; None if it isn't.
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
        self._latest_group: tuple[int, Struct] | None = None
        self._chunks_walked = 0
        self._trust: dict[int, Trust] = {}
        self.encryption: Encryption | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The leaf columns, in schema order."""
        return leaf_columns(self.top)

    @cached_property
    def for_arrow(self) -> bytes:
        """`raw` for Arrow, which returns ENUM columns as binary: they are text here."""
        return with_enums_as_text(self.top) if any(column.logical == "ENUM" for column in self.columns) else self.raw

    @cached_property
    def created_by(self) -> str | None:
        """The writer's name and version."""
        return self.top.text("created_by")

    @cached_property
    def normalises_intervals(self) -> bool:
        """Whether DuckDB 2.0 looks up the normal form of intervals in this file, because the footer promises it.

        Source: DuckDB, parquet_statistics.cpp, GetIntervalBloomFilterVersion.
        """
        return any(
            pair.binary("key") == _INTERVALS[0] and pair.binary("value") == _INTERVALS[1]
            for pair in self.key_values()
        )

    def encoded_by(self, encoding: str, keys: Iterable[ChunkKey]) -> bool:
        """Whether the metadata of one of some chunks name an encoding."""
        return any(self.metadata(key).encodings >> spec.ENUMS["Encoding"][encoding] & 1 for key in keys)

    def key_values(self) -> Iterator[Struct]:
        """The writer's own keys and values, walked. Raises CorruptFile."""
        return key_values(self.top)

    def tree(self) -> dict[str, Tree]:
        """The whole footer, decoded. Raises CorruptFile, UnsupportedError."""
        if len(self.raw) > parquet_limits.DUMP_MAX_BYTES:
            raise UnsupportedError(
                f"a footer of {words.counted(len(self.raw), 'byte')}; at most {parquet_limits.DUMP_MAX_BYTES} are"
                " written",
                path=self.path,
                offset=self.start,
                hint="`bloom inspect` without --footer sums it up",
            )
        return {
            "offset": self.start,
            "length": len(self.raw),
            "magic": spec.MAGIC.decode(),
            "FileMetaData": spec.tree_of("FileMetaData", self.raw, self.location),
        }

    @property
    def signed(self) -> bool:
        """Whether the file is encrypted, or its footer is plain text with a signature, which any change breaks."""
        return self.encryption is not None or self.top.span("encryption_algorithm") is not None

    @property
    def signed_error(self) -> UnsupportedError | None:
        """The error about any change to a signed file without its footer's key; None if it can be changed."""
        encryption = self.encryption
        if not self.signed or (encryption is not None and encryption.footer_cipher is not None):
            return None
        return UnsupportedError(
            "the footer is signed, and its key isn't given: any change to it breaks the signature",
            path=self.path,
            field="encryption_algorithm",
            hint=key_hint(None if encryption is None else encryption.footer_key_id),
        )

    @property
    def row_group_count(self) -> int:
        """The number of row groups."""
        return max(len(self._groups) - 1, 0)

    def group_struct(self, index: int) -> Struct:
        """One row group's metadata, walked; the latest is kept, because each of its columns asks for it."""
        kept = self._latest_group  # other threads can replace it
        if kept is None or kept[0] != index:
            walked = Struct("RowGroup", self.raw, self._groups[index], self.location.at(f"row_groups[{index}]"))
            kept = self._latest_group = index, walked
        return kept[1]

    def row_group(self, index: int) -> RowGroup:
        """One row group's sizes, and the positions of its chunks' metadata; walked once for all columns."""
        row_group = self._row_groups.get(index)
        if row_group is None:
            group = self.group_struct(index)
            starts = group.list_starts("columns")
            self._chunks_walked += len(starts)
            if self._chunks_walked > parquet_limits.CHUNKS_MAX:
                raise group.location.too_many(
                    "the column chunks of all row groups", parquet_limits.CHUNKS_MAX, group.start, "columns"
                )
            row_group = self._row_groups[index] = RowGroup(
                group.required_int("num_rows"), tuple(starts[:-1]), group.integer("total_compressed_size")
            )
        return row_group

    def check_groups(self) -> None:
        """Raise CorruptFile if a row group doesn't have a chunk for each leaf column."""
        for _ in self.chunk_keys(set()):
            pass

    def chunk_keys(self, columns: set[int] | None = None, row_group: int | None = None) -> Iterator[ChunkKey]:
        """Yield the keys of chunks in file order: of all columns or of these leaf ordinals, of all row groups or of
        one; then no other is walked. Raises CorruptFile where row groups lack a chunk."""
        leaves = len(self.columns)
        everything = range(leaves)
        chosen = everything if columns is None else sorted(c for c in columns if c in everything)
        for index in range(self.row_group_count) if row_group is None else [row_group]:
            chunks = len(self.row_group(index).chunks)
            if chunks != leaves:
                raise self.location.fault(
                    f"row group {index} has {words.counted(chunks, 'column chunk')}, the schema has "
                    f"{words.counted(leaves, 'leaf column')}",
                    self._groups[index],
                    f"row_groups[{index}].columns",
                )
            for ordinal in chosen:
                yield ChunkKey(index, ordinal)

    def chunks(self, columns: set[int] | None = None, row_group: int | None = None) -> Iterator[ColumnChunk]:
        """Yield the metadata of the chunks of `chunk_keys`, checked. Raises as `chunk`."""
        return map(self.chunk, self.chunk_keys(columns, row_group))

    def filtered(self, columns: set[int] | None) -> Iterator[tuple[ChunkKey, int, ChunkMetadata]]:
        """Yield the chunks of these columns (all if None) that have a filter: key, the filter's offset, metadata."""
        for key in self.chunk_keys(columns):
            metadata = self.metadata(key)
            offset = filter_offset(metadata)
            if offset is not None:
                yield key, offset, metadata

    def chunk_struct(self, key: ChunkKey) -> Struct:
        """One ColumnChunk, walked, to change its bytes or to name a fault in them."""
        return Struct("ColumnChunk", self.raw, self._start_of(key), self._location_of(key))

    def _start_of(self, key: ChunkKey) -> int:
        """The position of a chunk's ColumnChunk in the footer."""
        return self.row_group(key.row_group).chunks[key.column]

    def _location_of(self, key: ChunkKey) -> Location:
        return self.location.at(key.field)

    def sealed(self, key: ChunkKey) -> bool:
        """Whether a chunk's metadata are encrypted, and its key isn't known. What is in plain text is a copy of some
        of them, which can't be changed alone."""
        return self.chunk_struct(key).span("encrypted_column_metadata") is not None

    def metadata(self, key: ChunkKey) -> ChunkMetadata:
        """The metadata of a column chunk as they are in the footer. Raises CorruptFile."""
        try:
            metadata = ChunkMetadata(self.raw, self._start_of(key), parquet_limits.THRIFT_MAX_DEPTH)
        except kernels.CompactError as error:
            raise self._location_of(key).fault(error.reason, error.offset, error.field) from None
        if metadata.encrypted and not self.signed:
            raise self._unsigned(key)
        return metadata

    def check_signed(self) -> None:
        """Raise CorruptFile if a chunk of the first row group is encrypted, and the footer isn't signed."""
        for at, start in enumerate(self.row_group(0).chunks if self.row_group_count else ()):
            with suppress(kernels.CompactError):  # what reads the chunk reports it
                if ChunkMetadata(self.raw, start, parquet_limits.THRIFT_MAX_DEPTH).encrypted:
                    raise self._unsigned(ChunkKey(0, at))

    def _unsigned(self, key: ChunkKey) -> CorruptFile:
        return CorruptFile(
            "a column chunk is encrypted, and the footer has no encryption_algorithm and no signature: they were "
            "taken out, or its writer is faulty",
            path=self.path,
            offset=self.start + self._start_of(key),
            field=self._location_of(key).field,
            hint=UNSIGNED_HINT,
        )

    def _required(self, key: ChunkKey, metadata: ChunkMetadata, field: _Required, minimum: int = 0) -> int:
        """An integer of a chunk's metadata. Raises CorruptFile if it is missing or less than `minimum`."""
        value: int | None = getattr(metadata, field)
        return (
            self.meta_struct(key).required_int(field, minimum=minimum) if value is None or value < minimum else value
        )

    def meta_struct(self, key: ChunkKey) -> Struct:
        """One chunk's ColumnMetaData, walked, to change its bytes or to name a fault in them. Raises CorruptFile."""
        outer = self.chunk_struct(key)
        meta = outer.struct("meta_data", "ColumnMetaData")
        if meta is None:
            raise outer.location.fault("the column chunk has no metadata", outer.start, "meta_data")
        return meta

    def extents(self, key: ChunkKey, metadata: ChunkMetadata) -> tuple[range | None, tuple[int, int | None] | None]:
        """(bytes of the pages, (offset, length) of the filter) of a chunk. Checks nothing else."""
        if not metadata.has_metadata or metadata.file_path:
            self.chunk(key, metadata)  # raises, unless the chunk is encrypted
            return None, None
        size = self._required(key, metadata, "total_compressed_size")
        start = self._required(key, metadata, "data_page_offset", _ANY)
        start, _ = first_page(start, metadata.dictionary_page_offset)
        pages = range(start, start + size) if size or self._required(key, metadata, "num_values") else None
        offset = filter_offset(metadata)
        return pages, None if offset is None else (offset, metadata.bloom_filter_length)

    def index_extents(self, key: ChunkKey, metadata: ChunkMetadata) -> list[tuple[str, int, int]]:
        """(`COLUMN_INDEX` or `OFFSET_INDEX`, offset, length) of a chunk's page indexes. Raises CorruptFile on bad
        ranges."""
        extents = []
        for index, offset, length in (
            (COLUMN_INDEX, metadata.column_index_offset, metadata.column_index_length),
            (OFFSET_INDEX, metadata.offset_index_offset, metadata.offset_index_length),
        ):
            if offset and length:
                if not (len(spec.MAGIC) <= offset <= self.start and 0 < length <= self.start - offset):
                    raise self._location_of(key).fault(
                        f"the {index.replace('_', ' ')} lies at {offset} with {words.counted(length, 'byte')}, "
                        "outside the file's data",
                        self._start_of(key),
                        f"{index}_offset",
                    )
                extents.append((index, offset, length))
        return extents

    def chunk(self, key: ChunkKey, metadata: ChunkMetadata | None = None) -> ColumnChunk:
        """The metadata of a column chunk that filters need, checked. `metadata`: as in the footer, if decoded before.

        Raises CorruptFile, UnsupportedError.
        """
        if metadata is None:
            metadata = self.metadata(key)
        column = self.columns[key.column]
        if not metadata.has_metadata:
            if not metadata.encrypted:
                self.meta_struct(key)  # raises
            return ColumnChunk(
                row_group=key.row_group,
                column=column,
                num_values=0,
                null_count=None,
                compressed_bytes=0,
                uncompressed_bytes=0,
                codec="encrypted",
                data_offset=0,
                data_end=self.start,
                bloom_filter_offset=None,
                bloom_filter_length=None,
                encrypted=True,
                key_hint=self._key_hint(column),
            )
        if metadata.file_path:  # an empty path is none, as Arrow and parquet-java see it
            raise UnsupportedError(
                f"the data lies in another file, {metadata.file_path.decode('utf-8', 'backslashreplace')!r}",
                path=self.path,
                offset=self.start + self._start_of(key),
                field=self._location_of(key).field + ".file_path",
                hint="this is a summary file such as _metadata; give the data files themselves",
            )
        physical = spec.enum_name("Type", self._required(key, metadata, "type"))
        if physical != column.physical:
            meta = self.meta_struct(key)
            raise meta.location.fault(
                f"the chunk is {physical}, the schema says {column.physical}", meta.start, "type"
            )
        return self._chunk(key, metadata, column)

    def is_sound(self, key: ChunkKey, metadata: ChunkMetadata) -> bool:
        """Whether a chunk has all that parquet.thrift requires, and is neither encrypted nor in another file."""
        return metadata.sound(spec.ENUMS["Type"].get(self.columns[key.column].physical, -1), parquet_limits.LIST_MAX)

    def check(self, key: ChunkKey, metadata: ChunkMetadata) -> None:
        """Raise CorruptFile, UnsupportedError for a chunk because of which readers refuse its column, or the file."""
        if self.is_sound(key, metadata):
            return
        self.chunk(key, metadata)
        for field in ("encodings", "path_in_schema") if metadata.has_metadata else ():
            meta = self.meta_struct(key)
            if meta.span(field) is None:
                raise meta.location.fault(f"ColumnMetaData has no {field}", meta.start, field)

    def _chunk(self, key: ChunkKey, metadata: ChunkMetadata, column: Column) -> ColumnChunk:
        pages = self._required(key, metadata, "data_page_offset", _ANY)
        start, dictionary_bytes = first_page(pages, metadata.dictionary_page_offset)
        values = self._required(key, metadata, "num_values")
        if values and (pages <= 0 or not metadata.total_compressed_size) and not self.row_group(key.row_group).rows:
            values = 0  # no page is stored, and readers skip the row group; the proof compares what is stated
        nulls, low, high = self.statistics(key, metadata, column)
        trust = self.trust(column)
        exact = trust.exact
        return ColumnChunk(
            row_group=key.row_group,
            column=column,
            num_values=values,
            null_count=nulls,
            compressed_bytes=self._required(key, metadata, "total_compressed_size"),
            uncompressed_bytes=self._required(key, metadata, "total_uncompressed_size"),
            codec=spec.enum_name("CompressionCodec", self._required(key, metadata, "codec")),
            data_offset=start,
            data_end=self.start,
            dictionary_bytes=dictionary_bytes,
            bloom_filter_offset=filter_offset(metadata),
            bloom_filter_length=metadata.bloom_filter_length,
            min_value=low,
            max_value=high,
            min_exact=metadata.is_min_value_exact if exact else False,
            max_exact=metadata.is_max_value_exact if exact else False,
            only_dictionary_encoded=self.only_dictionary(key, metadata),
            encodings_known=metadata.has_encoding_stats,
            encrypted=metadata.encrypted,
            key_hint=self._key_hint(column) if metadata.encrypted else None,
            wide_deltas=not trust.deltas,
        )

    def _key_hint(self, column: Column) -> str:
        return key_hint(None, column.path) if self.encryption is None else self.encryption.hint(column.path)

    def only_dictionary(self, key: ChunkKey, metadata: ChunkMetadata) -> bool:
        """Whether a chunk's encoding statistics exist and say that every data page is dictionary-encoded."""
        only = metadata.only_dictionary_encoded(parquet_limits.LIST_MAX)
        if only is None:
            meta = self.meta_struct(key)
            location = meta.location.at("encoding_stats")
            for start in meta.list_starts("encoding_stats")[:-1]:
                stats = Struct("PageEncodingStats", self.raw, start, location)
                for field, least in (("page_type", 0), ("encoding", 0), ("count", -(1 << 31))):
                    stats.required_int(field, minimum=least)
        return bool(only)

    @cached_property
    def orders(self) -> Sequence[str | None]:
        """For each leaf column, the name of the order of min_value and max_value; None if it isn't defined."""
        starts = self.top.list_starts("column_orders")
        orders = (Struct("ColumnOrder", self.raw, start, self.location.at("column_orders")) for start in starts[:-1])
        return [order.member() for order in orders]

    def order(self, column: Column) -> str | None:
        """The name of the order of a column's min_value and max_value; None if it isn't defined."""
        return self.orders[column.index] if column.index < len(self.orders) else None

    def trust(self, column: Column) -> Trust:
        """Which statistics of a column are believed: not those that the file's writer gets wrong."""
        trust = self._trust.get(column.index)
        if trust is None:
            wrong = {fault.part for fault in faults(self.created_by) if fault.columns(column)}
            trust = self._trust[column.index] = Trust(
                ordered=Part.BOUNDS not in wrong and self.order(column) in _ORDERS,
                deprecated=Part.BOUNDS not in wrong and column.physical in _INTEGER_BOUNDS and column.signed,
                exact=Part.EXACT_BOUNDS not in wrong,
                kind_of_bounds=NO_VALUES if Part.EXACT_BOUNDS in wrong else kind_of_bounds(column),
                null_count=Part.NULL_COUNT not in wrong,
                page_bounds=Part.PAGE_BOUNDS not in wrong,
                deltas=Part.DELTAS not in wrong,
            )
        return trust

    def counts_values(self, chunk: ColumnChunk) -> bool:
        """Whether the null count says that a chunk has values, and its writer isn't known to leave nulls out."""
        if chunk.null_count is None or not statistics.non_null_values(chunk):
            return False
        return not has_fault(self.created_by, Part.NULL_COUNT, chunk.column)

    def statistics(
        self, key: ChunkKey, metadata: ChunkMetadata, column: Column
    ) -> tuple[int | None, bytes | None, bytes | None]:
        """(null count, minimum, maximum) of a chunk, without those that can't be trusted: they contradict each other,
        their order isn't defined, or the file's writer gets them wrong. Raises CorruptFile."""
        if (fault := metadata.statistics_fault) is not None:
            raise self._location_of(key).fault(fault.reason, fault.offset, "meta_data.statistics")
        trust = self.trust(column)
        low, high = metadata.bounds(trust.ordered, trust.deprecated)
        nulls = metadata.null_count
        if not column.max_definition_level:
            nulls = 0
        elif nulls is not None and (
            statistics.in_counts(metadata.num_values, nulls, bounds=low is not None or high is not None) is not None
            or (nulls and not trust.null_count)
        ):
            nulls = None
        if statistics.has_nan(low, high, column):
            return nulls, None, None
        return nulls, low, statistics.upper_bound(high, column, metadata.is_max_value_exact)

    def row_group_bytes(self, index: int) -> int:
        """Compressed bytes of a row group: the sum over its chunks, which a reader can skip."""
        stated = self.row_group(index).compressed_bytes
        return stated or sum(chunk.compressed_bytes for chunk in self.chunks(None, index))


def filter_offset(metadata: ChunkMetadata) -> int | None:
    """The offset of a chunk's filter; None without one. Writers without filters have written 0 and less
    (PARQUET-1979)."""
    offset = metadata.bloom_filter_offset
    return offset if offset is not None and offset > 0 else None


def first_page(data_page_offset: int, dictionary_page_offset: int | None) -> tuple[int, int | None]:
    """Where a chunk's pages begin, and the bytes before its first data page as far as the metadata give them.

    A dictionary is always the chunk's first page, but the metadata needn't say that there is one: parquet-mr before
    1.12 (PARQUET-1850), Impala 1 and Polars before 1.39 write no `dictionary_page_offset`, or 0, and a
    `data_page_offset` that is the dictionary's. A reader of whole chunks therefore looks at the first page's header,
    and a reader of single pages at `page_index.dictionary_extent`.
    """
    if dictionary_page_offset is not None and 0 < dictionary_page_offset < data_page_offset:
        return dictionary_page_offset, data_page_offset - dictionary_page_offset
    return data_page_offset, None


class Region(NamedTuple):
    """One claim: bytes [start, end) hold `kind` of the chunk at `key`."""

    start: int
    end: int
    kind: str
    key: ChunkKey

    @property
    def name(self) -> str:
        """What the bytes are, for messages."""
        return self.kind.replace("_", " ")


def regions(footer: Footer, unwritten: Callable[[ChunkKey], int | None]) -> list[Region]:
    """The byte ranges of a file that hold pages, filters and page indexes, according to the footer, ordered by start.

    A filter whose size isn't known at all is left out. `unwritten` returns a filter's size if the metadata have none.
    """
    ranges: list[Region] = []
    for key in footer.chunk_keys():
        chunk = footer.metadata(key)
        pages, claim = footer.extents(key, chunk)
        if pages is not None:
            ranges.append(Region(pages.start, pages.stop, PAGES, key))
        if claim is not None:
            start, length = claim
            size = unwritten(key) if length is None else length
            if size is not None and size > 0:
                ranges.append(Region(start, start + size, FILTER, key))
        for kind, offset, length in footer.index_extents(key, chunk):
            ranges.append(Region(offset, offset + length, kind, key))
    return sorted(ranges)


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
    if tail.magic not in {spec.MAGIC, spec.MAGIC_ENCRYPTED}:
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
    """Read and walk a footer in plain text. Raises UnsupportedError for an encrypted one."""
    start, raw, encrypted = read_stored(source)
    if encrypted:
        raise KeyMissing("the footer is encrypted", path=source.path, offset=start)
    return Footer(source.path, source.size, start, raw)


def read_stored(source: Source) -> tuple[int, bytes, bool]:
    """The footer's offset, its bytes as stored, and whether they are encrypted: two reads."""
    tail = read_tail(source)
    start = source.size - spec.FOOTER_TAIL_BYTES - tail.footer_length
    return start, source.read_at(start, tail.footer_length), tail.magic == spec.MAGIC_ENCRYPTED


_EXTENSION_FIELDS: Final = (32767, -16384)


class Extension(NamedTuple):
    """A structure's extension."""

    struct: str
    """`FileMetaData`, `ColumnMetaData`, ..."""
    path: str
    """The field path of the structure in errors; empty for FileMetaData."""
    offset: int
    """The file offset of the field."""
    bytes: int

    @property
    def text(self) -> str:
        """The extension's description, for reports."""
        return f"a binary extension (field 32767 of {self.struct}, {words.plural(self.bytes, 'byte')})"


def extension_of(footer: Footer) -> Extension | None:
    """The extension of FileMetaData."""
    return _extension(footer.top, footer)


def extension_remarks(footer: Footer, what: str) -> tuple[str, ...]:
    """The remark on new filters or page indexes in a file whose FileMetaData have an extension."""
    extension = extension_of(footer)
    if extension is None:
        return ()
    return (
        f"the footer has {extension.text}, such as FlatBuffers metadata: a reader that uses it in place of the "
        f"footer doesn't see the new {what}",
    )


def refuse_extensions(footer: Footer) -> None:
    """Raise UnsupportedError if a structure on the path to the filters has an extension: then none can be cut out."""
    extension = next(_extensions(footer), None)
    if extension is not None:
        raise UnsupportedError(
            f"the footer has {extension.text}, such as FlatBuffers metadata: it may say where filters and page "
            "indexes lie, and would be wrong once filters are taken out or replaced",
            path=footer.path,
            offset=extension.offset,
            field=f"{extension.path}.32767" if extension.path else "32767",
            hint="`bloom add` without --replace and `bloom repair` with --add change only chunks that have none; for "
            "the others, write the file again without the extension",
        )


def _extensions(footer: Footer) -> Iterator[Extension]:
    """Yield the extensions of the footer's structures: FileMetaData, row groups, chunks and their metadata."""
    for struct in (footer.top, *map(footer.group_struct, range(footer.row_group_count))):
        if (extension := _extension(struct, footer)) is not None:
            yield extension
    for key in footer.chunk_keys():
        chunk = footer.chunk_struct(key)
        for part in (chunk, chunk.struct("meta_data", "ColumnMetaData")):
            if part is not None and (extension := _extension(part, footer)) is not None:
                yield extension


def _extension(struct: Struct, footer: Footer) -> Extension | None:
    for number in _EXTENSION_FIELDS:
        raw = struct.spans.get(number)
        if raw is not None and raw[0] == spec.BINARY:
            span = spec.Span(*raw)
            size = len(kernels.compact_bytes(struct.data, span.start))
            return Extension(struct.name, struct.location.field, footer.start + span.header, size)
    return None
