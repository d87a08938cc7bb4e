"""A file whose metadata contain the location of each filter, and the loops over filters that all formats share.

The loops call modules that have the same functions in each format's folder: `filters` (locates and reads filters),
`describe` (a filter's facts), `check` (its faults), `splice` and `plan`. The last three are imported when they are
needed. Each format defines its own types of locations and loaded filters; the loops only pass them on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.formats.base import DeepCheck, FilterFile, FilterProblem, Plan, Tick
from bloomcli.formats.registry import format_named
from bloomcli.formats.size_rule import SizeRule
from bloomcli.hints import NAME, adding
from bloomcli.model.file import Column, FilterFacts

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump
    from bloomcli.model.validate import Finding


class Filters(Protocol):
    """The filters of an open file. A location is that of a filter; in ORC, that of a column's filters in a stripe."""

    def locations(self, columns: set[int] | None) -> Iterator[Any]:
        """Yield the locations of the filters of these columns (None: all), in row-group then schema order."""

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of what `load` reads for the filters of these columns (None: all)."""

    def location(self, column: int, row_group: int, stripe: int) -> Any | None:
        """Return the location of the filter that readers use; None if there is none."""

    def load(self, location: Any) -> Any:
        """Read a filter. Raises FilterProblem."""

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter anywhere."""

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the values that are compared with the filters of these columns in these units."""


class DescribeModule(Protocol):
    """A format's `describe` module."""

    def ordinal(self, location: Any, /) -> int:
        """The ordinal of a location's column, as the metadata claim it."""

    def facts(self, filters: Any, location: Any, loaded: Any, /) -> Iterator[FilterFacts]:
        """A filter's facts; in ORC those of each row group."""

    def problem_facts(self, filters: Any, location: Any, problem: FilterProblem, /) -> FilterFacts:
        """The facts of a filter that can't be used, with the problem."""

    def raw(self, loaded: Any, row_group: int, /) -> tuple[bytes, bytes]:
        """A filter's header and bitset."""


class CheckModule(Protocol):
    """A format's `check` module."""

    def unusable(self, filters: Any, location: Any, problem: FilterProblem, /) -> Iterator[Finding]:
        """Yield the faults of an unusable filter."""

    def sound(self, filters: Any, location: Any, loaded: Any, facts: Sequence[FilterFacts], /) -> Iterator[Finding]:
        """Yield the faults of a usable filter."""

    def overlaps(self, filters: Any, columns: set[int] | None, /) -> Iterator[Finding]:
        """Filters of these columns (None: all) that share bytes with something else."""

    def contradictions(self, filters: Any, columns: set[int] | None, /) -> Iterator[Finding]:
        """Faults of statistics and row indexes of these columns (None: of those with filters) that show without
        values."""

    def deep(
        self, filters: Any, columns: set[int] | None, tick: Tick, units: Container[int] | None, threads: int, /
    ) -> Iterator[DeepCheck]:
        """Look up every value of every column in its usable filters."""


class SpliceModule(Protocol):
    """A format's `splice` module."""

    def differs_only_in_filters(self, before: Any, after: Any, columns: set[int] | None, /) -> bool:
        """Whether two footers are equal except for the filters of these columns (None: all)."""


