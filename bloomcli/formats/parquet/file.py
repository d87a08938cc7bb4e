"""A Parquet file as the commands see it: every question about its filters, and every change to them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from bloomcli import kernels
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.filters import hashes
from bloomcli.formats.base import Answer, DeepCheck, FilterFile, Plan, SizeRule, Spread, Tick, UnitAnswers
from bloomcli.formats.deep_check import WRONG
from bloomcli.formats.parquet import bounds, check, describe, extension, values
from bloomcli.formats.parquet.filter_header import FilterProblem, LoadedFilter, load, load_header
from bloomcli.formats.parquet.filterable import unfilterable, unreadable
from bloomcli.formats.parquet.footer import ChunkPlace, read_footer
from bloomcli.hints import adding
from bloomcli.model.file import (
    SIGNATURE,
    BitTrail,
    Column,
    ColumnChunk,
    FilterDump,
    FilterFacts,
    FilterSummary,
    Finding,
)
from bloomcli.storage.source import Source
from bloomcli.values.literals import Literal, excluded_by


class ParquetFile:
    """An open Parquet file. Opening reads the tail and the footer; filters are read when asked for."""

    format = "parquet"
    stripes: int | None = None
    unfoldable: str | None = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = read_footer(source)
        self.rows = self.footer.rows
        self.row_group_count = self.footer.row_group_count
        self.column_count = self.footer.column_count
        self.created_by = self.footer.created_by

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """The footer's signature and its extension, if it has them."""
        signed = ((SIGNATURE, "any change breaks it: no filters can be added"),) if self.footer.signed else ()
        found = extension.of_footer(self.footer)
        return signed if found is None else (*signed, ("footer extension", f"field 32767, {found.bytes:,} bytes"))

    @property
    def dictionaries_hold_values_only(self) -> bool:
        """Whether every entry of a dictionary is a value of its chunk, so that data pages need not tell.

        parquet-java adds an entry as a value is written. Arrow and DuckDB write dictionaries that an array or
        a type has, of which a row group may have few; of other writers it isn't known.
        """
        return (self.created_by or "").startswith("parquet-mr ")

    @property
    def columns(self) -> Sequence[Column]:
        """Leaf columns in schema order."""
        return self.footer.columns

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """The same: Parquet has filters for leaves only."""
        return [replace(c, unfilterable=why) if (why := unfilterable(c)) else c for c in self.footer.columns]

    def why_not(self, column: Column) -> str | None:
        """Its chunks are encrypted, or in a codec that isn't known here."""
        return None if self.footer.signed else unreadable(self.footer, column)  # nothing can be changed there

    def literal_column(self, column: Column) -> Column:
        """Parquet's own."""
        return column

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        """Nothing: a filter a row group isn't too many to show."""
        del facts
        return ()

    def places(self, columns: set[int] | None) -> Iterator[ChunkPlace]:
        """Chunks whose metadata names a filter."""
        return (claim.place for claim in self.footer.filter_claims(columns) if claim.is_filter)

    def filtered(self, columns: set[int] | None, units: Container[int] | None = None) -> Iterator[ColumnChunk]:
        """The same, decoded, in row-group then schema order; of all row groups, or of those in `units`."""
        for claim in self.footer.filter_claims(columns):
            if claim.is_filter and (units is None or claim.place.row_group in units):
                yield self.footer.chunk(claim.place, claim.walked)

    def filtered_columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {place.column for place in self.places(None)}

    def load(self, chunk: ColumnChunk) -> LoadedFilter:
        """A chunk's filter; raises FilterProblem."""
        return load(self.source, chunk, self.footer.start)

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns, in row-group then schema order."""
        for chunk in self.filtered(columns):
            try:
                loaded = self.load(chunk)
            except FilterProblem as problem:
                yield describe.problem_facts(chunk, problem)
            else:
                yield describe.facts(chunk, loaded)

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits. Raises UsageError where there is none, FilterProblem where it can't be read."""
        if stripe:
            raise UsageError("Parquet files have no stripes", path=self.source.path, hint="leave --stripe out")
        if not 0 <= row_group < self.row_group_count:
            raise UsageError(
                f"there is no row group {row_group}; the file has {self.row_group_count}, counted from 0",
                path=self.source.path,
            )
        chunk = next(c for c in self._chunks(column) if c.row_group == row_group)
        if chunk.bloom_filter_offset is None:
            raise UsageError(
                f"column {column.path} has no filter in row group {row_group}",
                path=self.source.path,
                hint=f"{adding(self.format, column.path)} adds one",
            )
        loaded = self.load(chunk)
        return FilterDump(
            path=self.source.path,
            facts=describe.facts(chunk, loaded),
            header=loaded.header_raw,
            bitset=bytes(loaded.bits.bitset),
        )

    def _chunks(self, column: Column) -> Iterator[ColumnChunk]:
        return (self.footer.chunk(place) for place in self.footer.chunk_places({column.index}))

    def ask(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """Each row group's answers about each literal."""
        for chunk in self._chunks(column):
            loaded: LoadedFilter | None = None
            reason: str | None = None
            if chunk.bloom_filter_offset is not None:
                try:
                    loaded = self.load(chunk)
                except FilterProblem as problem:
                    reason = problem.reason
                else:
                    if not loaded.header.draft and any(bounds.lost(chunk, loaded.bits)):
                        loaded, reason = None, WRONG
            yield UnitAnswers(
                row_group=chunk.row_group,
                rows=self.footer.row_group(chunk.row_group).rows,
                chunk_bytes=chunk.compressed_bytes,
                row_group_bytes=self.footer.row_group_bytes(chunk.row_group),
                answers=tuple(_answer(chunk, literal, loaded, reason, explain) for literal in literals),
            )

    def total_bytes(self) -> int:
        """Compressed bytes of all row groups."""
        return sum(self.footer.row_group_bytes(i) for i in range(self.row_group_count))

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """The filters, and findings about them and where they lie."""
        return check.examine(self, columns)

    def without_filter(self, column: Column) -> list[int]:
        """Row groups with values in which a column has no filter."""
        chunks = self._chunks(column)
        return [c.row_group for c in chunks if c.bloom_filter_offset is None and describe.present_values(c)]

    def spread(self, column: Column) -> Iterator[Spread]:
        """The statistics' bounds in each row group with a filter."""
        for chunk in self.filtered({column.index}):
            yield Spread(
                chunk.row_group, None, chunk.min_value, chunk.max_value, only_dictionary=chunk.only_dictionary_encoded
            )

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """Row groups whose filter lacks the normal form of an interval, where the footer says that they have it."""
        if not values.is_interval(column) or not self.footer.normalises_intervals:
            return ()
        return list(check.without_normal_forms(self, column))

    def units(self) -> Sequence[int]:
        """Row groups, one by one."""
        return [1] * self.row_group_count

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Compressed bytes of the chunks that have filters."""
        return sum(chunk.compressed_bytes for chunk in self.filtered(columns, units))

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Look up every value of every readable filter's chunk, `threads` chunks at a time."""
        return check.deep(self, columns, tick, units, threads)

    @cached_property
    def filter_lengths(self) -> dict[ChunkPlace, int]:
        """Sizes of the filters whose length the metadata leaves out, from their headers."""
        unwritten = (c.place for c in self.footer.filter_claims(None) if c.is_filter and c.length is None)
        lengths = ((place, self.filter_length(place)) for place in unwritten)
        return {place: length for place, length in lengths if length is not None}

    def filter_length(self, place: ChunkPlace) -> int | None:
        """The size of a chunk's filter by its header; None where that can't be read: its extent isn't known."""
        try:
            header = load_header(self.source, self.footer.chunk(place), self.footer.start)
        except FilterProblem:
            return None
        return header.header_bytes + header.num_bytes

    def bitset_bytes(self, chunk: ColumnChunk) -> int | None:
        """The size of a filter's bitset by its header; None where that can't be read."""
        try:
            return load_header(self.source, chunk, self.footer.start).num_bytes
        except FilterProblem:
            return None

    def refuse_if_signed(self) -> None:
        """Raise where changing a byte of the footer breaks its signature."""
        if self.footer.signed:
            raise UnsupportedError(
                "the footer is signed: any change to it breaks the signature",
                path=self.source.path,
                field="encryption_algorithm",
                hint="bloom has no keys; let the engine that wrote the file write it with filters",
            )

    def alike(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether the footers are the same but for these columns' filters."""
        from bloomcli.formats.parquet import splice

        return isinstance(other, ParquetFile) and splice.alike(self.footer, other.footer, columns)

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """One kind."""
        del column, kind
        return (None,)

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters. Raises UnsupportedError, FilterExists, UsageError."""
        from bloomcli.formats.parquet import plan

        return plan.AddPlan(self, columns, rule, replace=replace, missing=missing).leaving_out(columns)

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Plan to remove filters."""
        from bloomcli.formats.parquet import plan_reduce

        return plan_reduce.RemovePlan(self, columns)

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Plan to shrink filters."""
        from bloomcli.formats.parquet import plan_reduce

        return plan_reduce.FoldPlan(self, columns, rule)


def _answer(
    chunk: ColumnChunk, literal: Literal, loaded: LoadedFilter | None, problem: str | None, explain: bool
) -> Answer:
    skip = excluded_by(literal, chunk.min_value, chunk.max_value, chunk.column)
    if literal.impossible is not None:
        return Answer(
            presence_known=True, present=False, has_filter=loaded is not None, stats_skip=skip,
            reason=literal.impossible,
        )  # fmt: skip
    if chunk.encrypted and not chunk.num_values:  # its metadata is encrypted too: nothing is known of it
        return Answer(
            presence_known=False, present=False, has_filter=True, stats_skip=None, reason="the column is encrypted"
        )
    only_nulls = chunk.null_count is not None and chunk.null_count >= chunk.num_values
    if chunk.num_values == 0 or (only_nulls and (loaded is None or literal.unknowable is not None)):
        reason = "no values" if chunk.num_values == 0 else "only nulls"
        return Answer(
            presence_known=True, present=False, has_filter=loaded is not None, stats_skip=True, reason=reason
        )
    if literal.unknowable is not None:
        return Answer(
            presence_known=False, present=False, has_filter=chunk.bloom_filter_offset is not None,
            stats_skip=skip, reason=literal.unknowable,
        )  # fmt: skip
    if loaded is None:
        return Answer(
            presence_known=False,
            present=False,
            has_filter=problem is not None,
            stats_skip=skip,
            reason=problem,
        )
    function = hashes.parquet_draft if loaded.header.draft else kernels.xxh64
    forms = values.stored_forms(literal, chunk.column)
    found = [function(encoded) for encoded in forms]
    trail: tuple[BitTrail, ...] = ()
    if explain:
        trail = tuple(_trail(encoded, value, loaded) for encoded, value in zip(forms, found, strict=True))
    present = any(loaded.bits.check(value) for value in found)
    why = None
    if only_nulls:  # readers skip by such statistics before they ask the filter; it tells whether they may be wrong
        skip = True
        why = "the statistics count only nulls" if present else "only nulls"
    return Answer(presence_known=True, present=present, has_filter=True, stats_skip=skip, reason=why, trail=trail)


def _trail(encoded: bytes, value: int, loaded: LoadedFilter) -> BitTrail:
    block, bits, present = loaded.bits.trail(value)
    return BitTrail(hashed=encoded, hash=value, block=block, bits=bits, present=present)
