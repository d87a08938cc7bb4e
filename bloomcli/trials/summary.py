"""Makes a reader's row of the report from the outcomes of its lookups."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from bloomcli.commands import validate
from bloomcli.commands.options import ValidateOptions
from bloomcli.errors import BloomError
from bloomcli.formats.registry import format_named
from bloomcli.model.file import Column
from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups
from bloomcli.rules.reader_table import NEGATIVE_ZERO
from bloomcli.rules.readers import Encoded, uses
from bloomcli.trials.process import Completion, Job, Outcome, Trial, TrialFile
from bloomcli.trials.readers import Entry
from bloomcli.trials.readers.base import LookupResult
from bloomcli.trials.values import LookupValue
from bloomcli.values.literals import kind_of
from bloomcli.words import plural

Tried = tuple[Trial, Outcome]
"""A lookup that a reader ran, and its outcome."""


def reader_row_not_run(entry: Entry, formats: set[str], columns: Sequence[Encoded]) -> ReaderTrial:
    """The row of a reader that didn't run: it isn't installed, doesn't read files of these formats, or wasn't named
    and never looks at filters."""
    if entry.version is None:
        row = _row(entry, "not-installed", formats, columns)
        return replace(row, reason="not installed", hint=entry.install)
    if formats & entry.formats and not formats & entry.probes:
        (never,) = uses(entry.known, formats, columns)[:1]
        return replace(_row(entry, "not-run", formats, columns), reason=f"{never.reason}; --readers names it")
    names = " and ".join(format_named(name).title for name in sorted(formats))
    return replace(_row(entry, "unsupported", formats, columns), reason=f"it doesn't read {names} files")


def reader_row(
    entry: Entry,
    job: Job,
    tried: Sequence[Tried],
    end: Completion,
    columns: Sequence[Encoded],
    seconds: float,
) -> ReaderTrial:
    """The row of a reader that ran.

    Args:
        entry: the reader.
        job: the lookups that it was given.
        tried: the lookups that it ran.
        end: its last message.
        columns: how the chunks of the columns are encoded.
        seconds: the time that it took, including its start.
    """
    compared = [pair for pair in tried if pair[1].with_filters is not None]
    differences = tuple(_differences(entry, compared))
    if differences:
        status = "unequal"
    elif end.error is not None:
        status = "failed"
    else:
        status = "equal" if compared else "unsupported"
    comparisons = {file.comparison for file in job.files}
    return replace(
        _row(entry, status, {file.format for file in job.files}, columns),
        comparison=(comparisons.pop() if len(comparisons) == 1 else "mixed") if compared else None,
        reason="; ".join(_reasons(tried, end)) or None,
        hint=end.hint,
        lookups=tuple(_lookups(job, compared)),
        differences=differences,
        seconds=seconds,
    )


def _row(entry: Entry, status: str, formats: set[str], columns: Sequence[Encoded]) -> ReaderTrial:
    """The row of a reader, without its lookups."""
    return ReaderTrial(
        reader=entry.name,
        title=entry.title,
        version=entry.version,
        status=status,
        uses_filters=bool(formats & entry.probes),
        uses=uses(entry.known, formats, columns),
        switch=next((entry.switches[name] for name in sorted(formats) if name in entry.switches), None),
    )


def _reasons(tried: Sequence[Tried], end: Completion) -> Iterator[str]:
    """Yield the reasons for which not all rows were compared: each error of the reader once per column, and the error
    with which it ended."""
    failed: dict[tuple[str, str], int] = {}
    counted: dict[str, str] = {}
    for trial, outcome in tried:
        column = trial.column.column.name
        if isinstance(outcome.without, str):
            failed[column, outcome.without] = failed.get((column, outcome.without), 0) + 1
        elif outcome.counted is not None:
            counted.setdefault(outcome.counted, column)
    for (column, error), number in failed.items():
        yield f"{plural(number, 'lookup')} of {column} failed without filters: {error}"
    for error in counted:
        yield f"rows were counted, not compared, as it doesn't read all columns: {error}"
    if end.error is not None:
        yield end.error


def _differences(entry: Entry, compared: Iterable[Tried]) -> Iterator[RowDifference]:
    reader = f"{entry.title} {entry.version}"
    for trial, outcome in compared:
        file, column, lookup_value = trial.file, trial.column.column, trial.value
        without, with_filters = outcome.without, outcome.with_filters
        assert isinstance(without, LookupResult)  # noqa: S101  only compared outcomes are passed in
        if isinstance(with_filters, LookupResult) and _same(without, with_filters):
            continue
        rule = _rule(entry, file, column, lookup_value)
        who = f"{reader}: {column.name} = {lookup_value.literal}"
        if not isinstance(with_filters, LookupResult):
            what = f"fails with filters, and returns {plural(without.rows, 'row')} without: {with_filters}"
        elif without.rows != with_filters.rows:
            what = f"returns {plural(with_filters.rows, 'row')} with filters and {without.rows:,} without"
        else:
            what = f"returns {plural(with_filters.rows, 'row')} with other contents with filters than without"
        yield RowDifference(
            path=file.path,
            column=column.path,
            value=lookup_value.text,
            rows_without=without.rows,
            rows_with=with_filters.rows if isinstance(with_filters, LookupResult) else None,
            rule=rule,
            message=f"{who} {what}",
        )


def _same(without: LookupResult, other: LookupResult) -> bool:
    return without.rows == other.rows and without.digest == other.digest


def _rule(entry: Entry, file: TrialFile, column: Column, lookup_value: LookupValue) -> str | None:
    """The rule about a known mistake of the reader with this column or value: `validate` reports it for the file with
    filters, and the table of readers lists it for this reader. None if there is no such rule."""
    who = entry.known
    if lookup_value.text in {"0.0", "-0.0"} and who.loses_zeros(kind_of(column).upper(), file.format):
        return NEGATIVE_ZERO if NEGATIVE_ZERO in who.wrong_about else None
    rules = {*who.wrong_about, *who.refuses, *who.misreads} - {NEGATIVE_ZERO}
    return next((rule for rule in _broken_rules(file.with_filters, column.path, who.name) if rule in rules), None)


@cache
def _broken_rules(path: str, column: str, reader: str) -> tuple[str, ...]:
    """The rules that a column's filters break for a reader; none if the file can't be validated."""
    try:
        report = validate.run(path, ValidateOptions(columns=[column], readers=[reader]).checked())
    except BloomError:
        return ()
    return tuple(finding.id for finding in report.findings)


def _lookups(job: Job, compared: Sequence[Tried]) -> Iterator[TrialLookups]:
    """The figures of each column's present and absent values."""
    paths = (column.column.path for file in job.files for column in file.columns)
    groups: dict[tuple[str, bool], list[Tried]] = {(path, kind): [] for path in paths for kind in (True, False)}
    for trial, outcome in compared:
        groups[trial.column.column.path, trial.value.present].append((trial, outcome))
    for (_, present), group in groups.items():
        if group:
            yield _lookup_figures(group[0][0].column.column, group, present=present)


