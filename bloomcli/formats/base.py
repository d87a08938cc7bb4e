"""The interface of a format: an open file is a `FilterFile`, a change to it is a `Plan`.

Formats share `located_file` (loops over filters), `answer` (answers from facts and filters) and `deep_check`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError, CorruptFile, KeyMissing, UnsupportedError
from bloomcli.formats.answer import Contents, UnitAnswers, UnitFacts, answers
from bloomcli.formats.size_rule import SizeRule
from bloomcli.hints import quoted, replacing
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column, FilterFacts, IndexEntry, MergedFilter, PageFacts
from bloomcli.storage.base import KeptRange, Pieces, Source

if TYPE_CHECKING:
    from bloomcli.formats.column_facts import ColumnFacts
    from bloomcli.formats.column_search import ColumnSearch
    from bloomcli.formats.filters_in_flight import BuildQueue
    from bloomcli.formats.sampling import Extent, UnitValues
    from bloomcli.model.change import StructureChange
    from bloomcli.model.inspect import FilterDump, FilterSummary
    from bloomcli.model.schema import ColumnNames, RowLineage, SchemaNode
    from bloomcli.model.table_statistics import Key
    from bloomcli.model.validate import Finding
    from bloomcli.storage.sources import ExtendedSource
    from bloomcli.values.literals import Literal
    from bloomcli.values.wkb import Shapes


class FooterEntry(NamedTuple):
    """The value of a key that a writer put into the footer."""

    value: bytes
    offset: int
    """Where the value begins in the file; in a compressed footer, where the footer begins."""


class FilterBounds(NamedTuple):
    """The bounds of the values in one filter."""

    row_group: int
    stripe: int | None
    low: bytes | None
    """Lower bound, PLAIN bytes of `literal_column`; None if unknown."""
    high: bytes | None
    only_dictionary: bool = False
    """Every data page is dictionary-encoded, and the metadata say so."""


class MeasuredColumn(NamedTuple):
    """The values of a column, in a part of a file or in the whole file."""

    column: int
    """`Column.index`."""
    values: int
    """Values, nulls included."""
    nulls: int
    nans: int
    low: Key | None
    """The least value, NaN left out; None if no value is compared."""
    high: Key | None
    compared: bool = True
    """Whether `low` and `high` are those of all values."""
    shapes: Shapes | None = None
    """The measures of geometries, if they are compared with metadata."""

    def plus(self, other: MeasuredColumn) -> MeasuredColumn:
        """Both parts together."""
        lows, highs = (
            [end for end in ends if end is not None] for ends in ((self.low, other.low), (self.high, other.high))
        )
        return MeasuredColumn(
            self.column,
            self.values + other.values,
            self.nulls + other.nulls,
            self.nans + other.nans,
            min(lows, default=None),
            max(highs, default=None),
            self.compared and other.compared,
            None if self.shapes is None or other.shapes is None else self.shapes.joined(other.shapes),
        )


def of_columns(parts: Iterable[MeasuredColumn]) -> dict[int, MeasuredColumn]:
    """The values of each column by its ordinal, from those of its parts."""
    columns: dict[int, MeasuredColumn] = {}
    for part in parts:
        before = columns.get(part.column)
        columns[part.column] = part if before is None else before.plus(part)
    return columns


class DeepCheck(NamedTuple):
    """The outcome of reading every value of a column chunk, and of looking it up in the chunk's filter."""

    values: int = 0
    finding: Finding | None = None
    negative_zero: Finding | None = None
    """Set if a value is -0.0 and the filter doesn't hold +0.0. Readers that look up +0.0 alone lose the value."""
    proof: tuple[Finding, ...] = ()
    """The findings about the other metadata by which readers skip the chunk or parts of it."""
    measured: MeasuredColumn | None = None
    """The values of the chunk."""


class ChangeResult(NamedTuple):
    """The result of an executed change."""

    changes: tuple[FilterChange, ...]
    bytes_decoded: int
    verify: Callable[[Source], None]
    """Re-reads the finished file; raises WriteError when it isn't what was planned."""
    bytes_unreclaimed: int = 0
    """Bytes of filters that are no longer used but could not be cut out."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user about the execution."""
    structures: tuple[StructureChange, ...] = ()
    """Statistics and page indexes that were changed."""


