"""An ORC file as the commands see it: every question about its filters, and every change to them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.base import Answer, DeepCheck, FilterFile, Plan, SizeRule, Spread, Tick, UnitAnswers
from bloomcli.formats.deep_check import WRONG
from bloomcli.formats.orc import bounds, check, describe, spec, statistics, values
from bloomcli.formats.orc.filter_header import (
    KINDS,
    ORIGINAL,
    UTF8,
    FilterProblem,
    LoadedStream,
    bad_writer,
    load,
    problem,
    sound_for_old_readers,
)
from bloomcli.formats.orc.filterable import reasons_against
from bloomcli.formats.orc.footer import Footer, Stream, Stripe, StripeFooter
from bloomcli.formats.orc.schema import COMPOUND, OrcType, column_of, literal_column
from bloomcli.hints import adding
from bloomcli.model.file import BitTrail, Column, FilterDump, FilterFacts, FilterSummary, Finding
from bloomcli.storage.source import Source
from bloomcli.values.literals import Literal

_PROBED: Final = values.READABLE | {"BOOLEAN", "UNION"}
"""Kinds whose filters can be asked; a union's holds its tags, and a boolean's has no answer."""


class OrcFile:
    """An open ORC file. Opening reads the tail; stripe footers and filters are read when asked for."""

    format = "orc"
    details: tuple[tuple[str, str], ...] = ()
    unfoldable: str | None = "ORC's filters are sized by the row index stride and can't be folded"

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = Footer(source)
        self.rows = self.footer.rows
        self.row_group_count = sum(self.footer.row_groups(s) for s in self.footer.stripes)
        self.stripes: int | None = len(self.footer.stripes)
        self.column_count = sum(t.kind not in COMPOUND for t in self.footer.types)
        self.created_by: str | None = self.footer.created_by

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Every column but structs: lists, maps and unions have filters of their own."""
        return [column_of(t) for t in self.footer.types if t.kind != "STRUCT"]

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """Columns that hold values."""
        leaves = [t for t in self.footer.types if t.kind not in COMPOUND]
        return [replace(column_of(t), unfilterable=self.unfilterable.get(t.id)) for t in leaves]

    def why_not(self, column: Column) -> str | None:
        """Nothing more: what the stripes tell is known of `leaves`."""
        del column
        return None

    @cached_property
    def unfilterable(self) -> dict[int, str]:
        """What each type is that can't have a filter, by id."""
        return reasons_against(self.footer)

    def literal_column(self, column: Column) -> Column:
        """The Parquet type that holds the same values."""
        return literal_column(self.footer.types[column.index])

    def stripe_footer(self, stripe: Stripe) -> StripeFooter:
        """A stripe's footer, read once."""
        return self.footer.stripe_footer(stripe)

    def filter_streams(self, columns: set[int] | None) -> Iterator[tuple[StripeFooter, Stream]]:
        """Every filter stream of these columns, stripe by stripe."""
        for stripe in self.footer.stripes:
            streams = self.stripe_footer(stripe)
            asked = streams.streams
            if columns is not None:
                asked = tuple(sorted((s for c in columns for s in streams.of_column(c)), key=lambda s: s.position))
            yield from ((streams, stream) for stream in asked if stream.kind in KINDS)

    def load(self, streams: StripeFooter, stream: Stream) -> LoadedStream:
        """A stream's filters; raises FilterProblem."""
        if stream.column >= len(self.footer.types):
            raise problem(
                f"the stream is of column {stream.column}, the file has {len(self.footer.types)}",
                self.footer,
                stream,
                streams.stripe.ordinal,
                "filter-column",
            )
        if stream.column in self.footer.encrypted_columns:
            raise problem(
                "the filters are encrypted with their column",
                self.footer,
                stream,
                streams.stripe.ordinal,
                "filter-encrypted",
            )
        return load(self.footer, streams, stream)

    def bitset_bytes(self, streams: StripeFooter, stream: Stream) -> int | None:
        """Size of a stream's filters; None where it can't be read or they differ."""
        try:
            sizes = {len(f.bitset) for f in self.load(streams, stream).filters}
        except FilterProblem:
            return None
        return sizes.pop() if len(sizes) == 1 else None

    def row_index(self, streams: StripeFooter, column: int) -> list[Any]:
        """The statistics of each row group of a column; empty where there is no (readable) row index."""
        stream = streams.find("ROW_INDEX", column)
        if stream is None or not self.footer.stride or column in self.footer.encrypted_columns:
            return []  # those of an encrypted column are about its mask
        try:
            data = self.footer.read_index(stream, streams.stripe)
            index = spec.parse("RowIndex", data, self.source.path, stream.offset, streams.stripe.field)
        except (CorruptFile, UnsupportedError):
            return []  # statistics are of use, not of need
        return [entry.statistics for entry in index.entry]

    def filtered_columns(self) -> set[int]:
        """Ids of the columns that have filters in any stripe; not of structs, whose filters hold nothing."""
        found = {stream.column for _, stream in self.filter_streams(None)}
        return found & {c.index for c in self.columns}

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns: by stripe, column and row group."""
        for streams, stream in self.filter_streams(columns):
            try:
                loaded = self.load(streams, stream)
            except FilterProblem as error:
                yield describe.problem_facts(self.footer, streams, stream, error)
            else:
                for group, bits in enumerate(loaded.filters):
                    yield describe.facts(self.footer, streams, loaded, group, bits)

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        """By column and kind."""
        return describe.summary(facts)

    def _preferred(self, streams: StripeFooter, column: int) -> Stream | None:
        """The stream that readers use."""
        return next((s for kind in KINDS if (s := streams.find(kind, column)) is not None), None)

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits. Raises UsageError where there is none, FilterProblem where it can't be read."""
        if not 0 <= stripe < len(self.footer.stripes):
            raise UsageError(
                f"there is no stripe {stripe}; the file has {len(self.footer.stripes)}, counted from 0",
                path=self.source.path,
            )
        streams = self.stripe_footer(self.footer.stripes[stripe])
        groups = self.footer.row_groups(streams.stripe)
        if not 0 <= row_group < groups:
            raise UsageError(
                f"there is no row group {row_group} in stripe {stripe}; it has {groups}, counted from 0",
                path=self.source.path,
            )
        stream = self._preferred(streams, column.index)
        if stream is None:
            raise UsageError(
                f"column {column.path} has no filters in stripe {stripe}",
                path=self.source.path,
                hint=f"{adding(self.format, column.path)} adds some",
            )
        loaded = self.load(streams, stream)
        bits = loaded.filters[row_group]
        return FilterDump(
            path=self.source.path,
            facts=describe.facts(self.footer, streams, loaded, row_group, bits),
            header=b"",
            bitset=bytes(bits.bitset),
        )

    def ask(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """Each row group's answers about each literal. A row group's bytes are its share of its stripe's."""
        orc = self.footer.types[column.index]
        typed = literal_column(orc)
        encrypted = orc.id in self.footer.encrypted_columns
        blind = "the column is encrypted" if encrypted else orc.fault
        probed = orc.kind in _PROBED and blind is None
        hashes = [values.literal_hashes(literal, orc, typed) if probed else [] for literal in literals]
        for stripe in self.footer.stripes:
            streams = self.stripe_footer(stripe)
            loaded, reason = self._usable(streams, orc)
            index = self.row_index(streams, orc.id)
            chunk = sum(s.length for s in streams.of_column(orc.id) if s.kind not in KINDS)
            indexed = bool(self.footer.stride)  # without a row index a stripe is one unit
            for group in range(self.footer.row_groups(stripe) if indexed else min(stripe.rows, 1)):
                rows = self.footer.rows_in(stripe, group) if indexed else stripe.rows
                stats = index[group] if group < len(index) else None
                bits = loaded.filters[group] if loaded is not None and indexed else None
                why = reason
                if bits is not None and any(bounds.lost(stats, orc, typed, bits)):
                    bits, why = None, WRONG
                yield UnitAnswers(
                    stripe=stripe.ordinal,
                    row_group=group,
                    rows=rows,
                    chunk_bytes=chunk * rows // stripe.rows,
                    row_group_bytes=stripe.data_length * rows // stripe.rows,
                    answers=tuple(
                        _answer(
                            literal, found, bits, why, statistics.skips(stats, literal, orc, typed), stats, explain
                        )
                        if blind is None
                        else _cant_tell(blind, there=encrypted or loaded is not None or reason is not None)
                        for literal, found in zip(literals, hashes, strict=True)
                    ),
                )

    def _usable(self, streams: StripeFooter, orc: OrcType) -> tuple[LoadedStream | None, str | None]:
        """The filters that a reader would use in a stripe, or why it must not."""
        stream = self._preferred(streams, orc.id)
        if stream is None:
            return None, None
        try:
            loaded = self.load(streams, stream)
        except FilterProblem as error:
            return None, error.reason
        if loaded.untrusted is not None:
            return None, loaded.untrusted
        if orc.kind not in _PROBED:
            return None, f"how values of {orc.name} are hashed isn't known"
        if stream.kind == ORIGINAL and orc.kind == "TIMESTAMP":
            return None, "a BLOOM_FILTER stream holds timestamps in the writer's local time"
        return loaded, None

    def total_bytes(self) -> int:
        """Data bytes of all stripes."""
        return sum(s.data_length for s in self.footer.stripes)

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """The filters, and findings about them and who may trust them."""
        return check.examine(self, columns)

    def without_filter(self, column: Column) -> list[int]:
        """Stripes with rows in which a column has no filters."""
        return [
            s.ordinal
            for s in self.footer.stripes
            if s.rows and self._preferred(self.stripe_footer(s), column.index) is None
        ]

    @cached_property
    def unread(self) -> dict[int, str]:
        """Why the values of columns can't be held against their filters, by id; not of those whose can."""
        found = ((t.id, values.unread(self.footer, t)) for t in self.footer.types)
        return {column: why for column, why in found if why is not None}

    def wanted(self, stream: Stream, columns: set[int] | None) -> bool:
        """Whether a stream's filters are to be held against the column's values."""
        return (
            stream.kind in KINDS
            and (columns is None or stream.column in columns)
            and stream.column < len(self.footer.types)
            and stream.column not in self.footer.encrypted_columns
        )

    def deep_bytes_of(self, streams: StripeFooter, columns: set[int] | None) -> int:
        """Compressed bytes that `deep` reads of one stripe."""
        wanted = {s.column for s in streams.streams if self.wanted(s, columns)}
        return sum(self.bytes_to_check(streams, column) for column in wanted)

    def bytes_to_check(self, streams: StripeFooter, column: int) -> int:
        """Compressed bytes of the values of a column in a stripe that are held against its filters."""
        found = () if column in self.unread else streams.of_column(column)
        return sum(s.length for s in found if s.kind not in KINDS)

    def spread(self, column: Column) -> Iterator[Spread]:
        """The row index's bounds in each row group with a filter."""
        orc = self.footer.types[column.index]
        for streams, stream in self.filter_streams({column.index}):
            if stream is self._preferred(streams, orc.id):
                for group, found in enumerate(self.row_index(streams, orc.id)):
                    low, high = statistics.bounds(found, orc)
                    yield Spread(group, streams.stripe.ordinal, low, high)

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """None: no reader looks for normal forms here."""
        del column
        return ()

    def units(self) -> Sequence[int]:
        """Stripes."""
        return [self.footer.row_groups(s) for s in self.footer.stripes]

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Compressed bytes that `deep` reads."""
        chosen = (s for s in self.footer.stripes if units is None or s.ordinal in units)
        return sum(self.deep_bytes_of(self.stripe_footer(s), columns) for s in chosen)

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Look up every value of every column with filters that readers use, `threads` stripes at a time."""
        return check.deep(self, columns, tick, units, threads)

    def alike(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether the footers, of file and stripes, are the same but for these columns' filters.

        Adding to a bad writer's file takes its other filters out too, and mends the version that says so.
        """
        if not isinstance(other, OrcFile) or len(self.footer.stripes) != len(other.footer.stripes):
            return False
        from bloomcli.formats.orc import splice

        mended = bad_writer(self.footer) and not bad_writer(other.footer)
        mine, theirs = (
            splice.unfiltered(file.footer, map(file.stripe_footer, file.footer.stripes), gone, version=not mended)
            for file, gone in ((self, None if mended else columns), (other, columns))
        )
        return mine == theirs

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """BLOOM_FILTER beside BLOOM_FILTER_UTF8 only where old readers take it for the same."""
        both = kind == "both" and sound_for_old_readers(self.footer, self.footer.types[column.index])
        return (UTF8, ORIGINAL) if both else (UTF8,)

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters. Raises UnsupportedError, FilterExists, UsageError."""
        from bloomcli.formats.orc import plan

        return plan.AddPlan(self, columns, rule, replace=replace, missing=missing).leaving_out(columns)

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Plan to remove filters."""
        from bloomcli.formats.orc import plan

        return plan.RemovePlan(self, columns)

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Raises UnsupportedError."""
        del columns, rule
        raise UnsupportedError(
            str(self.unfoldable),
            path=self.source.path,
            hint="`bloom add --replace` builds them at another --fpp",
        )


def _cant_tell(reason: str, *, there: bool) -> Answer:
    return Answer(presence_known=False, present=False, has_filter=there, stats_skip=None, reason=reason)


def _answer(
    literal: Literal,
    hashes: list[int],
    bits: KirschMitzenmacherFilter | None,
    reason: str | None,
    skip: bool | None,
    stats: Any,
    explain: bool,
) -> Answer:
    there = bits is not None
    if literal.impossible is not None:
        return Answer(
            presence_known=True, present=False, has_filter=there, stats_skip=skip, reason=literal.impossible
        )
    if stats is not None and stats.HasField("number_of_values") and stats.number_of_values == 0:
        return Answer(presence_known=True, present=False, has_filter=there, stats_skip=True, reason="only nulls")
    if literal.unknowable is not None or bits is None:
        why = literal.unknowable if literal.unknowable is not None and (there or reason) else reason
        return Answer(
            presence_known=False,
            present=False,
            has_filter=there or reason is not None,
            stats_skip=skip,
            reason=why,
        )
    trail: tuple[BitTrail, ...] = ()
    if explain:
        trail = tuple(_trail(e, h, bits) for e, h in zip(literal.encodings, hashes, strict=True))
    present = any(bits.check(h) for h in hashes)
    return Answer(presence_known=True, present=present, has_filter=True, stats_skip=skip, trail=trail)


def _trail(encoded: bytes, value: int, bits: KirschMitzenmacherFilter) -> BitTrail:
    places, present = bits.trail(value)
    return BitTrail(hashed=encoded, hash=value, block=None, bits=places, present=present)
