"""Checks an ORC file's filters: structure and trust by the metadata, and bits by the values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, NamedTuple

from bloomcli.concurrency.threads import Stop
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.base import DeepCheck, FilterProblem, MeasuredColumn, Tick
from bloomcli.formats.deep_check import FilterCheck, filter_finding, missing_bound_message, stray_bits_message
from bloomcli.formats.filters_in_flight import Job, in_order
from bloomcli.formats.orc import hashes, proof, spec, statistics
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.bloom_filter import (
    BLOOM_ENCODING,
    KINDS,
    ORIGINAL,
    UTF8,
    Filters,
    LoadedStream,
    Location,
    holds_lengths,
)
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.hashes import ColumnHasher
from bloomcli.formats.orc.measured import memory as measured_memory
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.values import FLOATS, Counted, ValueReader, Values, why_zone_unknown
from bloomcli.model.file import FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.values.literals import render
from bloomcli.words import are, counted

_COPIES: Final = 3
"""The number of copies of a filter stream's bytes in memory: the stream, its filters, and the rebuilt filters."""
_ALL_LOST: Final = "a reader loses all of them"
_NOT_LOOKED_UP: Final = "ORC C++ omits them for batches without nulls, and no reader looks them up"
"""The reason about lengths of lists and maps, and tags of unions."""


def _about(filters: Filters, location: Location) -> Callable[..., Finding]:
    """What makes findings about filters."""
    types, stream = filters.footer.types, location.stream
    column = types[stream.column].label if stream.column < len(types) else f"column {stream.column}"
    return partial(filter_finding, stripe=location.streams.stripe.ordinal, column=column, offset=stream.offset)


def unusable(filters: Filters, location: Location, problem: FilterProblem) -> Iterator[Finding]:
    """The finding about filters that can't be used."""
    yield _about(filters, location)(problem.id, problem.reason, severity=Severity.ERROR, hint=problem.hint)


