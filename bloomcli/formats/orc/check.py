"""What can be wrong with an ORC file's filters: structure and trust from the metadata, soundness from the values."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Final

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.base import DeepCheck, Tick
from bloomcli.formats.lookup import (
    NEGATIVE_ZERO,
    Rebuilt,
    add_missing,
    lost_bound,
    lost_values,
    side_by_side,
    stray_bits,
)
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
from bloomcli.formats.orc.schema import COMPOUND, literal_column
from bloomcli.literals import render
from bloomcli.mending import removing
from bloomcli.model import FilterFacts, Finding, Severity

if TYPE_CHECKING:
    from bloomcli.formats.orc.file import OrcFile


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
    """Every value of each column that has filters which readers use, looked up in them; `threads` stripes at once."""
    work = (
        (partial(_deep_stripe, file, streams, columns), file.deep_bytes_of(streams, columns))
        for streams in (file.stripe_footer(s) for s in file.footer.stripes if units is None or s.ordinal in units)
    )
    yield from side_by_side(work, threads, tick)


def _deep_stripe(file: OrcFile, streams: StripeFooter, columns: set[int] | None) -> list[DeepCheck]:
    checks: list[DeepCheck] = []
    found: dict[int, list[LoadedStream]] = {}
    for stream in streams.streams:
        if _holds_nothing(file, stream, columns):
            checks += _empty(file, streams, stream)
        elif file.wanted(stream, columns):
            try:
                loaded = file.load(streams, stream)
            except FilterProblem:
                continue  # structure reports it
            unasked = holds_lengths(file.footer, file.footer.types[stream.column])
            if (loaded.untrusted is not None and not unasked) or _local_time(file, stream):
                continue
            why = file.unread.get(stream.column) or zone_unknown(streams, file.footer.types[stream.column])
            if why is not None:
                checks += _not_checked(file, streams, stream, why)
            else:
                found.setdefault(stream.column, []).append(loaded)
    if found and streams.stripe.rows:
        checks += _row_groups(file, streams, found)
    return checks


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


def _row_groups(file: OrcFile, streams: StripeFooter, found: dict[int, list[LoadedStream]]) -> Iterator[DeepCheck]:
    reader = values.StripeReader(file.source, file.footer, [file.footer.types[c] for c in found])
    for group, by_column in enumerate(reader.row_groups(streams.stripe)):
        for column, hashed in by_column.items():
            for loaded in found[column]:
                bits = loaded.filters[group]
                floating = file.footer.types[column].kind in values.FLOATS
                again = Rebuilt(bits, memoryview(values.zero_hashes()).cast("Q") if floating else ())
                again.insert(hashed.hashes, hashed.count, has_zero=hashed.has_zero)
                finding = partial(_finding, file, streams, loaded.stream, row_group=group)
                if not again.lost():
                    stray = again.stray(hashed.shifted)
                    yield DeepCheck(
                        values=hashed.count,
                        finding=finding("filter-stray-bits", Severity.WARNING, stray_bits(stray)) if stray else None,
                        negative_zero=finding("reader-negative-zero", Severity.ERROR, NEGATIVE_ZERO)
                        if again.negative_zero
                        else None,
                    )
                    continue
                flags = bytearray(hashed.count)
                lost = bits.check_hashes(hashed.hashes, hashed.count, flags)
                found_as_read = bytes(flags)
                if lost and hashed.shifted:
                    lost = values.found_shifted(hashed, flags, bits)
                if not lost:
                    stray = _beside_shifted(hashed, found_as_read, bits)
                    yield DeepCheck(
                        values=hashed.count,
                        finding=finding("filter-stray-bits", Severity.WARNING, stray_bits(stray)) if stray else None,
                    )
                    continue
                missing: list[str] = []
                add_missing(missing, flags, hashed.value)
                unasked = holds_lengths(file.footer, file.footer.types[column])
                yield DeepCheck(
                    values=hashed.count,
                    finding=finding(
                        "value-missing",
                        Severity.NOTE if unasked else Severity.ERROR,
                        f"{lost} of {hashed.count} lengths are not in their filter: {_UNASKED}"
                        if unasked
                        else lost_values(lost, hashed.count),
                        missing=tuple(missing),
                        hint=_hint(file, column),
                    ),
                )


def _beside_shifted(hashed: values.Hashed, found: bytes, bits: KirschMitzenmacherFilter) -> int:
    """Stray bits of a filter that holds some of the values (those not `found`) as other readers see them."""
    again = Rebuilt(bits)
    held = array("Q", compress(memoryview(hashed.hashes).cast("Q"), found))
    again.insert(bytearray(held.tobytes()), len(held), has_zero=False)
    return again.stray(hashed.shifted)
