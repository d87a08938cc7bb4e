"""What the commands return: frozen dataclasses, no behaviour beyond derived figures.

Sizes and offsets are bytes from the start of the file, rates are probabilities in [0, 1],
"values" are leaf values (list elements counted one by one), nulls included unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Presence(StrEnum):
    """The answer of a filter to "is this value here?"."""

    ABSENT = "absent"
    MAYBE = "maybe"
    NO_FILTER = "no filter"
    UNKNOWN = "can't tell"


class Severity(StrEnum):
    """How bad a finding is. ERROR: readers lose rows or fail. WARNING: wasteful or against policy."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SIGNATURE = "footer signature"
"""Among a report's `details`: the file can't be changed without breaking it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A leaf column of the file's schema, in schema order."""

    path: str
    """Dotted leaf path as the schema spells it, e.g. ``user.tags.list.element``."""
    index: int
    """Leaf ordinal, the position of the column's chunk in every row group."""
    physical: str
    """Physical type by the format's own name: ``INT64``, ``FIXED_LEN_BYTE_ARRAY``, ..."""
    logical: str | None = None
    """Logical type as text, e.g. ``DECIMAL(9,2)``, ``TIMESTAMP(MICROS,UTC)``; None when there is none."""
    type_length: int | None = None
    """Width in bytes of a fixed-length type."""
    scale: int = 0
    """Decimal scale."""
    precision: int = 0
    """Decimal precision; 0 when it isn't a decimal."""
    bit_width: int = 0
    """Width of an INTEGER logical type in bits; 0 when it isn't one."""
    signed: bool = True
    """False for unsigned INTEGER logical types."""
    unit: str | None = None
    """``MILLIS``, ``MICROS`` or ``NANOS`` for times and timestamps."""
    utc: bool | None = None
    """isAdjustedToUTC of a time or timestamp."""
    max_definition_level: int = 0
    max_repetition_level: int = 0
    type_name: str | None = None
    """The type as a person knows it, where that is neither the logical nor the physical one."""
    unfilterable: str | None = None
    """Of a leaf that filters may be asked for: why it gets none, where it can't have one or should have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChunk:
    """One column of one row group, with what the metadata says about its filter."""

    row_group: int
    column: Column
    num_values: int
    """Leaf values in the chunk, nulls included."""
    null_count: int | None
    """From the statistics; None where they don't say."""
    compressed_bytes: int
    uncompressed_bytes: int
    codec: str
    data_offset: int
    """Where the chunk's first page (dictionary page included) starts."""
    dictionary_bytes: int | None = None
    """Bytes from the dictionary page's start to the first data page; None when there is no dictionary."""
    bloom_filter_offset: int | None
    """None when the metadata names no filter; an offset of 0 or below counts as none (PARQUET-1979)."""
    bloom_filter_length: int | None
    """Header included; None in files older than format 2.10."""
    min_value: bytes | None = None
    max_value: bytes | None = None
    """PLAIN-encoded bounds from the statistics, None where they aren't there or can't be trusted."""
    min_exact: bool | None = None
    max_exact: bool | None = None
    """Whether the statistics call a bound a value of the chunk; None where they don't say."""
    only_dictionary_encoded: bool = False
    """Encoding stats say that every data page is dictionary-encoded."""
    encrypted: bool = False
    """The chunk is encrypted with a key of its own: neither its pages nor its filter can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFacts:
    """One filter as it is on disk, or why it can't be read (``problem``)."""

    row_group: int
    column: str
    physical: str
    logical: str | None
    offset: int
    length: int | None
    """Header and bitset; from the metadata, else from the header."""
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    blocks: int | None = None
    algorithm: str | None = None
    hash: str | None = None
    compression: str | None = None
    values: int | None = None
    """Leaf values in the chunk that are not null (all of them where the null count is unknown)."""
    ndv_estimate: float | None = None
    """Distinct values, estimated from the set bits."""
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """Measured false-positive probability of a random absent value, exact for the bits that are there."""
    bits_per_value: float | None = None
    """Bits of the bitset per estimated distinct value."""
    problem: str | None = None
    stripe: int | None = None
    """ORC: the stripe, counted from 0; ``row_group`` then counts within it."""
    hash_functions: int | None = None
    """ORC: k, the bits that a value sets."""
    encoding: str | None = None
    """ORC: the stream's kind, ``BLOOM_FILTER_UTF8`` or ``BLOOM_FILTER``."""
    asked_fpp: float | None = None
    """ORC: the rate that its writer asked for, from the filter's size and the row index stride."""
    untrusted: str | None = None
    """Why readers must not use the filter; None when they may."""
    variant: str | None = None
    """Parquet: ``parquet``, or the draft of 2018 that the filter's header is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSummary:
    """All filters of one column of one kind, where a file has one for each few thousand rows."""

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
    """Mean number of distinct values of a filter."""
    bits: int | None = None
    """m, where all filters have the same."""
    hash_functions: int | None = None
    """k, where all filters have the same."""
    encoding: str | None = None
    asked_fpp: float | None = None
    untrusted: str | None = None
    problem: str | None = None
    """The first filter's that can't be read."""


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
    """One a column and kind, for formats that have a filter for each few thousand rows; else empty."""
    stripes: int | None = None
    """ORC: number of stripes."""
    details: tuple[tuple[str, str], ...] = ()
    """What else is known of the file as a whole: names and values. Mosaic: version, schema, buckets."""

    @property
    def filter_bytes(self) -> int:
        """Bytes that the filters take, headers included."""
        return sum(f.length or 0 for f in self.filters)

    @property
    def unreadable(self) -> int:
        """Filters that could not be read."""
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
    """Where one hash lands in one split-block filter (``probe --explain``)."""

    hashed: bytes
    """The bytes that were hashed (PLAIN encoding)."""
    hash: int
    block: int | None
    """Index of the 32-byte block; None where a filter has no blocks."""
    bits: tuple[int, ...]
    """For each of the block's 8 words the bit (0 to 31), without blocks the k bits, that must be set."""
    present: tuple[bool, ...]
    """For each of them, whether it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one row group says of one value."""

    row_group: int
    value: str
    presence: Presence
    rows: int
    chunk_bytes: int
    """Compressed bytes of the column chunk."""
    row_group_bytes: int
    """Compressed bytes of the whole row group."""
    stats_skip: bool | None
    """Whether min/max statistics alone rule the value out; None where there are none."""
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTotals:
    """What a reader may skip for one value, over the whole file."""

    value: str
    presence: Presence
    """ABSENT when every row group says so, else the weakest answer."""
    row_groups: int
    skipped_row_groups: int
    """Row groups that the filter alone rules out."""
    skipped_bytes: int
    """Compressed bytes of those row groups."""
    stats_skipped_row_groups: int
    """Row groups that min/max statistics alone rule out."""
    gain_row_groups: int
    """Row groups that the filter rules out and the statistics don't."""
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
        """Every value is ruled out in every row group."""
        return all(t.presence is Presence.ABSENT for t in self.totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChange:
    """One filter that was (or, in a dry run, would be) written, folded or removed."""

    row_group: int | None
    """None where the change is about all row groups of a stripe."""
    column: str
    action: str
    """``add``, ``replace``, ``remove``, ``fold`` or ``keep``."""
    bitset_bytes: int | None
    """Size afterwards; in a dry run of ``add`` the upper bound. None after removal."""
    old_bitset_bytes: int | None = None
    values: int | None = None
    """Values hashed (nulls excluded)."""
    fpp: float | None = None
    """Measured afterwards; None in a dry run and after removal."""
    target_fpp: float | None = None
    misses_target: bool = False
    """The cap or the format's ceiling kept the filter from meeting the target."""
    source: str | None = None
    """``dictionary``: the values are those of the dictionary to which data pages refer, and no more of these was
    read than shows it; ``pages``: the column was decoded."""
    stripe: int | None = None
    """ORC: the stripe; the change is then about all its row groups' filters, and sizes are of one."""
    filters: int = 1
    """Filters that the change is about."""
    reason: str | None = None
    """Why nothing is done (``keep``, of no filters): a glob means the column, and it can't have a filter, or a reader
    would lose rows by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """What add, remove or fold did to one file."""

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
    """Compressed bytes of column chunks that were read and decoded. In a dry run an upper bound."""
    bytes_copied: int
    seconds: float
    changes: tuple[FilterChange, ...]
    bytes_unreclaimed: int = 0
    """Bytes of old filters that stay in the file, unused: they lie between row groups, and pages can't move."""
    remarks: tuple[str, ...] = ()
    """What the caller should know of the file or the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that validate found. Ids are stable: scripts may name them."""

    id: str
    severity: Severity
    message: str
    row_group: int | None = None
    column: str | None = None
    offset: int | None = None
    hint: str | None = None
    missing: tuple[str, ...] = ()
    """The first missing values, as text (``--deep``)."""
    stripe: int | None = None
    """ORC: the stripe; ``row_group`` then counts within it."""
    path: str | None = None
    """The file, where a report is of many."""
    off: str | None = None
    """Why the policy switches the rule off here; the finding then doesn't count."""
    known: bool = False
    """It is in the baseline; the finding then doesn't count."""
    places: str | None = None
    """Of a finding about several places: all of them. Row groups such as ``0-3,7``, in ORC those of each stripe,
    ``0:0-3 2:1``, or, where no row group is named, stripes. `row_group` and `stripe` are the first's."""

    @property
    def counts(self) -> bool:
        """It makes `validate` fail: worse than a note, not switched off, not known."""
        return self.severity is not Severity.NOTE and self.off is None and not self.known


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateReport:
    path: str
    format: str
    row_groups: int
    row_groups_read: int
    """Row groups whose values were looked up by ``--deep``; 0 without it."""
    filters_checked: int
    values_checked: int
    """Values looked up by ``--deep``, those of a dictionary once each; 0 without it."""
    deep: bool
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Nothing was found that counts. Of what was looked at: see `row_groups_read`."""
        return not any(f.counts for f in self.findings)