class RowGroupBits(NamedTuple):
    """The bits of a column in one row group, for an index."""

    row_group: int
    rows: int
    bits: bytes | bytearray | None = None
    """The bitset of a split-block filter of the values' XXH64; None without a filter: see `possible`."""
    possible: bool = False
    """Without bits: True if the row group may have any value, False if it has only nulls."""
    contradicted: bool = False
    """Whether the bits lack the minimum or the maximum of the row group's statistics, which then can't be trusted."""
    decoded: int = 0
    """Compressed bytes of the column's pages that were decoded for the bits; 0 where the file's filter has them."""


class BitsSource(NamedTuple):
    """The source of a row group's bits, estimated from the metadata."""

    filter: bool = False
    """The bits are those of the file's filter."""
    reads: int = 0
    """Compressed bytes of the column that are read, if it has no such filter."""


class HashedValues(NamedTuple):
    """The hashes of values, for a lookup in an index."""

    hashes: bytes
    """XXH64 of all forms that files may store for the values, uint64s in native order."""
    unhashed: bool = False
    """Whether a value isn't in filters, such as NaN: every row group with values may have it."""


Tick = Callable[[int], None]
"""Called with the number of bytes processed since the last call."""


class Repair(NamedTuple):
    """What `repair` does to a file."""

    add: frozenset[str]
    """What is added where it is missing (`bloomcli.model.change.ADDITIONS`); if empty, what is wrong is mended."""
    threads: int
    """Column chunks that are read at a time."""


class ColumnSelection(list[Column]):
    """The columns that names and globs select."""

    missing_columns: tuple[str, ...] = ()
    """Columns of the table that names select but that the file doesn't have; columns that only globs select are
    included if nothing else is selected."""

    left_out: tuple[Column, ...] = ()
    """Columns that a glob selects but that can't have a filter, or whose filter makes a reader lose rows."""


class Plan(ABC):
    """A change to a file, planned from its metadata alone. It is executed once, by reading its pieces.

    Attributes:
        bytes_to_copy, bytes_to_decode: bytes of the file.
        new_bytes_bound: upper bound of the bytes of the new file that aren't copied.
        remarks: remarks for the user about the file.
        structures: the planned changes of statistics and page indexes.
        measured: the columns whose values were read for the plan, by ordinal.
    """

    bytes_to_copy: int
    bytes_to_decode: int
    new_bytes_bound: int
    remarks: tuple[str, ...] = ()
    structures: tuple[StructureChange, ...] = ()
    measured: Mapping[int, MeasuredColumn] = MappingProxyType({})
    planned: tuple[FilterChange, ...]
    """The planned changes; sizes are upper bounds. A cached property in a format that takes time to compute them."""
    _left_out: tuple[FilterChange, ...] = ()
    _queue: BuildQueue[Any] | None = None
    """What reads columns while the body is copied."""
    _result: ChangeResult | None = None

    @property
    def estimate(self) -> tuple[FilterChange, ...]:
        """The planned changes, and the columns that globs left out."""
        return self.planned + self._left_out

    def with_left_out(self, columns: Iterable[Column]) -> Self:
        """Also report the columns that globs left out."""
        keep = partial(FilterChange, row_group=None, action="keep", bitset_bytes=None, filters=0)
        self._left_out = tuple(keep(column=column.path, reason=column.unfilterable) for column in columns)
        return self

    def reads(self) -> Iterable[tuple[int, int]]:
        """The offset and length of each range of column values that `pieces` reads. By default none."""
        return ()

    def outline(self) -> Iterable[KeptRange | int]:
        """The approximate new file: kept ranges and, between and after them, numbers of new bytes. By default the
        kept bytes, then the new bytes."""
        yield KeptRange(0, self.bytes_to_copy)
        yield self.new_bytes_bound

    @abstractmethod
    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The new file, in order. If the change needs column values, `threads` threads read them at the same time."""

    def failed(self) -> bool:
        """Whether reading a column has failed: the next piece raises the error, so copying may stop."""
        return self._queue is not None and self._queue.failed()

    def result(self) -> ChangeResult:
        """Return the result. Raises ValueError before all pieces are consumed."""
        if self._result is None:
            raise ValueError("the plan's pieces were not all taken")
        return self._result._replace(changes=self._result.changes + self._left_out)


HINT_REPLACE: Final = replacing()
LEAVE_OUT: Final = "leave it out of --columns, or out of what the policy requires"
"""The hint for a column that can't have a filter."""


