"""What can be wrong with an ORC file's filters: structure and trust from the metadata, soundness from the values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from bloomcli import limits
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.base import DeepCheck, Tick
from bloomcli.formats.deep_check import NEGATIVE_ZERO, Rebuilt, lost_bound, lost_values, stray_bits
from bloomcli.formats.orc import bounds, describe, spec, values
from bloomcli.formats.orc.column_reader import zone_unknown
from bloomcli.formats.orc.filter_header import (
    BLOOM_ENCODING,
    HINT_REPLACE,
    KINDS,
    ORIGINAL,
    FilterProblem,
    LoadedStream,
    holds_lengths,
)
from bloomcli.formats.orc.footer import Stream, StripeFooter
from bloomcli.formats.orc.missing_values import Again, Lost
from bloomcli.formats.orc.schema import COMPOUND, OrcType, literal_column
from bloomcli.hints import removing
from bloomcli.model.file import FilterFacts, Finding, Severity
from bloomcli.values.literals import render

if TYPE_CHECKING:
    from bloomcli.formats.filters_in_flight import Job
    from bloomcli.formats.orc.file import OrcFile


_COPIES: Final = 3
"""How often a filter stream's bytes are held: as they are read, as filters, and as those that are built again."""
_ALL_LOST: Final = "a reader loses all of them"
_UNASKED: Final = "ORC C++ leaves them out where a batch has no nulls, and no reader asks for them"
"""Of lengths of lists and maps, and tags of unions."""


def _finding(
    file: OrcFile,
    streams: StripeFooter,
    stream: Stream,
    id: str,  # noqa: A002  it is the finding's id
    severity: Severity,
    message: str,
    *,
    row_group: int | None = None,
    hint: str | None = HINT_REPLACE,
    missing: tuple[str, ...] = (),
) -> Finding:
    known = stream.column < len(file.footer.types)
    return Finding(
        id=id,
        severity=severity,
        message=message,
        stripe=streams.stripe.ordinal,
        row_group=row_group,
        column=file.footer.types[stream.column].label if known else f"column {stream.column}",
        offset=stream.offset,
        hint=hint,
        missing=missing,
    )


