"""The reports of commands on one file: frozen dataclasses, without behaviour beyond derived figures.

Sizes and offsets are bytes from the start of the file, rates are probabilities in [0, 1],
"values" are leaf values (each list element counts), including nulls unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


SIGNATURE = "footer signature"
"""The name of an entry in a report's `details`. Changing a file with a signed footer would break the signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A leaf column of the file's schema, in schema order."""

    path: str
    """Dotted leaf path as the schema spells it, e.g. ``user.tags.list.element``."""
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
    encrypted: bool = False
    """The chunk is encrypted with its own key: its pages and its filter can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFacts:
    """One filter on disk, or why it can't be read (``problem``)."""

    row_group: int
    column: str
    physical: str
    logical: str | None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSummary:
    """All filters of one column and encoding, in a format that has a filter for every few thousand rows."""

    column: str
    physical: str
    logical: str | None
    filters: int
    unreadable: int
    bitset_bytes: int
    """Bytes of all bitsets together."""
    fill: float | None
    """Mean share of bits set."""
    fpp: float | None
    """Mean false-positive probability."""
    max_fpp: float | None
    ndv_estimate: float | None
    """Mean number of distinct values per filter, estimated from the set bits."""
    bits: int | None = None
    """m, if all filters have the same."""
    hash_functions: int | None = None
    """k, if all filters have the same."""
    encoding: str | None = None
    asked_fpp: float | None = None
    untrusted: str | None = None
    problem: str | None = None
    """Why the first unreadable filter can't be read; None if all can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectReport:
    """A file and every filter in it."""

    path: str
    format: str
    file_bytes: int
    rows: int
    row_groups: int
    columns: int
    created_by: str | None
    filters: tuple[FilterFacts, ...]
    summary: tuple[FilterSummary, ...] = ()
    """One per column and encoding, for formats that have a filter for every few thousand rows; else empty."""
    stripes: int | None = None
    """ORC: number of stripes."""
    details: tuple[tuple[str, str], ...] = ()
    """Other facts about the file, as names and values. Mosaic: version, schema, buckets."""

    @property
    def filter_bytes(self) -> int:
        """Bytes of all filters, headers included."""
        return sum(f.length or 0 for f in self.filters)

    @property
    def unreadable(self) -> int:
        """Filters that can't be read."""
        return sum(f.problem is not None for f in self.filters)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterDump:
    """A filter's bits."""

    path: str
    facts: FilterFacts
    header: bytes
    bitset: bytes
    """Blocks of 32 bytes, each 8 little-endian 32-bit words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitTrail:
    """The bits that one hash selects in one filter (``probe --explain``)."""

    hashed: bytes
    """The bytes that were hashed (PLAIN encoding)."""
    hash: int
    block: int | None
    """Index of the 32-byte block; None for filters without blocks."""
    bits: tuple[int, ...]
    """The selected bits: one (0 to 31) for each of the block's 8 words; k bit numbers for filters without blocks."""
    present: tuple[bool, ...]
    """For each of `bits`, whether it is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer of one row group's filter for one value."""

    row_group: int
    value: str
    presence: Presence
    rows: int
    chunk_bytes: int
    """Compressed bytes of the column chunk."""
    row_group_bytes: int
    """Compressed bytes of the whole row group."""
    stats_skip: bool | None
    """Whether min/max statistics alone rule out the value; None without statistics."""
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTotals:
    """What a reader can skip for one value in the whole file."""

    value: str
    presence: Presence
    """ABSENT if every row group answers so, else the weakest answer."""
    row_groups: int
    skipped_row_groups: int
    """Row groups that the filters alone rule out."""
    skipped_bytes: int
    """Compressed bytes of those row groups."""
    stats_skipped_row_groups: int
    """Row groups that min/max statistics alone rule out."""
    gain_row_groups: int
    """Row groups that the filters rule out and the statistics don't."""
    gain_bytes: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    path: str
    format: str
    column: str
    physical: str
    logical: str | None
    row_groups: int
    total_bytes: int
    """Compressed bytes of all row groups."""
    verdicts: tuple[Verdict, ...]
    totals: tuple[ValueTotals, ...]

    @property
    def absent_everywhere(self) -> bool:
        """Whether every value is ruled out in every row group."""
        return all(t.presence is Presence.ABSENT for t in self.totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChange:
    """One filter that the command wrote, folded or removed (or, in a dry run, would)."""

    row_group: int | None
    """None if the change covers all row groups of a stripe."""
    column: str
    action: str
    """``add``, ``replace``, ``remove``, ``fold`` or ``keep``."""
    bitset_bytes: int | None
    """Size after the change; in a dry run of ``add`` an upper bound. None after removal."""
    old_bitset_bytes: int | None = None
    values: int | None = None
    """Number of non-null values hashed."""
    fpp: float | None = None
    """Measured rate after the change; None in a dry run and after removal."""
    target_fpp: float | None = None
    misses_target: bool = False
    """A size limit, the user's or the format's, keeps the filter from meeting the target."""
    source: str | None = None
    """Where the values come from. ``dictionary``: the dictionary page; of the data pages, only what shows which
    entries they use is read. ``pages``: the decoded column."""
    stripe: int | None = None
    """ORC: the stripe; the change then covers the filters of all its row groups, and sizes are per filter."""
    filters: int = 1
    """Number of filters that the change covers."""
    reason: str | None = None
    """Why a column that a glob matches gets no filter (``keep``, with 0 filters): its type can't have one, or a
    reader would lose rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """The report of add, remove or fold on one file."""

    path: str
    format: str
    command: str
    output: str | None
    """None in a dry run."""
    dry_run: bool
    bytes_before: int
    bytes_after: int
    """In a dry run an upper bound."""
    bytes_decoded: int
    """Compressed bytes of the decoded column chunks. In a dry run an upper bound."""
    bytes_copied: int
    seconds: float
    changes: tuple[FilterChange, ...]
    bytes_unreclaimed: int = 0
    """Bytes of old filters that stay in the file unused, because they lie between row groups and pages can't move."""
    remarks: tuple[str, ...] = ()
    """Notes on the file or the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of validate. Ids are stable: scripts can rely on them."""

    id: str
    severity: Severity
    message: str
    row_group: int | None = None
    column: str | None = None
    offset: int | None = None
    hint: str | None = None
    missing: tuple[str, ...] = ()
    """The first values that the filter misses, as text (``--deep``)."""
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""
    path: str | None = None
    """The file, in a report on many files."""
    off: str | None = None
    """Why the policy switches off the rule for this file or column; the finding then doesn't count."""
    known: bool = False
    """The finding is in the baseline, and therefore doesn't count."""
    places: str | None = None
    """All locations of a finding that has several: row groups (``0-3,7``), in ORC the row groups of each stripe
    (``0:0-3 2:1``), or stripes if the finding names no row group. `row_group` and `stripe` are those of the first."""

    @property
    def counts(self) -> bool:
        """Whether the finding makes `validate` fail: worse than a note, not switched off, not in the baseline."""
        return self.severity is not Severity.NOTE and self.off is None and not self.known


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateReport:
    path: str
    format: str
    row_groups: int
    row_groups_read: int
    """Row groups whose values ``--deep`` looked up in the filters; 0 without ``--deep``."""
    filters_checked: int
    values_checked: int
    """Values that ``--deep`` looked up, those of a dictionary once each; 0 without ``--deep``."""
    deep: bool
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """No finding counts. How much of the file was read: see `row_groups_read`."""
        return not any(f.counts for f in self.findings)
