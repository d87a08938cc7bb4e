"""A file whose metadata contain the location of each filter, and the operations that such formats share.

They call modules that have the same functions in each format's folder, and are imported when they are needed. Those
that `LocatedFile` doesn't name itself:

    bloom_filter   Filters: columns, location, locations: which there are, and where; ranges, load: reads them;
                   deep_bytes: what `check.deep` reads
    describe       ordinal, facts, problem_facts, raw: a filter's facts
    check          unusable, sound, overlaps: faults by the metadata
    plan           FoldPlan where filters can be folded

Each format defines its own types of locations and loaded filters; the operations only pass them on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cached_property
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.formats.base import FilterFile, FilterProblem, Plan
from bloomcli.formats.registry import format_named
from bloomcli.formats.size_rule import SizeRule
from bloomcli.hints import NAME, adding
from bloomcli.model.file import Column, FilterFacts

if TYPE_CHECKING:
    from bloomcli.formats.column_search import ColumnSearch
    from bloomcli.model.inspect import FilterDump
    from bloomcli.model.validate import Finding


def delegated(module: str, name: str, of: str = "filters") -> Callable[..., Any]:
    """An operation that a function of a format's module carries out. It takes an attribute of the file, and then the
    arguments of the method in `FilterFile`."""

    def operation(self: LocatedFile, *arguments: Any, **options: Any) -> Any:
        return getattr(self.part(module), name)(getattr(self, of), *arguments, **options)

    return operation


class LocatedFile(FilterFile):
    """An open file whose format has the modules above. `FilterFile` says what its methods do.

    Attributes:
        footer: the metadata.
        filters: the filters that the metadata list.
    """

    searched = indexable = True
    footer: Any
    filters: Any
    chunks_read_whole: int = 0
    """Maximum bytes of a chunk that is read without looking the value up in its dictionary first, which would take
    another request to a store."""

    def part(self, name: str) -> Any:
        """A module of the format's folder."""
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")

    @cached_property
    def describe(self) -> Any:
        """The module with the facts of filters, which is asked for each of them."""
        return self.part("describe")

    def filtered_columns(self) -> set[int]:
        columns: set[int] = self.filters.columns()
        return columns

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        return (facts for _, facts in self.indexed_facts(columns))

    def indexed_facts(self, columns: set[int] | None) -> Iterator[tuple[int, FilterFacts]]:
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
        from bloomcli.model.inspect import FilterDump  # other commands start without it

        self._refuse_unknown_unit(row_group, stripe)
        location = self.filters.location(column.index, row_group, stripe)
        if location is None:
            single, reason = self.stripes is None, self.why_not_added(column)
            command = format_named(self.format).adding(column.path, after=f" adds {'one' if single else 'some'}")
            raise UsageError(
                f"column {column.path} has no filter in row group {row_group}"
                if single
                else f"column {column.path} has no filters in stripe {stripe}",
                path=self.source.path,
                hint=command if reason is None else f"the column can't have a filter: {reason}",
            )
        loaded = self.filters.load(location)
        header, bitset = self.describe.raw(loaded, row_group)
        described = self.describe.facts(self.filters, location, loaded)
        (facts,) = islice(described, 1) if self.stripes is None else islice(described, row_group, row_group + 1)
        return FilterDump(path=self.source.path, facts=facts, header=header, bitset=bitset)

    def _refuse_unknown_unit(self, row_group: int, stripe: int) -> None:
        count, where, whole = self.row_group_count, "", "the file"
        if self.stripes is None and stripe:
            title = format_named(self.format).title
            raise UsageError(f"{title} files have no stripes", path=self.source.path, hint="leave --stripe out")
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
        check = self.part("check")
        self.source.will_read(self.ranges_to_examine(columns))
        for location in self.filters.locations(columns):
            yield from self.examine_one(check, location)
        yield from check.overlaps(self.filters, columns)

    def ranges_to_examine(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of what `examine` reads."""
        yield from self.filters.ranges(columns)

    def examine_one(self, check: Any, location: Any) -> Iterator[FilterFacts | Finding]:
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

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        return int(self.filters.deep_bytes(columns, units))

    def differs_only_in_filters(self, other: FilterFile, columns: set[int] | None) -> bool:
        if not isinstance(other, type(self)):
            return False
        return bool(self.part("splice").differs_only_in_filters(self.footer, other.footer, columns))

    contradictions = delegated("check", "contradictions")
    deep = delegated("check", "deep")
    column_facts = delegated("describe", "column_facts", "footer")
    pages = delegated("describe", "pages", "footer")
    index = delegated("describe", "index")
    schema_tree = delegated("footer", "schema_tree", "footer")
    footer_tree = delegated("footer", "footer_tree", "footer")
    row_group_bits = delegated("index_input", "row_groups")
    bits_sources = delegated("index_input", "sources")
    extents = delegated("sampling", "extents")
    unit_values = delegated("sampling", "unit_values")
    plan_add = delegated("plan", "AddPlan")
    plan_remove = delegated("plan", "RemovePlan")

    def search(self, column: Column) -> ColumnSearch:
        search: ColumnSearch = self.part("search").Search(self, column)
        return search

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Plan to shrink filters. Raises UnsupportedError if the format's filters can't be folded."""
        if self.unfoldable is None:
            plan: Plan = self.part("plan").FoldPlan(self.filters, columns, rule)
            return plan
        raise UnsupportedError(
            self.unfoldable,
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
