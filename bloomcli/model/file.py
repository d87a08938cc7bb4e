"""The contents of a file: columns, chunks, pages and index entries, and the facts of filters, as in reports.

Sizes and offsets are bytes from the start of the file, rates are probabilities in [0, 1], "values" are leaf values
(each list element counts), including nulls unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from bloomcli.model.report import Brief

POWER_OF_TWO: Final = "power-of-two"
"""A power of two, which every reader takes."""
TIGHT: Final = "tight"
"""Any number of blocks, which some readers refuse or misread."""
SIZES: Final = (POWER_OF_TWO, TIGHT)
"""The values of ``--size``."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FilterFacts(Brief):
    """One filter on disk, or why it can't be read (``problem``)."""

    row_group: int
    column: str
    physical: str
    logical: str | None = None
    offset: int
    length: int | None
    """Bytes of header and bitset; from the metadata, else from the header."""
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    blocks: int | None = None
    algorithm: str | None = None
    hash: str | None = None
    compression: str | None = None
    values: int | None = None
    """Non-null leaf values in the chunk; all leaf values if the null count is unknown."""
    ndv_estimate: float | None = None
    """Distinct values, estimated from the set bits."""
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """Measured false-positive probability of a random absent value, exact for the filter's bits."""
    bits_per_value: float | None = None
    """Bits of the bitset per distinct value, by `ndv_estimate`."""
    problem: str | None = None
    stripe: int | None = None
    """ORC: the stripe, counted from 0; ``row_group`` then counts within it."""
    hash_functions: int | None = None
    """ORC: k, the number of bits that a value sets."""
    encoding: str | None = None
    """ORC: the stream's kind, ``BLOOM_FILTER_UTF8`` or ``BLOOM_FILTER``."""
    asked_fpp: float | None = None
    """ORC: the rate that the writer was configured with, estimated from the filter's size and the row index
    stride."""
    untrusted: str | None = None
    """Why readers must not use the filter; None if they may use it."""
    variant: str | None = None
    """Parquet: ``parquet``, or the 2018 draft that the filter's header follows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EngineFilterFacts(Brief):
    """A filter that an engine keeps for a column of a whole file, outside of the format's own structures; or why it
    can't be used (``problem``)."""

    kind: str
    """The engine and its kind of filter: ``hudi-simple``."""
    column: str
    place: str
    """Where the filter lies: ``footer key org.apache.hudi.bloomfilter``."""
    path: str | None = None
    """The file that it lies in; None for the data file itself."""
    offset: int | None = None
    """Where it begins in that file; in a compressed footer, where the footer begins."""
    length: int | None = None
    """Bytes that it takes there, as stored."""
    bits: int | None = None
    """m, in each of `rows`."""
    hash_functions: int | None = None
    """k, the number of bits that a value sets."""
    hash: str | None = None
    rows: int | None = None
    """Filters of m bits that are looked up one after the other: an engine may add one when the last one is full."""
    values: int | None = None
    """Rows of the data file; each has at most one value."""
    sized_for: int | None = None
    """Values for which the writer chose the size."""
    setting: str | None = None
    """The writer's setting for that number."""
    asked_fpp: float | None = None
    """The rate for which the writer chose the size."""
    ndv_estimate: float | None = None
    """Distinct values, estimated from the set bits."""
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """Measured false-positive probability of a random absent value, over all `rows`."""
    low: str | None = None
    high: str | None = None
    """The smallest and the largest value that the engine keeps beside the filter."""
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnSummary(Brief):
    """One column over all row groups, from the metadata and the filters; no values are read."""

    column: str
    physical: str
    logical: str | None
    encodings: tuple[str, ...] = ()
    """Every encoding that the metadata name, also those of levels; empty if the format doesn't record any."""
    compression: tuple[str, ...] = ()
    """The codecs of the column's chunks."""
    values: int | None = None
    """Leaf values, nulls included; None if unknown."""
    nulls: int | None = None
    """From the statistics; None if a row group has none, or has wrong ones."""
    compressed_bytes: int | None = None
    """Bytes of the column's data in the file; None if they can't be separated from the data of other columns."""
    uncompressed_bytes: int | None = None
    dictionary_bytes: int | None = None
    """Parquet: bytes of all dictionary pages; None without dictionaries."""
    distinct: float | None = None
    """Distinct values in the row group (or, from an ORC dictionary, the stripe) with most of them."""
    distinct_from: str | None = None
    """The source of `distinct`: ``statistics``, ``dictionary``, or ``filter``, which is an estimate from set bits."""
    min: str | None = None
    max: str | None = None
    """Bounds of all values, as `probe` takes them; None if the statistics have none that can be trusted."""
    min_exact: bool | None = None
    max_exact: bool | None = None
    """False if the writer shortened the bound, so that it need not be a value; None if the file doesn't say."""
    no_bounds: str | None = None
    """Why the statistics' bounds aren't shown; None if they are, or if there are none."""
    bucket: int | None = None
    """Mosaic: the number of the column's bucket; the columns of a bucket are stored together."""
    row_groups_with_filter: int = 0
    """Row groups with at least one filter of the column, readable or not."""
    row_groups_without_filter: int = 0
    filters: int = 0
    """Filters that can be read."""
    unreadable: int = 0
    bitset_bytes: int = 0
    """Bytes of all bitsets together, without headers."""
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    untrusted: str | None = None
    """Why readers must not use a filter of the column, for the first such filter."""
    variant_path: str | None = None
    """The path of a VARIANT whose values of one type the column has: ``v:$.user.id``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """One part of a column as stored: a page in Parquet, a stream in ORC, a bucket in Mosaic."""

    row_group: int
    """In ORC always 0: a stream has the values of a whole stripe."""
    stripe: int | None = None
    kind: str
    """Parquet: ``DATA_PAGE``, ``DICTIONARY_PAGE``, ... ORC: ``PRESENT``, ``DATA``, ``ROW_INDEX``, ...
    Mosaic: the bucket's layout, ``monolithic``, ``paged`` or ``empty``."""
    offset: int
    header_bytes: int | None = None
    compressed_bytes: int | None = None
    """Bytes in the file, without the header."""
    uncompressed_bytes: int | None = None
    encoding: str | None = None
    """ORC: the encoding of the column in the stripe."""
    values: int | None = None
    """Values, nulls included; for a dictionary, its entries."""
    nulls: int | None = None
    """From the header; None if it doesn't say."""
    rows: int | None = None
    crc: str | None = None
    """The checksum in the header, 8 hex digits; None without one."""
    bucket: int | None = None
    """Mosaic: the bucket's number."""
    problem: str | None = None
    """Why this part, or the parts after it, can't be read or aren't listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The index entry of some rows of a column: a page in Parquet, a row group in ORC and Mosaic."""

    row_group: int
    stripe: int | None = None
    page: int | None = None
    """Parquet: the data page, counted from 0 in its row group."""
    offset: int | None = None
    """Parquet, offset index: the offset of the page's header."""
    compressed_bytes: int | None = None
    """Parquet, offset index: bytes of the page, its header included."""
    first_row: int | None = None
    """Parquet, offset index: the page's first row, counted in its row group."""
    values: int | None = None
    """ORC: values that aren't null. Mosaic: rows."""
    nulls: int | None = None
    has_nulls: bool | None = None
    only_nulls: bool | None = None
    min: str | None = None
    max: str | None = None
    """Bounds, as `probe` takes values; writers may shorten them."""
    boundary_order: str | None = None
    """Parquet, column index: the order of the pages' bounds."""
    positions: tuple[int, ...] = ()
    """ORC: where the row group starts in each of the column's streams."""
    problem: str | None = None
    """Why the entry, or its bounds, aren't shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFilter:
    """The union of a column's filters in an ORC stripe, by which a reader can skip the whole stripe."""

    stripe: int
    encoding: str
    filters: int
    hash_functions: int | None = None
    bits: int | None = None
    set_bits: int | None = None
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """False-positive rate of the joined filter."""
    problem: str | None = None