def examine(file: OrcFile, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
    """The filters; and streams, sizes, encodings, and filters that readers must not use."""
    for streams, stream in file.filter_streams(columns):
        try:
            loaded = file.load(streams, stream)
        except FilterProblem as problem:
            yield describe.problem_facts(file.footer, streams, stream, problem)
            if problem.id == "filter-encrypted":
                hint = "bloom has no keys; decrypt the file with the engine that wrote it"
                yield _finding(file, streams, stream, problem.id, Severity.WARNING, problem.reason, hint=hint)
            else:
                yield _finding(file, streams, stream, problem.id, Severity.ERROR, problem.reason)
        else:
            for group, bits in enumerate(loaded.filters):
                yield describe.facts(file.footer, streams, loaded, group, bits)
            yield from _sound(file, streams, loaded)


def _sound(file: OrcFile, streams: StripeFooter, loaded: LoadedStream) -> Iterator[Finding]:
    stream = loaded.stream
    orc = file.footer.types[stream.column]
    unasked = holds_lengths(file.footer, orc)
    if loaded.untrusted is not None and not unasked:
        released = file.footer.version in spec.VERSIONS
        yield _finding(
            file,
            streams,
            stream,
            "filter-untrusted",
            Severity.WARNING,
            f"readers must not use these filters, and those that do lose rows: {loaded.untrusted}",
            hint=HINT_REPLACE if released else "rewrite the file with a released writer",
        )
    probed = orc.kind in {*values.READABLE, "UNION"}
    if probed and loaded.utf8 and streams.bloom_encoding(stream.column) != BLOOM_ENCODING:
        yield _finding(
            file,
            streams,
            stream,
            "filter-encoding",
            Severity.WARNING,
            "a BLOOM_FILTER_UTF8 stream without bloomEncoding 1: ORC C++ ignores it",
        )
    if streams.find("ROW_INDEX", stream.column) is None:
        yield _finding(
            file,
            streams,
            stream,
            "filter-no-row-index",
            Severity.WARNING,
            "filters without a row index: readers look at them only together with it",
            hint="write the file with a row index",
        )
        return
    if not probed:
        return
    typed = literal_column(orc)
    index = file.row_index(streams, stream.column)
    for group, bits in enumerate(loaded.filters):
        statistics = index[group] if group < len(index) else None
        count = statistics.number_of_values if statistics is not None else 0
        if bits.set_bits == 0 and count > 0:
            yield _finding(
                file,
                streams,
                stream,
                "filter-all-zero",
                Severity.NOTE if unasked else Severity.ERROR,
                f"no bit is set, though the row group has {count} values: {_UNASKED if unasked else _ALL_LOST}",
                row_group=group,
                hint=_hint(file, stream.column),
            )
            continue
        for which, bound in bounds.lost(statistics, orc, typed, bits) if loaded.untrusted is None else ():
            yield _finding(
                file,
                streams,
                stream,
                "value-missing",
                Severity.ERROR,
                lost_bound(which),
                row_group=group,
                missing=(render(bound, typed),),
            )


def _hint(file: OrcFile, column: int) -> str:
    """What to do about a filter that lacks values: none can be added for lists, maps and unions."""
    orc = file.footer.types[column]
    return f"{removing(orc.label)} saves their bytes" if orc.kind in COMPOUND else HINT_REPLACE


def deep(
    file: OrcFile, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
) -> Iterator[DeepCheck]:
    """Every value of each column that has filters which readers use, looked up in them; by `threads` threads."""
    from bloomcli.formats.filters_in_flight import Ahead

    stop = Stop()
    stripes = (s for s in file.footer.stripes if units is None or s.ordinal in units)
    jobs = (job for s in stripes for job in _jobs(file, file.stripe_footer(s), columns, stop))
    with Ahead(jobs, threads, lambda _: 0, most=threads + 1) as ahead:
        try:
            while ahead:
                ahead.begin()
                checks, read = ahead.take()
                yield from checks
                tick(read)
        except BaseException:
            stop.asked = True
            raise


def _jobs(
    file: OrcFile, streams: StripeFooter, columns: set[int] | None, stop: Stop
) -> Iterator[Job[tuple[Sequence[DeepCheck], int]]]:
    """Each column of a stripe by itself, with the bytes that are read of it."""
    from bloomcli.formats.filters_in_flight import Job

    filters: dict[int, list[Stream]] = {}
    for stream in streams.streams:
        if _holds_nothing(file, stream, columns) or file.wanted(stream, columns):
            filters.setdefault(stream.column, []).append(stream)
    for column, found in filters.items():
        memory = sum(file.footer.codec.most_bytes(s.length) for s in found)
        memory = _COPIES * min(memory, limits.STREAM_MAX_BYTES) + values.memory(streams, file.footer.types[column])
        read = file.bytes_to_check(streams, column)
        yield Job(memory, partial(_deep_column, file, streams, found, read, stop))


def _deep_column(
    file: OrcFile, streams: StripeFooter, found: Sequence[Stream], read: int, stop: Stop
) -> tuple[Sequence[DeepCheck], int]:
    """One column of one stripe."""
    checks: list[DeepCheck] = []
    orc = file.footer.types[found[0].column]
    usable: list[LoadedStream] = []
    for stream in found:
        if _holds_nothing(file, stream, None):
            checks += _empty(file, streams, stream)
            continue
        try:
            loaded = file.load(streams, stream)
        except FilterProblem:
            continue  # structure reports it
        unasked = holds_lengths(file.footer, orc)
        if (loaded.untrusted is not None and not unasked) or _local_time(file, stream):
            continue
        why = file.unread.get(orc.id) or zone_unknown(streams, orc)
        if why is not None:
            checks += _not_checked(file, streams, stream, why)
        else:
            usable.append(loaded)
    if usable and streams.stripe.rows:
        checks += _row_groups(file, streams, usable, orc, stop)
    return checks, read


def _holds_nothing(file: OrcFile, stream: Stream, columns: set[int] | None) -> bool:
    """Nothing is ever inserted: structs have no values of their own, and ORC Java hashes no booleans (ORC C++ does,
    though nobody looks them up)."""
    footer = file.footer
    if stream.kind not in KINDS or stream.column >= len(footer.types) or stream.column in footer.encrypted_columns:
        return False
    kind = footer.types[stream.column].kind
    nothing = kind == "STRUCT" or (kind == "BOOLEAN" and footer.message.writer == spec.ORC_JAVA)
    return nothing and (columns is None or stream.column in columns)


def _empty(file: OrcFile, streams: StripeFooter, stream: Stream) -> Iterator[DeepCheck]:
    """Bits in filters that nothing is inserted into."""
    try:
        loaded = file.load(streams, stream)
    except FilterProblem:
        return  # structure reports it
    for group, bits in enumerate(loaded.filters):
        if bits.set_bits:
            yield DeepCheck(
                values=0,
                finding=_finding(
                    file,
                    streams,
                    stream,
                    "filter-stray-bits",
                    Severity.WARNING,
                    stray_bits(bits.set_bits),
                    row_group=group,
                ),
            )


def _not_checked(file: OrcFile, streams: StripeFooter, stream: Stream, why: str) -> Iterator[DeepCheck]:
    """A note, for a look that isn't possible not to pass for a clean bill. Filters of booleans nobody looks into."""
    if file.footer.types[stream.column].kind != "BOOLEAN":
        message = f"the values of the column are not looked up: {why}"
        finding = _finding(file, streams, stream, "filter-not-checked", Severity.NOTE, message, hint=None)
        yield DeepCheck(values=0, finding=finding)


def _local_time(file: OrcFile, stream: Stream) -> bool:
    """Old streams hold timestamps in the writer's local time, which its values don't tell."""
    return stream.kind == ORIGINAL and file.footer.types[stream.column].kind == "TIMESTAMP"


def _row_groups(
    file: OrcFile, streams: StripeFooter, found: Sequence[LoadedStream], orc: OrcType, stop: Stop
) -> Iterator[DeepCheck]:
    zeros = memoryview(values.zero_hashes()).cast("Q") if orc.kind in values.FLOATS else ()
    again = Again(file.source, file.footer, streams, orc, stop)
    groups = values.row_groups(file.source, file.footer, streams, orc, stop)
    for group, batches in enumerate(groups):
        rebuilt = [Rebuilt(loaded.filters[group], zeros) for loaded in found]
        for taken in batches:
            for one in rebuilt:
                one.insert(taken.hashes, taken.count, has_zero=taken.has_zero)
                one.allow(taken.others)
        short = [loaded.filters[group] for loaded, one in zip(found, rebuilt, strict=True) if one.lost()]
        looks = iter(again.lost(group, short) if short else ())
        for loaded, one in zip(found, rebuilt, strict=True):
            finding = partial(_finding, file, streams, loaded.stream, row_group=group)
            lost = next(looks) if one.lost() else None
            if lost is not None and lost.count:
                yield DeepCheck(values=one.count, finding=_lost(file, orc, lost, one.count, finding))
                continue
            stray = one.stray() if lost is None else lost.stray
            negative = lost is None and one.negative_zero
            yield DeepCheck(
                values=one.count,
                finding=finding("filter-stray-bits", Severity.WARNING, stray_bits(stray)) if stray else None,
                negative_zero=finding("reader-negative-zero", Severity.ERROR, NEGATIVE_ZERO) if negative else None,
            )


def _lost(file: OrcFile, orc: OrcType, lost: Lost, count: int, finding: Callable[..., Finding]) -> Finding:
    unasked = holds_lengths(file.footer, orc)
    return finding(
        "value-missing",
        Severity.NOTE if unasked else Severity.ERROR,
        f"{lost.count} of {count} lengths are not in their filter: {_UNASKED}"
        if unasked
        else lost_values(lost.count, count),
        missing=lost.missing,
        hint=_hint(file, orc.id),
    )
