"""probe: looks values up in filters and statistics, and counts the row groups that a reader can skip."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bloomcli.commands.columns import only_column, why_none
from bloomcli.commands.options import ProbeOptions
from bloomcli.commands.values import texts
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import LiteralError, UsageError
from bloomcli.formats.answer import NO_VALUES, Answer, UnitAnswers, of_all_types, with_engine_filters
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.hints import Command, Hint
from bloomcli.model.file import UNVERIFIED, Column, Presence
from bloomcli.model.probe import EngineAnswer, ProbeReport, ValueTotals, Verdict
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted
from bloomcli.values.literals import Literal, how_looked_up, parse


@convert_os_errors_of_file
@counted
def run(path: str | os.PathLike[str], options: ProbeOptions) -> ProbeReport:
    """Probe one file. Raises: as `probe`."""
    options = options.checked()
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        why = None if options.column is None else why_none(file, [options.column], exclude=options.exclude)
        if why is not None:
            return _not_in_file(
                file, options, f"{why}; its rows have the partition's value, the column's default or null"
            )
        chosen = only_column(file, options.column, purpose="probe", exclude=options.exclude)
        typed = file.literal_column(chosen)
        try:
            literals = list(_parsed(texts(options.values), typed, source.path, options.skip_blank))
        except LiteralError as error:
            raise _with_column(error, options, file) from None
        if not literals:
            raise UsageError("no values to probe, but for blank ones", path=source.path)
        units = list(file.look_up(chosen, literals, explain=options.explain))
        engines, excluded = _by_engines(file, chosen, literals, explain=options.explain)
        if excluded:
            units = list(with_engine_filters(units, excluded))
        units = of_all_types(units, file.other_types(chosen))
        report = replace(_report(file, chosen, literals, units), engine_filters=engines)
        told = [replace(t, reason=t.reason or how_looked_up(t.value, typed)) for t in report.totals]
        return replace(report, totals=tuple(told))


def _by_engines(
    file: FilterFile, column: Column, literals: Sequence[Literal], *, explain: bool
) -> tuple[tuple[EngineAnswer, ...], set[int]]:
    """The answers of filters that engines keep for the file, and the positions of the values that they exclude."""
    engine_answers = []
    excluded = set()
    for filter_ in filters_of(file, {column.index}).filters:
        for at, literal in enumerate(literals):
            answer = EngineAnswer(kind=filter_.facts.kind, value=literal.text, presence=Presence.MAYBE)
            if filter_.facts.problem is not None or literal.unknowable is not None:
                why = filter_.facts.problem or literal.unknowable
                answer = replace(answer, presence=Presence.UNKNOWN, reason=why)
            else:
                if not filter_.may_have(literal):
                    answer = replace(answer, presence=Presence.ABSENT, reason=literal.impossible)
                    excluded.add(at)
                if explain:
                    answer = replace(answer, trail=tuple(filter_.trail(form) for form in literal.encodings if form))
            engine_answers.append(answer)
    return tuple(engine_answers), excluded


def _report(file: FilterFile, column: Column, literals: Sequence[Literal], units: list[UnitAnswers]) -> ProbeReport:
    values = tuple(literal.text for literal in literals)
    return ProbeReport(
        path=file.source.path,
        format=file.format,
        column=column.path,
        variant_path=column.variant_path,
        physical=column.physical,
        logical=column.logical,
        row_groups=len(units),
        total_bytes=sum(u.row_group_bytes for u in units),
        verdicts=tuple(_verdict(unit, unit.answers[i], text) for i, text in enumerate(values) for unit in units),
        totals=tuple(_totals(text, i, units, literals[i].impossible) for i, text in enumerate(values)),
        unverified=UNVERIFIED if file.unverified else None,
    )


def _not_in_file(file: FilterFile, options: ProbeOptions, reason: str) -> ProbeReport:
    """The report on a column that the table has and the file doesn't have: no row group knows the answer."""
    texts_ = [text for text in texts(options.values) if text.strip() or not options.skip_blank]
    filtered = file.filtered_columns()
    # row groups and their bytes are the same for every column; a column without filters needs no reads
    other = min(file.columns, key=lambda column: column.index in filtered, default=None)
    units = [] if other is None else list(file.look_up(other, [], explain=False))
    if not units and file.rows:
        units = [UnitAnswers(row_group=0, rows=file.rows, chunk_bytes=0, row_group_bytes=0, answers=())]
    unknown, nothing = Answer(Presence.UNKNOWN, None, reason), Answer(Presence.NO_FILTER, True, NO_VALUES)
    report = _report(
        file,
        Column(path=str(options.column), index=-1, physical="(not in the file)"),
        [Literal(text=text, unknowable=reason) for text in texts_],
        [u._replace(chunk_bytes=0, answers=(unknown if u.rows else nothing,) * len(texts_)) for u in units],
    )
    return replace(report, totals=tuple(replace(t, reason=reason) for t in report.totals))


def _parsed(values: Sequence[str], column: Column, path: str, skip_blank: bool) -> Iterator[Literal]:
    for text in values:
        try:
            yield parse(text, column, path=path)
        except LiteralError:
            if not skip_blank or text.strip():
                raise


def _with_column(error: LiteralError, options: ProbeOptions, file: FilterFile) -> LiteralError:
    """The error, with a corrected command line as its hint if the first value is the name of a column."""
    named, *values = texts(options.values)
    if options.column is None and values and any(column.path == named for column in file.columns):
        error.hint = Hint(Command("probe", ("--column", named, *values)))
    return error


def _verdict(unit: UnitAnswers, answer: Answer, text: str) -> Verdict:
    return Verdict(
        stripe=unit.stripe,
        row_group=unit.row_group,
        value=text,
        presence=answer.presence,
        answer=answer.together,
        rows=unit.rows,
        chunk_bytes=unit.chunk_bytes,
        row_group_bytes=unit.row_group_bytes,
        stats_skip=answer.stats_skip,
        reason=answer.reason,
        trail=answer.trail,
        dictionary_skip=answer.dictionary_skip,
    )


def _totals(text: str, index: int, units: list[UnitAnswers], impossible: str | None) -> ValueTotals:
    pairs = [(unit, unit.answers[index]) for unit in units]
    skipped = [u for u, a in pairs if a.presence is Presence.ABSENT]
    by_stats = [u for u, a in pairs if a.stats_skip]
    gain = [u for u, a in pairs if a.presence is Presence.ABSENT and not a.stats_skip]
    absent = [u for u, a in pairs if a.together is Presence.ABSENT]
    return ValueTotals(
        value=text,
        presence=_weakest(a.presence for _, a in pairs),
        answer=_weakest(a.together for _, a in pairs),
        absent_row_groups=len(absent),
        absent_bytes=sum(u.row_group_bytes for u in absent),
        row_groups=len(units),
        skipped_row_groups=len(skipped),
        skipped_bytes=sum(u.row_group_bytes for u in skipped),
        stats_skipped_row_groups=len(by_stats),
        gain_row_groups=len(gain),
        gain_bytes=sum(u.row_group_bytes for u in gain),
        reason=impossible,
        dictionary_skipped_row_groups=sum(a.dictionary_skip is True for _, a in pairs),
    )


def _weakest(answers: Iterable[Presence]) -> Presence:
    levels = set(answers)
    return next((p for p in (Presence.MAYBE, Presence.UNKNOWN, Presence.NO_FILTER) if p in levels), Presence.ABSENT)