class LocatedFile(FilterFile):
    """An open file whose format has the modules above.

    Attributes:
        title: the format's name in messages.
        footer: the metadata.
        filters: the filters that the metadata list.
        describe: the format's `describe` module.
    """

    title: ClassVar[str]
    describe: ClassVar[DescribeModule]
    footer: Any
    filters: Filters
    chunks_read_whole: int = 0
    """Maximum bytes of a chunk that is read without looking the value up in its dictionary first, which would take
    another request to a store."""

    @abstractmethod
    def check(self) -> CheckModule:
        """The format's `check` module."""

    @abstractmethod
    def splice(self) -> SpliceModule:
        """The format's `splice` module."""

    def filtered_columns(self) -> set[int]:
        """Ordinals of the columns that have a filter anywhere."""
        return self.filters.columns()

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns (None: all), in row-group then schema order."""
        return (facts for _, facts in self.indexed_facts(columns))

    def indexed_facts(self, columns: set[int] | None) -> Iterator[tuple[int, FilterFacts]]:
        """`facts`, each with the ordinal of its column."""
        self.source.will_read(self.filters.ranges(columns))
        return chain.from_iterable(map(self.facts_of, self.filters.locations(columns)))

    def facts_of(self, location: Any) -> Iterator[tuple[int, FilterFacts]]:
        """The facts of the filters of one location, each with the ordinal of its column."""
        index = self.describe.ordinal(location)
        try:
            loaded = self.filters.load(location)
        except FilterProblem as problem:
            yield index, self.describe.problem_facts(self.filters, location, problem)
        else:
            self.compare(location, loaded)
            for facts in self.describe.facts(self.filters, location, loaded):
                yield index, facts

    def compare(self, location: Any, loaded: Any) -> None:
        """Compare a filter with the footer's facts about the whole file, for `column_facts`. Nothing by default."""

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits. Raises UsageError where there is none, FilterProblem where it can't be read."""
        from bloomcli.model.inspect import FilterDump

        self._refuse_unknown_unit(row_group, stripe)
        location = self.filters.location(column.index, row_group, stripe)
        if location is None:
            one = self.stripes is None
            raise UsageError(
                f"column {column.path} has no filter in row group {row_group}"
                if one
                else f"column {column.path} has no filters in stripe {stripe}",
                path=self.source.path,
                hint=format_named(self.format).adding(column.path, after=f" adds {'one' if one else 'some'}"),
            )
        loaded = self.filters.load(location)
        header, bitset = self.describe.raw(loaded, row_group)
        described = self.describe.facts(self.filters, location, loaded)
        (facts,) = islice(described, 1) if self.stripes is None else islice(described, row_group, row_group + 1)
        return FilterDump(path=self.source.path, facts=facts, header=header, bitset=bitset)

    def _refuse_unknown_unit(self, row_group: int, stripe: int) -> None:
        count, where, whole = self.row_group_count, "", "the file"
        if self.stripes is None and stripe:
            raise UsageError(f"{self.title} files have no stripes", path=self.source.path, hint="leave --stripe out")
        if self.stripes is not None:
            if not 0 <= stripe < self.stripes:
                raise UsageError(
                    f"there is no stripe {stripe}; the file has {self.stripes}, counted from 0",
                    path=self.source.path,
                    hint=_range_hint("--stripe", self.stripes),
                )
            count, where, whole = self.units()[stripe], f" in stripe {stripe}", "it"
        if not 0 <= row_group < count:
            raise UsageError(
                f"there is no row group {row_group}{where}; {whole} has {count}, counted from 0",
                path=self.source.path,
                hint=_range_hint("--row-group", count),
            )

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Yield every filter, and the faults of filters and their locations. Reads each filter once, no column."""
        check = self.check()
        self.source.will_read(self.ranges_to_examine(columns))
        for location in self.filters.locations(columns):
            yield from self.examine_one(check, location)
        yield from check.overlaps(self.filters, columns)

    def contradictions(self, columns: set[int] | None) -> Iterator[Finding]:
        """What the statistics and indexes show to be wrong by themselves."""
        return self.check().contradictions(self.filters, columns)

    def ranges_to_examine(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of what `examine` reads."""
        return self.filters.ranges(columns)

    def examine_one(self, check: CheckModule, location: Any) -> Iterator[FilterFacts | Finding]:
        """Yield the filters of one location, and their faults."""
        filters = self.filters
        try:
            loaded = filters.load(location)
        except FilterProblem as problem:
            yield self.describe.problem_facts(filters, location, problem)
            yield from check.unusable(filters, location, problem)
        else:
            facts = tuple(self.describe.facts(filters, location, loaded))
            yield from facts
            yield from check.sound(filters, location, loaded, facts)

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Look up every value of every column in its usable filters, in these units only (None: all)."""
        return self.check().deep(self.filters, columns, tick, units, threads)

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Compressed bytes that `deep` reads, at most."""
        return self.filters.deep_bytes(columns, units)

    def differs_only_in_filters(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether another file's metadata equal this file's except for filters of these columns (None: all)."""
        return isinstance(other, type(self)) and self.splice().differs_only_in_filters(
            self.footer, other.footer, columns
        )

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Raises UnsupportedError: the format's filters can't be folded."""
        del columns
        raise UnsupportedError(
            str(self.unfoldable),
            path=self.source.path,
            hint=adding(
                NAME, "--replace", "--fpp", f"{rule.fpp:g}", after=" builds a column's filters anew, at this rate"
            ),
        )


def _range_hint(option: str, count: int) -> str:
    """A hint with the numbers that an option takes, counted from 0."""
    return (
        f"{option} takes 0 to {count - 1}" if count > 1 else f"leave {option} out" if count else "it has no filters"
    )