class Presence(StrEnum):
    """The answer of a filter to whether a value is in its rows."""

    ABSENT = "absent"
    MAYBE = "maybe"
    NO_FILTER = "no filter"
    UNKNOWN = "can't tell"


class Severity(StrEnum):
    """The severity of a finding. ERROR: readers lose rows or fail. WARNING: wasteful, or against the policy."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


UNVERIFIED = "the footer is signed, and its key isn't given: nothing shows whether it was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A leaf column of the file's schema, in schema order."""

    path: str
    """Dotted leaf path as the schema spells it, e.g. ``user.tags.list.element``; in a file that was opened with a
    table's names, as the table spells it."""
    index: int
    """Leaf ordinal: the position of the column's chunk in every row group."""
    physical: str
    """Physical type under the format's own name: ``INT64``, ``FIXED_LEN_BYTE_ARRAY``, ..."""
    logical: str | None = None
    """Logical type as text, e.g. ``DECIMAL(9,2)``, ``TIMESTAMP(MICROS,UTC)``; None when there is none."""
    type_length: int | None = None
    """Width in bytes of a fixed-length type."""
    scale: int = 0
    """Decimal scale."""
    precision: int = 0
    """Decimal precision; 0 for other types."""
    bit_width: int = 0
    """Width of an INTEGER logical type in bits; 0 for other types."""
    signed: bool = True
    """False for unsigned INTEGER logical types."""
    unit: str | None = None
    """``MILLIS``, ``MICROS`` or ``NANOS`` for times and timestamps."""
    utc: bool | None = None
    """isAdjustedToUTC of a time or timestamp; None for other types."""
    max_definition_level: int = 0
    max_repetition_level: int = 0
    type_name: str | None = None
    """The type's usual name, if that is neither the logical nor the physical type."""
    unfilterable: str | None = None
    """Why the column can't or shouldn't have a filter; None if it can."""
    field_id: int | None = None
    """The field id in a file that was opened with a table's names; None without them, or if the column has none."""
    not_in_table: bool = False
    """The file was opened with a table's names, and the table doesn't have the column: `path` says so, and no name or
    glob selects it."""
    wide: str | None = None
    """The type of the table's column, as in `bloomcli.model.schema.ColumnName`; None without a table's names."""
    variant_path: str | None = None
    """The path of a VARIANT whose values of one type the leaf has: ``v:$.user.id``; None for other leaves."""
    untyped: int | None = None
    """The ordinal of the leaf that has the path's values of other types; None if there is none."""

    @property
    def name(self) -> str:
        """The name in reports: the path in a VARIANT, else the leaf's path."""
        return self.variant_path or self.path