class FilterProblem(CorruptFile):
    """The error about a filter that can't be used. `id` is the finding's stable id."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        hint: str | None = HINT_REPLACE,
        id: str = "filter-header",  # noqa: A002
    ) -> None:
        super().__init__(reason, path=path, offset=offset, field=field, hint=hint)
        self.id = id


class EncryptedFilter(FilterProblem, KeyMissing):
    """The error about a filter that is encrypted with its column, and whose key isn't given."""

    exit_code = KeyMissing.exit_code


class FilterFile(ABC):
    """An open file that has filters, or could have them. The defaults of methods fit most formats."""

    format: ClassVar[str]
    source: Source
    rows: int
    row_group_count: int
    column_count: int
    created_by: str | None = None

    stripes: int | None = None
    """The number of stripes; None in formats that have none."""
    encrypted_alike: Collection[int] = frozenset()
    """Ordinals of the columns that are encrypted by AES-GCM with the key of the footer, which is encrypted too.
    DuckDB reads no others."""
    appends_only: bool = False
    """Whether the new file should begin with this whole file, if the change allows it (`Store.appends_only`)."""
    searched: ClassVar[bool] = False
    """Whether the format supports `search`."""
    indexable: ClassVar[bool] = False
    """Whether `row_group_bits` is implemented. In ORC its row groups are the stripes."""
    unfoldable: str | None = None
    """Why the format's filters can't be folded; None where they can."""
    unrepairable: str | None = "only Parquet files can be repaired: other formats have statistics between the data"
    """Why the format's statistics can't be mended; None where they can."""
    missing_columns: Sequence[str] = ()
    """Paths of the table's leaf columns that the file doesn't have; empty without a table's names."""

    def use_names(self, names: ColumnNames) -> None:
        """Give the columns the paths that a table has for them. Call it before other methods.

        A column that the table doesn't have gets `Column.not_in_table`.

        Raises:
            UnsupportedError: the names don't identify the file's columns, or the format can't find columns by a
                table's names, which is the default.
            CorruptFile: several columns of the file have the field id of one column.
        """
        raise UnsupportedError(
            f"columns of {self.format} files can't be found by a table's names", path=self.source.path
        )

    def companion(self, output: str) -> tuple[str, str] | None:
        """The path of a file that readers need next to this one, and its path next to `output`; None if there is
        none."""
        return None

    def with_lineage(self, lineage: RowLineage) -> ExtendedSource | None:
        """The file with columns of row numbers added, so that a copy keeps them; None if it has these columns.

        Raises:
            UnsupportedError: the format can't add columns to a file, which is the default.
        """
        raise UnsupportedError(
            f"the rows of {self.format} files can't keep the row ids that the table's metadata give them",
            path=self.source.path,
            hint="--new-row-ids accepts new ids; rows, deletes and metrics stay",
        )

    @property
    def starts(self) -> Sequence[int]:
        """Offsets of the stripes; empty in formats without stripes, whose pages never move."""
        return ()

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Further facts about the whole file, by name, for `inspect`."""
        return ()

    def footer_entries(self) -> Mapping[str, FooterEntry]:
        """The writer's own keys and values in the footer; the last one of each key. By default none."""
        return {}

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """Columns that may have a filter, in schema order."""

    @property
    def leaves(self) -> Sequence[Column]:
        """The columns with values. Filters can be added to these, except `unfilterable` ones."""
        return self.columns

    @cached_property
    def _leaves(self) -> dict[int, Column]:
        return {leaf.index: leaf for leaf in self.leaves}

    @property
    def unchangeable(self) -> BloomError | None:
        """The error of every command that would change the file; None if it can be changed."""
        return None

    def why_unfilterable(self, column: Column) -> str | None:
        """Return why a leaf can't have a filter, if only its chunks show it; None otherwise. Slow."""
        return None

    def why_not_added(self, column: Column) -> str | None:
        """Return why `add` can't give a column a filter, by its type or its chunks; None if it can. Slow."""
        leaf = self._leaves.get(column.index)
        return "it has no values of its own" if leaf is None else leaf.unfilterable or self.why_unfilterable(leaf)

    def why_unreadable(self, column: Column) -> str | None:
        """Return why a leaf's values can't be read, if metadata show it; None otherwise. Slow."""
        return None

    def needs_key(self, column: Column) -> bool:
        """Whether a leaf is encrypted, and its values can't be read without its key."""
        del column
        return False

    def is_encrypted(self, column: Column) -> bool:
        """Whether a leaf is encrypted, and its values can be read all the same, by its key."""
        return False

    def properties(self, column: Column) -> frozenset[str]:
        """What not every reader copes with in a leaf, of `bloomcli.rules.reader_table.NEWER`."""
        return frozenset()

    def literal_column(self, column: Column) -> Column:
        """The column with the type by which `literals.parse` reads its values."""
        return column

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        """Sum facts up, in a format that has a filter for every few thousand rows; empty in others."""
        return ()

    @abstractmethod
    def filtered_columns(self) -> set[int]:
        """Ordinals of the columns that have a filter anywhere."""

    @abstractmethod
    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns (all if None), in row-group then schema order."""

    def indexed_facts(self, columns: set[int] | None) -> Iterator[tuple[int, FilterFacts]]:
        """`facts`, each with the ordinal of its column."""
        indexes = {column.path: column.index for column in self.columns}
        return ((indexes.get(facts.column, -1), facts) for facts in self.facts(columns))

    def column_facts(self, columns: set[int] | None) -> Iterator[ColumnFacts]:
        """The metadata's facts about these columns (all if None), in schema order; none by default."""
        return iter(())

    def pages(self, column: Column) -> Iterator[PageFacts]:
        """The pages, streams or buckets that store a column. One that can't be read has a `problem`. None by
        default."""
        return iter(())

    def index(self, column: Column) -> Iterator[IndexEntry]:
        """The index entries of a column, by page or row group; none by default."""
        return iter(())

    def merged_filters(self, column: Column) -> Iterator[MergedFilter]:
        """Each stripe's filters of the column, merged; none in formats without stripes."""
        return iter(())

    def schema_tree(self) -> Iterator[SchemaNode]:
        """The format's own schema elements, in preorder; none by default."""
        return iter(())

    def footer_tree(self) -> dict[str, Tree] | None:
        """The whole footer as a JSON object; None in a format without a footer. Raises UnsupportedError if the object
        would take too much memory."""
        return None

    @abstractmethod
    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits. Raises UsageError where there is none, FilterProblem where it can't be read."""

    def extents(self, column: Column) -> Iterator[Extent]:
        """The metadata's facts about a column in each row group, in order; by default without bounds, and with
        filters only if they can be read."""
        from bloomcli.formats.sampling import Extent

        for facts in self.unit_facts(column, ()):
            empty = facts.contents is not Contents.VALUES
            yield Extent(
                rows=facts.rows,
                row_group_bytes=facts.row_group_bytes,
                chunk_bytes=facts.chunk_bytes,
                values=0 if empty else facts.rows,
                nulls=None,
                empty=empty,
                doubtful=True,
                filter_bytes=0 if facts.has_filter else None,
            )

    def unit_values(
        self, columns: Sequence[Column], unit: int, rates: Sequence[float], least: int, stop: Stop
    ) -> Iterator[UnitValues]:
        """The values of leaf columns in one of `units`, with empty filters for these rates of at least `least` bytes.
        Columns whose values can't be read are left out; by default all are. Raises CorruptFile, UnsupportedError;
        Stopped soon after `stop` is set."""
        return iter(())

    def page_reads(self, column: Column, unit: int, stop: Stop) -> tuple[int, int] | None:
        """The bytes of a leaf column's pages in one of `units`, and the mean bytes of those that a lookup of a value
        would read if the file had a page index for it. None if it has one, or can't have one. Raises CorruptFile,
        UnsupportedError; Stopped soon after `stop` is set."""
        return None

    @abstractmethod
    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the facts of a column in each row group (or only in `units`), with the lookups of the literals."""

    def other_types(self, column: Column) -> Mapping[int, str]:
        """The row groups that may have values of the column's path in a VARIANT (`Column.variant_path`) which the
        column doesn't have, as they have another type; each with the reason. None by default."""
        return {}

    @property
    def unverified(self) -> bool:
        """Whether the metadata are signed, and the signature can't be verified without a key. False by default."""
        return False

    def look_up(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """Look literals up in each unit. With `explain`, the answers have the bits that were tested."""
        return answers(self.unit_facts(column, literals), explain=explain)

    def search(self, column: Column) -> ColumnSearch:
        """Return the search for rows by a column's values. Raises UnsupportedError by default."""
        hint = f"`bloom probe` with --column {column.path} says which row groups may have the values"
        raise UnsupportedError(f"find reads no files of the format {self.format}", path=self.source.path, hint=hint)

    def row_group_rows(self) -> Sequence[int]:
        """The rows of each row group, in order. Raises UnsupportedError if the format isn't `indexable`."""
        raise self._unindexable()

    def indexed_column(self, column: Column) -> Column:
        """The Parquet type by which the column's values are hashed for an index. By default the column itself."""
        return column

    def bits_sources(self, column: Column) -> Iterator[BitsSource]:
        """Estimate the reads of `row_group_bits` for each row group. Raises UnsupportedError, CorruptFile."""
        raise self._unindexable()

    def row_group_bits(self, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
        """The bits of a column in each row group, from its filter or from its values, at a false-positive rate.

        Raises CorruptFile, UnsupportedError; Stopped soon after `stop` is set.
        """
        raise self._unindexable()

    def _unindexable(self) -> UnsupportedError:
        return UnsupportedError(f"files of the format {self.format} can't be indexed")

    def end_ranges(self, columns: Sequence[Column]) -> Sequence[tuple[int, int]]:
        """The ranges of the file that an index of these columns keeps, to save a search the request that opens it:
        offsets and lengths in order, the last one up to the file's end. By default none."""
        return ()

    def total_bytes(self) -> int:
        """Compressed bytes of all units."""
        return 0

    @abstractmethod
    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Yield every filter, and the faults of filters and their locations. Reads each filter once, no column."""

    def contradictions(self, columns: set[int] | None) -> Iterator[Finding]:
        """Yield what the statistics and indexes of these columns (of those with filters if None) show to be wrong by
        themselves, without values."""
        return iter(())

    def without_filter(self, column: Column) -> list[int]:
        """Row groups (in ORC stripes) with values in which a column has no filter."""
        return []

    def filter_bounds(self, column: Column) -> Iterator[FilterBounds]:
        """The bounds of the values in each filter of a column, in order."""
        return iter(())

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """Row groups whose filter has no normal form of an interval, though the footer says that filters do. Reads
        the values of an interval column in such a file."""
        return ()

    def uncounted_nulls(self, column: Column) -> Iterator[tuple[int | None, int]]:
        """Yield (stripe, row group) where statistics deny nulls of a field, and a struct that it lies in is null."""
        return iter(())

    def units(self) -> Sequence[int]:
        """The units that `deep` reads (row groups, in ORC stripes): the number of row groups in each."""
        return [1] * self.row_group_count

    def unit_starts(self) -> Sequence[int]:
        """The offset of the first byte of each of `units`; empty if it isn't known."""
        return self.starts

    @abstractmethod
    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Look up every value of every filter's chunk, in these units only (all if None)."""

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Compressed bytes that `deep` reads, at most."""
        return 0

    def differs_only_in_filters(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether another file's metadata equal this file's except for filters of these columns (all if None)."""
        return False

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """The kinds of filter, as `facts` name them, that `bloom add` makes for the option `kind`; for None the kind
        that readers prefer. (None,) in a format with one kind."""
        return (None,)

    @abstractmethod
    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters; raises if they can't be added. With `missing`, only to chunks without a filter."""

    @abstractmethod
    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Plan to remove filters."""

    def with_known_filters(self, columns: set[int] | None) -> set[int] | None:
        """Return columns (all if None). Raises UnsupportedError if it isn't known whether one of them has filters."""
        return columns

    @abstractmethod
    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Plan to shrink filters to the smallest size that meets the rule."""

    def differs_only_in_structures(self, other: FilterFile) -> bool:
        """Whether another file's metadata equal this file's except for statistics and page indexes."""
        return False

    def plan_repair(self, columns: set[int] | None, repair: Repair) -> Plan:
        """Plan to mend or to add statistics and page indexes of these columns (all if None). Raises UnsupportedError
        by default."""
        raise UnsupportedError(
            str(self.unrepairable),
            path=self.source.path,
            hint=f"`bloom validate {quoted(self.source.path)} --deep` checks it",
        )


Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
"""A JSON value."""


def binary(value: bytes, *, text: bool) -> Tree:
    """Bytes as ``{"hex": "..."}``; the bytes of a string as text, if they are UTF-8."""
    if text:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return {"hex": value.hex()}