def overlaps(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Nothing: a stripe's streams follow one another, and its footer has only their lengths."""
    del filters, columns
    return iter(())


def sound(
    filters: Filters, location: Location, loaded: LoadedStream, facts: Sequence[FilterFacts]
) -> Iterator[Finding]:
    """Yield the faults of readable filters: their trust, encoding, row index and bits."""
    del facts
    orc, finding = filters.footer.types[loaded.stream.column], _about(filters, location)
    if loaded.untrusted is not None and not holds_lengths(filters.footer, orc):  # no reader uses those of lengths
        message = f"readers must not use these filters, and those that do lose rows: {loaded.untrusted}"
        yield finding("filter-untrusted", message)
    probed = orc.kind in {*hashes.READABLE, "UNION"}
    encoding = location.streams.encoding(orc.id)
    if probed and loaded.stream.kind == UTF8 and (encoding is None or encoding.bloom != BLOOM_ENCODING):
        message = "a BLOOM_FILTER_UTF8 stream without bloomEncoding 1: ORC C++ ignores it"
        yield finding("filter-encoding", message)
    if location.streams.find("ROW_INDEX", orc.id) is None:
        message = "filters without a row index: readers look at them only together with it"
        yield finding("filter-no-row-index", message, hint="write the file with a row index")
    elif probed:
        yield from _missing_bounds(filters, location, loaded)


def _missing_bounds(filters: Filters, location: Location, loaded: LoadedStream) -> Iterator[Finding]:
    """Findings about filters that are empty, or don't have the row index's minimum or maximum."""
    orc = filters.footer.types[loaded.stream.column]
    ignored = holds_lengths(filters.footer, orc)
    typed = literal_column(orc)
    index = filters.statistics(location.streams, orc.id)
    for group, (bits, stats) in enumerate(zip(loaded.filters, index, strict=False)):  # no filters without a stride
        finding = partial(_about(filters, location), row_group=group)
        count = stats.number_of_values if stats is not None else 0
        if bits.set_bits == 0 and count > 0:
            message = f"no bit is set, though the row group has {counted(count, 'value')}:"
            message = f"{message} {_NOT_LOOKED_UP if ignored else _ALL_LOST}"
            yield finding("filter-all-zero", message, severity=Severity.NOTE if ignored else None)
            continue
        for which, bound in statistics.missing_bounds(stats, orc, typed, bits) if loaded.untrusted is None else ():
            yield finding("value-missing", missing_bound_message(which), missing=(render(bound, typed),))


def contradictions(filters: Filters, columns: set[int] | None) -> Iterator[Finding]:
    """Faults of statistics and row indexes of these columns (of those with filters if None) that show without
    values."""
    proven = filters.proven(columns)
    yield from proof.by_metadata(filters, proven)
    for stripe in filters.footer.stripes if proven else ():
        yield from proof.of_indexes_above(filters, filters.footer.stripe_footer(stripe), proven)
    yield from proof.of_section(filters.footer, proven)


def deep(
    filters: Filters, columns: set[int] | None, tick: Tick, units: Container[int] | None, threads: int
) -> Iterator[DeepCheck]:
    """Look every value of each column up in the filters that readers use, and compare it with the statistics, with
    `threads` threads."""
    stop = Stop()
    footer = filters.footer
    footer.will_read_stripes()
    filters.source.will_read(_ranges(filters, columns, units))
    _ = footer.of_stripes  # read once, before threads ask for it
    check = _Check(filters, columns, filters.proven(columns), stop)
    stripes = (s for s in footer.stripes if units is None or s.ordinal in units)
    jobs = (job for s in stripes for job in check.jobs(footer.stripe_footer(s)))
    measured: dict[int, list[MeasuredColumn]] = {}
    misplaced: set[Finding] = set()
    for checked in in_order(jobs, threads, stop):
        for each in checked.checks:
            if each.finding is None or each.finding not in misplaced:
                yield each
            if each.finding is not None and each.finding.id == proof.POSITIONS:
                misplaced.add(each.finding)  # columns share the streams of the types above them
        if checked.measured is not None:
            measured.setdefault(checked.column, []).append(checked.measured)
        tick(checked.read)
    for column, parts in measured.items():
        for part in parts:
            yield DeepCheck(measured=part)
        if len(parts) == sum(s.rows > 0 for s in footer.stripes):
            for finding in proof.of_file(footer, footer.types[column], parts):
                yield DeepCheck(finding=finding)
    for finding in proof.by_metadata(filters, check.proven - measured.keys(), units):
        yield DeepCheck(finding=finding)
    if units is None or all(stripe.ordinal in units for stripe in footer.stripes):  # else `contradictions` reports it
        for finding in proof.of_section(footer, check.proven):
            yield DeepCheck(finding=finding)


def _ranges(filters: Filters, columns: set[int] | None, units: Container[int] | None) -> Iterator[tuple[int, int]]:
    """The filters, and the values that they and the statistics are compared with."""
    proven = filters.proven(columns)
    for stripe in filters.footer.stripes:
        if units is None or stripe.ordinal in units:
            streams = filters.footer.stripe_footer(stripe)
            wanted = filters.to_check(streams, columns, proven)
            yield from (location.stream.range for locations in wanted.values() for location in locations)
            for column in filter(filters.readable, sorted(wanted)):
                yield from filters.value_ranges(streams, column)
            for orc in proof.above(filters.footer, proven):
                yield from (s.range for s in streams.of_column(orc.id) if s.kind == "ROW_INDEX")


class _Checked(NamedTuple):
    """The result for a column of a stripe."""

    column: int
    checks: Sequence[DeepCheck]
    read: int
    """Compressed bytes of its values."""
    measured: MeasuredColumn | None
    """What its statistics should say; None if its values weren't read."""


class _Check(NamedTuple):
    """What `deep` does to every stripe. `columns` are those whose filters are checked, None for all; `proven` those
    whose statistics are."""

    filters: Filters
    columns: set[int] | None
    proven: set[int]
    stop: Stop

    def jobs(self, streams: StripeFooter) -> Iterator[Job[_Checked]]:
        """Yield one job for each column of a stripe, after one for the row indexes above them."""
        filters = self.filters
        yield Job(0, partial(self._above, streams))
        for column, locations in filters.to_check(streams, self.columns, self.proven).items():
            memory = sum(filters.footer.codec.most_bytes(location.stream.length) for location in locations)
            memory = _COPIES * min(memory, orc_limits.FILTER_STREAM_MAX_BYTES)
            orc = filters.footer.types[column]
            memory += hashes.memory(streams, orc) + measured_memory(streams, orc)
            yield Job(memory, partial(self._column, streams, orc, locations))

    def _above(self, streams: StripeFooter) -> _Checked:
        findings = proof.of_indexes_above(self.filters, streams, self.proven)
        return _Checked(0, [DeepCheck(finding=finding) for finding in findings], 0, None)

    def _column(self, streams: StripeFooter, orc: OrcType, locations: Sequence[Location]) -> _Checked:
        """Check one column of one stripe."""
        checks, usable = _usable(self.filters, streams, orc, locations)
        why = proof.why_unproven(self.filters.footer, streams, orc)
        proven = orc.id in self.proven and why is None
        measured = None
        if streams.stripe.rows and (usable or proven):
            some, measured = _row_groups(self, streams, usable, orc, proven=proven)
            checks += some
        elif streams.stripe.rows and why is not None and not any(s.kind in KINDS for s in streams.of_column(orc.id)):
            checks.append(DeepCheck(finding=proof.not_checked(orc, why, streams.stripe.ordinal)))
        return _Checked(orc.id, checks, self.filters.bytes_to_check(streams, orc.id), measured)


def _usable(
    filters: Filters, streams: StripeFooter, orc: OrcType, locations: Sequence[Location]
) -> tuple[list[DeepCheck], list[LoadedStream]]:
    """Load a column's filters in a stripe. Returns the findings about those that can't be compared, and the
    others."""
    checks: list[DeepCheck] = []
    usable: list[LoadedStream] = []
    for location in locations:
        if _holds_nothing(filters, orc):
            checks += _stray(filters, location)
            continue
        try:
            loaded = filters.load(location)
        except FilterProblem:
            continue  # structure reports it
        lacking = filters.footer.message.writer == spec.ORC_CPP and orc.kind in {"BYTE", "CHAR"}  # readers use them
        compared = lacking or holds_lengths(filters.footer, orc)
        if not loaded.filters or (loaded.untrusted is not None and not compared):
            continue  # without a row index no row group has a filter
        if location.stream.kind == ORIGINAL and orc.kind == "TIMESTAMP":
            continue  # in the writer's local time, which can't be computed from the values
        why = filters.not_comparable.get(orc.id) or why_zone_unknown(streams, orc)
        if why is None:
            usable.append(loaded)
        elif orc.kind != "BOOLEAN":  # no reader uses the filters of booleans
            message = f"the values of the column are not looked up: {why}"
            checks.append(DeepCheck(finding=_about(filters, location)("filter-not-checked", message, hint=None)))
    return checks, usable


def _holds_nothing(filters: Filters, orc: OrcType) -> bool:
    """Whether nothing is ever inserted into the filters of a column: structs have no values, and ORC Java hashes no
    booleans (ORC C++ does, but no reader looks them up)."""
    return orc.kind == "STRUCT" or (orc.kind == "BOOLEAN" and filters.footer.message.writer == spec.ORC_JAVA)


def _stray(filters: Filters, location: Location) -> Iterator[DeepCheck]:
    """Findings about bits in filters that nothing is inserted into."""
    try:
        loaded = filters.load(location)
    except FilterProblem:
        return  # structure reports it
    for group, bits in enumerate(loaded.filters):
        if bits.set_bits:
            message = stray_bits_message(bits.set_bits)
            yield DeepCheck(finding=_about(filters, location)("filter-stray-bits", message, row_group=group))


def _row_groups(
    check: _Check, streams: StripeFooter, usable: Sequence[LoadedStream], orc: OrcType, *, proven: bool
) -> tuple[list[DeepCheck], MeasuredColumn | None]:
    """Read a column of a stripe once, and compare it with its filters, and with its statistics if they are
    `proven`."""
    filters, footer = check.filters, check.filters.footer
    checks: list[DeepCheck] = []
    zeros = memoryview(hashes.zero_hashes()).cast("Q") if orc.kind in FLOATS else ()
    reader = ValueReader(footer, streams, orc, Counted, check.stop)
    column = proof.ColumnProof(filters, streams, orc, reader) if proven else None
    hasher = None
    if usable:
        hasher = ColumnHasher(reader, repeats=True, entries=None if column is None else column.entries())
    elif column is not None:
        deque(column.entries() or (), maxlen=0)

    @cache
    def texts() -> Callable[[Values], Callable[[int], str]]:
        from bloomcli.formats.orc.arrow_forms import texts_of

        return texts_of(reader.leaf)

    def texts_in(values: Values) -> Callable[[int], str]:
        return texts()(values)

    for group, rows in enumerate(footer.units(streams.stripe)):
        if column is not None:
            checks += (DeepCheck(finding=finding) for finding in column.begin(group))
        compared = [FilterCheck(loaded.filters[group], zeros) for loaded in usable]
        for batch in hasher.take(rows) if hasher is not None else ():
            for filter_check in compared:
                filter_check.take(
                    batch.hashes,
                    batch.count,
                    partial(texts_in, batch.values),
                    has_zero=batch.has_zero,
                    others=batch.other_hashes,
                    owners=batch.owners,
                )
            if column is not None:
                column.take(batch.values)
        for values, _ in reader.take(rows) if hasher is None else ():
            if column is not None:
                column.take(values)
        if column is not None:
            checks += (DeepCheck(finding=finding) for finding in column.end(group))
        for loaded, filter_check in zip(usable, compared, strict=True):
            checks.append(_result(filters, orc, Location(streams, loaded.stream), group, filter_check))
    if column is None:
        return checks, None
    checks += (DeepCheck(finding=finding) for finding in column.of_stripe())
    return checks, column.measured


def _result(
    filters: Filters, orc: OrcType, location: Location, group: int, check: FilterCheck[KirschMitzenmacherFilter]
) -> DeepCheck:
    """The result of comparing a filter with the values of its row group."""
    result = check.result(partial(_about(filters, location), row_group=group))
    if result.finding is None or not check.lost or not holds_lengths(filters.footer, orc):
        return result
    message = f"{check.lost} of {counted(check.count, 'length')} {are(check.lost)} not in their filter"
    message = f"{message}: {_NOT_LOOKED_UP}"
    return result._replace(finding=replace(result.finding, severity=Severity.NOTE, message=message))
