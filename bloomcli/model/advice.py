"""The results of `advise`: what was measured in each file, and the report on the columns over all files.

A unit is a row group; in ORC a stripe, which contains several row groups. Bytes are compressed bytes.

In the report, sizes are bytes, rates and shares are numbers in [0, 1]. An `Interval` is an estimate with its 95 %
confidence interval; the modules of bloomcli/advice have the formulas and their sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import POWER_OF_TWO, Column, EngineFilterFacts
from bloomcli.model.reader_use import ReaderUse
from bloomcli.model.report import Brief, Rows

SELDOM: Final = "seldom-looked-up"
"""The reason of a column that would gain, and whose values are seldom looked up."""
SUMS: Final = 4
"""Number of sums that don't depend on a rate: row groups and bytes by min/max, row groups and bytes today."""
RATE_SUMS: Final = 3
"""Number of sums for each rate: row groups and bytes with the filter, and bytes of the filters that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnExtents:
    """The metadata of a column of one file. Sequences have an item for each row group of the file."""

    column: str
    type: str
    typed: Column
    """The type by which `literals` reads and renders values. Its path and index have no meaning."""
    unfilterable: str | None
    loses_rows: bool
    values: tuple[int, ...]
    """Upper bound of the number of values that aren't null."""
    nulls: int | None
    chunk_bytes: int
    lows: tuple[bytes | None, ...]
    highs: tuple[bytes | None, ...]
    """PLAIN bytes of `typed`; None without a bound."""
    empty: bytes
    """1 for row groups that contain only nulls according to the metadata."""
    dictionary: int
    """Row groups in which every data page is dictionary-encoded."""
    filters: int
    without_filter: int
    """Row groups that have values and no filter."""
    filter_bytes: int
    properties: frozenset[str] = frozenset()
    """The properties of the column, as `FilterFile.properties` gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExtents:
    """The metadata of a file."""

    format: str
    bytes: int
    rows: int
    units: tuple[int, ...]
    """The number of row groups of each unit."""
    row_group_bytes: tuple[int, ...]
    columns: tuple[ColumnExtents, ...]
    engine_filters: tuple[EngineFilterFacts, ...] = ()
    unverified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFilterAdvice:
    """Filters that an engine keeps for the files, and that are larger than their values need."""

    kind: str
    column: str
    files: int
    bytes: int
    """Bytes of the filters as stored, in all files."""
    bytes_right: int
    """Bytes of filters for `values` values each, at the rate of the present ones."""
    values: int
    """Rows of the largest file."""
    setting: str
    """The setting of the engine's writer: ``hoodie.index.bloom.num_entries=500``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingSample:
    """The existing filters of a column in a sampled unit, read and measured."""

    unreadable: int = 0
    measured: int = 0
    """Filters that were read completely. The following fields describe only these."""
    foldable_bytes: int = 0
    max_fpp: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSample:
    """One column of one sampled unit."""

    column: str
    unit: int
    typed: Column
    sketch: bytes
    """A bottom-k sketch of the values' hashes: the limit below which it has all of them, then the hashes."""
    filter_bytes: tuple[int, ...]
    """Bitset bytes of the new filters of all row groups, for each rate."""
    filter_fpp: tuple[float, ...]
    """The sum of their measured false-positive rates, for each rate."""
    highest_fpp: tuple[float, ...]
    """The highest of these rates, for each rate."""
    tight_bytes: tuple[int, ...]
    """Their expected bytes with tight sizes (any number of blocks)."""
    row_groups: int
    fixed_filters: bool
    """The size of a filter doesn't depend on its values."""
    seconds: float
    """Time to decode and hash the values, and to build the filters."""
    existing: ExistingSample
    page_reads: tuple[int, int] | None = None
    """Bytes of the column's pages in the unit, and the mean bytes of those that a lookup would read with a page
    index; None where there is one, or can't be one."""
    values: tuple[bytes, ...] = ()
    """A random sample of distinct values, PLAIN bytes of `typed`."""
    sums: bytes = b""
    """float64s, cells x sums: the sums of the lookups of each cell in this unit. If the unit has `values`, these are
    looked up, in two cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRow(FileRow):
    """The row of one file of a run of `advise`, with its metadata and samples."""

    extents: FileExtents | None = None
    units: tuple[UnitSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedColumn:
    """The lookups of one column in all statements."""

    column: str
    """The leaf path as the files spell it. If no columns are given: as the statements write it, with aliases
    resolved."""
    lookups: int
    """Values in `=` and `IN` predicates, with repetitions: an `IN` of 3 values counts as 3."""
    statements: int
    """Statements that look the column up."""
    without_literal: int = 0
    """The part of `lookups` whose value isn't in the statement: parameters (`?`, `:id`, `$1`), results of functions,
    and texts that are too long to keep."""
    literals: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """Values as `bloom probe` takes them, each with its count, the most frequent first. All values if at most
    `MOST_LITERALS` are distinct; otherwise the values of a uniform random sample of `MOST_LITERALS` lookups."""
    sampled: bool = False
    """`literals` are a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedPredicate:
    """Predicates of one kind and column that no filter of a single column can serve."""

    kind: str
    """``range``, ``like``, ``expression`` (of the column, or a comparison that casts it), ``join``, ``negation``,
    ``null``, ``or``, ``subquery``, ``not-in-files`` (the files have no such column: a partition column)."""
    column: str | None
    """None if the predicate involves several columns."""
    count: int
    example: str
    """The first one, as SQL with `?` in place of each literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLog:
    """The lookups in a log of SQL queries, for `advise --queries` and `trial --queries`.

    Only `QueriedColumn.literals` contains values of the queries. The examples are SQL with `?` in place of each
    literal, so that reports can show them.
    """

    statements: int
    """All statements, the unreadable ones included."""
    about_table: int
    """Statements that read the table in question."""
    unreadable: int
    """Statements that the dialect's parser rejects, and lines of JSON without a statement."""
    unreadable_examples: tuple[str, ...]
    """The first ones, shortened, with `?` in place of each literal."""
    columns: tuple[QueriedColumn, ...]
    """The column with the most lookups first."""
    unserved: tuple[UnservedPredicate, ...]
    """The most frequent first."""
    tables: tuple[tuple[str, int], ...] = ()
    """Every table that statements read, with the number of statements, the most read first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate, and the ends of its 95 % confidence interval. An exact figure has equal ends."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupCost:
    """What readers read to look up one value (`=`): means over the sampled values."""

    row_groups: Interval
    """The share of the row groups that are read."""
    bytes: Interval
    """Compressed bytes of these row groups, all columns; the filters that are read for it not included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupGain:
    """The lookup cost for one kind of value, present or absent: with the files as they are today, and with new
    filters."""

    values: int
    """Values that were looked up."""
    today: LookupCost
    """With min/max statistics, existing filters, and dictionaries if all named readers use them."""
    with_filter: LookupCost
    """With these, and with filters of the recommended size for all row groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRate:
    """The cost and savings of new filters for all row groups, at one rate."""

    fpp: float
    filter_bytes: Interval
    """Bitset bytes of the filters of all row groups."""
    present: LookupCost | None
    """The lookup of a present value with these filters."""
    absent: LookupCost | None
    """The lookup of an absent value with these filters."""
    queried: LookupCost | None
    """The lookup of a literal of the queries, weighted by frequency; None without queries of the column."""
    saved_present: Interval | None
    """Compressed bytes that one lookup of a present value saves compared with today, minus the bytes of the filters
    that it reads; may be negative. `saved_absent` and `saved_queried` are the same for the other values."""
    saved_absent: Interval | None
    saved_queried: Interval | None
    tight_bytes: float | None = None
    """An estimate of `filter_bytes` with tight sizes (any number of blocks); equal to it if sizes are tight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingFilters:
    """The existing filters of a column."""

    filters: int
    row_groups_without_filter: int
    bitset_bytes: int
    max_fpp: float | None
    """The highest measured false-positive rate."""
    foldable_bytes: int
    """Bytes that `bloom fold` would save at the rate."""
    judgement: str = "worth"
    """One of ``worth``, ``not-worth``, ``saturated``, ``foldable``, ``missing``, ``unreadable``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageIndexGain:
    """What a lookup of a value reads in a row group that has it: means over the sampled row groups without a page
    index. The pages of other columns aren't included; readers skip those, too."""

    bytes: float
    """Compressed bytes of the column's pages, all of which are read today."""
    with_index: float
    """Compressed bytes of the pages whose bounds would include the value."""

    @property
    def pays(self) -> bool:
        """Whether a lookup reads at most half as much: the values are in order, or in clusters."""
        return self.with_index * 2 <= self.bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnAdvice(Brief):
    """One leaf column: its figures, and the recommendation."""

    column: str
    type: str
    """The logical type, or the physical one if there is none."""
    recommended: bool
    reason: str
    """Why it is recommended or not, as one sentence."""
    reason_id: str
    """The kind of the reason, stable for scripts: ``saves``, ``sorted``, ``few-values``, ``dictionary``,
    ``loses-rows``, ``costs-more``, ``over-budget``, ``not-queried``, ``seldom-looked-up``, ``has-filters``,
    ``no-reader``, ``unfilterable``, ``unknown``."""
    fpp: float | None = None
    """The rate for which the recommended size is computed."""
    filter_bytes: Interval | None = None
    """Bitset bytes of the filters of all row groups at this rate."""
    filter_share: float | None = None
    """`filter_bytes` as a share of the bytes of all files."""
    seconds_to_add: Interval | None = None
    files: int = 0
    row_groups: int = 0
    rows: int = 0
    nulls: int | None = None
    """From the statistics; None if a row group doesn't have them."""
    column_bytes: int | None = None
    distinct: Interval | None = None
    """Distinct values over all files."""
    distinct_per_row_group: Interval | None = None
    overlap: Interval | None = None
    """The share of the row groups whose min/max range contains a value; 1 where min/max prunes nothing."""
    dictionary_row_groups: int | None = None
    """Row groups in which every data page is dictionary-encoded."""
    one_value_per_row_group: bool = False
    """Each row group with values has one only, which is its minimum and maximum, so that no filter excludes more."""
    unfilterable: str | None = None
    """Why `bloom add` makes no filter for the column: its type, or a reader that would lose rows, with the rule."""
    loses_rows: bool = False
    """The reason in `unfilterable` is a reader that would lose rows."""
    present: LookupGain | None = None
    absent: LookupGain | None = None
    queried: LookupGain | None = None
    """The literals of the queries; None without queries of the column."""
    rates: tuple[AtRate, ...] = ()
    """The filters at several rates, the highest first; `filter_bytes` and the gains are those of one of them."""
    saved_bytes: Interval | None = None
    """Bytes that one lookup saves with the filter, minus the filter's own bytes. With queries, for their literals;
    otherwise the mean for present and absent values, weighted by `AdviseReport.present_share`."""
    today_bytes: float | None = None
    """Bytes that one lookup reads today: the mean with the same weights as `saved_bytes`."""
    with_filter_bytes: float | None = None
    """Bytes that one lookup reads with the filter, those of the filter included."""
    lookups: int | None = None
    """Lookups of the column in the queries, one for each literal; None without queries."""
    variant_path: str | None = None
    """The path of a VARIANT whose values of one type the column has: ``v:$.user.id``."""
    properties: tuple[str, ...] = ()
    """What not every reader copes with: ``ALP``, ``encrypted``, ``VARIANT`` (a field of one)."""
    existing: ExistingFilters | None = None
    page_index: PageIndexGain | None = None
    """What a page index saves; None if the sampled row groups have one, or can't have one."""
    sampled_row_groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseTotal:
    """The recommended filters together: what lookups read today and with them, and what they cost."""

    lookups: int | None
    """Lookups of these columns in the queries; None without queries."""
    today_bytes: float
    """Bytes that one lookup reads today: the mean over the recommended columns, weighted by their lookups."""
    with_filter_bytes: float
    """Bytes that one lookup reads with the filters, those of the filters included."""
    filter_bytes: float
    filter_share: float | None
    """`filter_bytes` as a share of the bytes of all files."""
    seconds_to_add: float
    """On one core, without the time to copy the other bytes of the files."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdviseReport(Rows):
    """The advice on a file, or on all files of a dataset or a table."""

    rows_in: ClassVar = (ColumnAdvice, "columns")

    paths: tuple[str, ...]
    files: int
    row_groups: int
    rows: int
    bytes: int
    """Bytes of all files."""
    sampled_files: int
    sampled_row_groups: int
    seed: int
    fpp: float
    """The requested rate."""
    readers: tuple[str, ...]
    policy: str | None = None
    """The policy file whose readers and settings of rules apply; None without one."""
    columns: tuple[ColumnAdvice, ...]
    """Recommended columns first, by `saved_bytes`; then the others, in schema order."""
    present_share: float = 0.5
    """The share of lookups whose value the files have, for columns without literals of queries."""
    formats: tuple[str, ...] = ()
    """The formats of the files."""
    total: AdviseTotal | None = None
    """The recommended filters together; None if nothing is recommended."""
    uses: tuple[ReaderUse, ...] = ()
    """What filters do for each reader: for the named ones, or else for all that read files directly. The columns are
    those that are recommended, that have good filters, or that only dictionaries serve."""
    budget_bytes: int | None = None
    budget_used: int | None = None
    """Bytes of the recommended filters."""
    budget_gap: float | None = None
    """An upper bound of what the best filters within the budget could save in addition, as a share of what the
    recommended filters save; 0 if no other filters within the budget save more."""
    queries: QueryLog | None = None
    """The lookups in the queries; None without queries."""
    command: str | None = None
    """The `bloom add` commands for the recommended filters, one per line: one for each rate, and one for columns
    whose filters are replaced. None if nothing is recommended."""
    size: str = POWER_OF_TWO
    """The sizes of new filters: "power-of-two", or "tight" if readers are named and all accept any size."""
    tight_saves: int | None = None
    """Bytes of the recommended filters that tight sizes would save; None if nothing is recommended."""
    in_table: str | None = None
    """The table that the files belong to, and why its files can't be changed by path. The commands name the table.
    None if no table was found."""
    upkeep: str | None = None
    """The `bloom fold` and `bloom remove` commands, one per line, for filters that are larger than the rate needs, or
    that save nothing; None without such filters."""
    engine_filters: tuple[EngineFilterAdvice, ...] = ()
    """Filters that engines keep themselves, and that are larger than their values need."""
    page_index_command: str | None = None
    """The `bloom repair` command that adds page indexes for the columns where they pay; None without such columns."""
    failed: tuple[tuple[str, str], ...] = ()
    """Files that couldn't be read, each with the reason."""
    unverified: int = 0
    """Files whose footer is signed, and its key isn't given."""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """3 if a file couldn't be read, otherwise 0."""
        return 3 if self.failed else 0