def decimal_bytes(precision: int) -> int:
    """Return the bytes of the shortest two's complement form of all decimals with `precision` digits; 16 if that is
    unknown. Source: the Parquet format's LogicalTypes.md, DECIMAL."""
    return int(10**precision - 1).bit_length() // 8 + 1 if precision else 16


class ChunkKey(NamedTuple):
    """The place of a column chunk in its file."""

    row_group: int
    column: int
    """The leaf column's ordinal."""

    @property
    def field(self) -> str:
        """The path of the chunk's ColumnChunk in the footer, for errors."""
        return f"row_groups[{self.row_group}].columns[{self.column}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChunk:
    """The metadata of one column in one row group, including that of its filter."""

    row_group: int
    column: Column
    num_values: int
    """Leaf values in the chunk, nulls included."""
    null_count: int | None
    """From the statistics; None if they don't contain it."""
    compressed_bytes: int
    uncompressed_bytes: int
    codec: str
    data_offset: int
    """Offset of the chunk's first page, which may be the dictionary page."""
    data_end: int
    """Offset behind the data of the file: no page goes on there."""
    dictionary_bytes: int | None = None
    """Bytes from the dictionary page's start to the first data page; None when there is no dictionary."""
    bloom_filter_offset: int | None
    """None when the metadata names no filter. An offset of 0 or less means no filter (PARQUET-1979)."""
    bloom_filter_length: int | None
    """Header included; None in files older than format 2.10."""
    min_value: bytes | None = None
    max_value: bytes | None = None
    """PLAIN-encoded bounds from the statistics; None if they are missing or unreliable."""
    min_exact: bool | None = None
    max_exact: bool | None = None
    """Whether the bound is a value of the chunk, according to the statistics; None if they don't say."""
    only_dictionary_encoded: bool = False
    """Every data page is dictionary-encoded, according to the encoding statistics."""
    encodings_known: bool = False
    """The chunk has encoding statistics."""
    encrypted: bool = False
    """The chunk is encrypted by a key that isn't known: its pages and its filter can't be read."""
    key_hint: str | None = None
    """How that key is given."""
    wide_deltas: bool = False
    """Pages in DELTA_BINARY_PACKED may have deltas with more bits than the type, which Arrow refuses."""

    @property
    def key(self) -> ChunkKey:
        """The chunk's place."""
        return ChunkKey(self.row_group, self.column.index)