def _lookup_figures(column: Column, group: Sequence[Tried], *, present: bool) -> TrialLookups:
    pairs = [
        (outcome.without, outcome.with_filters)
        for _, outcome in group
        if isinstance(outcome.without, LookupResult) and isinstance(outcome.with_filters, LookupResult)
    ]
    without, with_filters = [base.metrics for base, _ in pairs], [other.metrics for _, other in pairs]
    times = [pair for _, outcome in group for pair in outcome.seconds]
    return TrialLookups(
        column=column.path,
        variant_path=column.variant_path,
        kind="present" if present else "absent",
        lookups=len(group),
        unequal=len(group) - sum(_same(base, other) for base, other in pairs),
        not_found=sum(present and base.rows == 0 for base, _ in pairs),
        rows_without=sum(base.rows for base, _ in pairs),
        rows_with=sum(other.rows for _, other in pairs),
        row_groups=sum(trial.file.row_groups for trial, _ in group),
        row_groups_without=_total(read.row_groups for read in without),
        row_groups_with=_total(read.row_groups for read in with_filters),
        rows_read_without=_total(read.rows for read in without),
        rows_read_with=_total(read.rows for read in with_filters),
        bytes_without=_total(read.bytes for read in without),
        bytes_with=_total(read.bytes for read in with_filters),
        seconds_without=quartiles([base for base, _ in times]),
        seconds_with=quartiles([other for _, other in times]),
        ratio=quartiles([other / base for base, other in times if base > 0]),
    )


def _total(numbers: Iterable[int | None]) -> int | None:
    """The sum; None if there are no numbers, or if one of them isn't known."""
    counts = list(numbers)
    addends = [number for number in counts if number is not None]
    return sum(addends) if addends and len(addends) == len(counts) else None


def quartiles(figures: Sequence[float]) -> Quartiles | None:
    """The median and the quartiles, by linear interpolation between the nearest measurements; None without any."""
    if not figures:
        return None
    if len(figures) == 1:
        return Quartiles(low=figures[0], median=figures[0], high=figures[0], count=1)
    low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
    return Quartiles(low=low, median=median, high=high, count=len(figures))
