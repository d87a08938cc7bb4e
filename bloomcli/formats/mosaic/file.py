"""A Mosaic file as the commands see it: every question about its filters, and every change to them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from bloomcli import kernels
from bloomcli.errors import LiteralError, UsageError
from bloomcli.formats.base import Answer, DeepCheck, FilterFile, Plan, SizeRule, Spread, Tick, UnitAnswers
from bloomcli.formats.mosaic import check, describe, schema, statistics, values
from bloomcli.formats.mosaic.filter_header import FilterProblem, LoadedFilter, load
from bloomcli.formats.mosaic.filterable import unfilterable
from bloomcli.formats.mosaic.footer import FilterPlace, Footer, RowGroup
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn
from bloomcli.hints import adding
from bloomcli.model.file import BitTrail, Column, FilterDump, FilterFacts, FilterSummary, Finding
from bloomcli.storage.source import Source
from bloomcli.values.literals import Literal


class MosaicFile:
    """An open Mosaic file. Opening reads footer, schema and row-group index; filters are read when asked for."""

    format = "mosaic"
    stripes: int | None = None
    unfoldable: str | None = None
    created_by: str | None = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = Footer(source)
        self.rows = sum(group.rows for group in self.footer.row_groups)
        self.row_group_count = len(self.footer.row_groups)
        self.column_count = len(self.footer.columns)

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Version, schema and buckets."""
        return describe.details(self.footer)

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Every column, in name-sorted order."""
        return [schema.column_of(c) for c in self.footer.columns]

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """Those that aren't lists or maps."""
        return [
            replace(schema.column_of(c), unfilterable=unfilterable(c))
            for c in self.footer.columns
            if c.kind not in COMPOUND
        ]

    def why_not(self, column: Column) -> str | None:
        """Nothing more."""
        del column
        return None

    def literal_column(self, column: Column) -> Column:
        """The Parquet type that holds the same values."""
        return schema.literal_column(self.footer.columns[column.index])

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        """Nothing: a filter a row group isn't too many to show."""
        del facts
        return ()

    def places(self, columns: set[int] | None) -> Iterator[FilterPlace]:
        """The filters of these columns, by row group and column. None: all, of unknown columns too."""
        for group in self.footer.row_groups:
            chosen = (p for p in group.filters if columns is None or p.column in columns)
            yield from sorted(chosen, key=lambda p: (p.column, p.position))

    def load(self, place: FilterPlace) -> LoadedFilter:
        """A filter; raises FilterProblem."""
        return load(self.footer, place)

    def filtered_columns(self) -> set[int]:
        """Columns that have a filter in any row group."""
        return {place.column for place in self.footer.filters if place.column < self.column_count}

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns, in row-group then schema order."""
        for place in self.places(columns):
            try:
                loaded = self.load(place)
            except FilterProblem as problem:
                yield describe.problem_facts(self.footer, place, problem)
            else:
                yield describe.facts(self.footer, loaded)

    def _filter_of(self, group: RowGroup, column: int) -> FilterPlace | None:
        """The filter that readers use: the first."""
        return next((p for p in group.filters if p.column == column), None)

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits. Raises UsageError where there is none, FilterProblem where it can't be read."""
        if stripe:
            raise UsageError("Mosaic files have no stripes", path=self.source.path, hint="leave --stripe out")
        if not 0 <= row_group < self.row_group_count:
            raise UsageError(
                f"there is no row group {row_group}; the file has {self.row_group_count}, counted from 0",
                path=self.source.path,
            )
        place = self._filter_of(self.footer.row_groups[row_group], column.index)
        if place is None:
            raise UsageError(
                f"column {column.path} has no filter in row group {row_group}",
                path=self.source.path,
                hint=f"{adding(self.format, column.path)} adds one",
            )
        loaded = self.load(place)
        return FilterDump(
            path=self.source.path,
            facts=describe.facts(self.footer, loaded),
            header=loaded.header_raw,
            bitset=bytes(loaded.bits.bitset),
        )

    def ask(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """Each row group's answers about each literal. A column's bytes are its bucket's: it is read as a whole."""
        mosaic = self.footer.columns[column.index]
        typed = schema.literal_column(mosaic)
        encodings = [self._encodings(literal, mosaic) for literal in literals]
        for group in self.footer.row_groups:
            loaded: LoadedFilter | None = None
            reason: str | None = None
            place = self._filter_of(group, column.index)
            if place is not None:
                try:
                    loaded = self.load(place)
                except FilterProblem as problem:
                    reason = problem.reason
            yield UnitAnswers(
                row_group=group.ordinal,
                rows=group.rows,
                chunk_bytes=group.bucket_bytes(mosaic.bucket),
                row_group_bytes=group.data_bytes,
                answers=tuple(
                    _answer(
                        literal,
                        encoded,
                        loaded,
                        reason,
                        statistics.skips(group, literal, mosaic, typed),
                        group.present(column.index),
                        explain,
                    )
                    for literal, encoded in zip(literals, encodings, strict=True)
                ),
            )

    def _encodings(self, literal: Literal, column: MosaicColumn) -> tuple[bytes, ...]:
        found = values.literal_encodings(literal, column)
        if column.family == "BOOLEAN" and not found:
            raise LiteralError(
                f"{literal.text!r} is not a value of column {column.name}, BOOLEAN",
                path=self.source.path,
                hint="write it like true or false",
            )
        return found

    def total_bytes(self) -> int:
        """Compressed bytes of all row groups."""
        return sum(group.data_bytes for group in self.footer.row_groups)

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """The filters, and findings about them and where they lie."""
        return check.examine(self, columns)

    def without_filter(self, column: Column) -> list[int]:
        """Row groups with rows in which a column has no filter."""
        return [g.ordinal for g in self.footer.row_groups if g.rows and self._filter_of(g, column.index) is None]

    def bytes_of(self, group: RowGroup, columns: set[int]) -> int:
        """Compressed bytes of a row group's buckets that hold any of these columns."""
        buckets = {self.footer.columns[c].bucket for c in columns}
        return sum(group.bucket_bytes(b) for b in buckets)

    def spread(self, column: Column) -> Iterator[Spread]:
        """The statistics' bounds in each row group with a filter."""
        mosaic = self.footer.columns[column.index]
        for group in self.footer.row_groups:
            found = group.statistics.get(column.index)
            if self._filter_of(group, column.index) is not None:
                low, high = (None, None) if found is None else (found.minimum, found.maximum)
                yield Spread(group.ordinal, None, statistics.plain(low, mosaic), statistics.plain(high, mosaic))

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """None: no reader looks for normal forms here."""
        del column
        return ()

    def units(self) -> Sequence[int]:
        """Row groups, one by one."""
        return [1] * self.row_group_count

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Compressed bytes of the buckets of the columns that have filters."""
        known = range(self.column_count)
        return sum(
            self.bytes_of(
                g,
                {p.column for p in g.filters if p.column in known and (columns is None or p.column in columns)},
            )
            for g in self.footer.row_groups
            if units is None or g.ordinal in units
        )

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Look up every value of every readable filter's column."""
        del threads
        return check.deep(self, columns, tick, units)

    def alike(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether schema and index are the same but for these columns' filters."""
        from bloomcli.formats.mosaic import splice

        return isinstance(other, MosaicFile) and splice.alike(self.footer, other.footer, columns)

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """One kind."""
        del column, kind
        return (None,)

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters. Raises UnsupportedError, FilterExists, UsageError."""
        from bloomcli.formats.mosaic import plan

        return plan.AddPlan(self, columns, rule, replace=replace, missing=missing).leaving_out(columns)

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Plan to remove filters."""
        from bloomcli.formats.mosaic import plan

        return plan.RemovePlan(self, columns)

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Plan to shrink filters."""
        from bloomcli.formats.mosaic import plan

        return plan.FoldPlan(self, columns, rule)


def _answer(
    literal: Literal,
    encodings: tuple[bytes, ...],
    loaded: LoadedFilter | None,
    reason: str | None,
    skip: bool | None,
    present: int,
    explain: bool,
) -> Answer:
    there = loaded is not None or reason is not None
    if literal.impossible is not None:
        return Answer(
            presence_known=True, present=False, has_filter=there, stats_skip=skip, reason=literal.impossible
        )
    if not present:
        return Answer(presence_known=True, present=False, has_filter=there, stats_skip=True, reason="only nulls")
    if not encodings or loaded is None:
        why = literal.unknowable if there and not encodings else reason
        return Answer(presence_known=False, present=False, has_filter=there, stats_skip=skip, reason=why)
    hashes = [kernels.xxh64(encoded) for encoded in encodings]
    trail: tuple[BitTrail, ...] = ()
    if explain:
        trail = tuple(_trail(encoded, value, loaded) for encoded, value in zip(encodings, hashes, strict=True))
    found = any(loaded.bits.check(value) for value in hashes)
    return Answer(presence_known=True, present=found, has_filter=True, stats_skip=skip, trail=trail)


def _trail(encoded: bytes, value: int, loaded: LoadedFilter) -> BitTrail:
    block, bits, present = loaded.bits.trail(value)
    return BitTrail(hashed=encoded, hash=value, block=block, bits=bits, present=present)
