"""validate: checks that every filter is sound, that required filters exist, and that no filter misses a value."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import escape
from itertools import chain
from pathlib import PurePath
from typing import Final

from bloomcli.checks.limits import rates_and_sizes, required
from bloomcli.checks.profit import profit
from bloomcli.checks.readers import broken_promises, confirmed_zeros
from bloomcli.checks.readers import readers as losing
from bloomcli.checks.remedies import Remedies
from bloomcli.checks.sizes import by_readers
from bloomcli.commands.columns import excluded, indexes, select
from bloomcli.commands.options import ValidateOptions, policy_of
from bloomcli.commands.progress import Meter, Progress, cores
from bloomcli.commands.sampling import chosen, share
from bloomcli.engine_filters.base import EngineFilters
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import BloomError
from bloomcli.formats.base import FilterFile, MeasuredColumn, of_columns
from bloomcli.formats.registry import open_file
from bloomcli.hints import Hint, completed, on_table
from bloomcli.model.file import FilterFacts, Severity
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.model.validate import Finding, ValidateReport
from bloomcli.policy.policy import FilePolicy
from bloomcli.storage.managed_tables import table_above
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source, store_of

_GRAVEST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_BY_VALUES: Final = (
    "value-missing",
    "statistics-bounds",
    "statistics-counts",
    "page-index-bounds",
    "page-index-counts",
    "page-index-locations",
    "row-index-positions",
)
"""Metadata alone may show these. If the values are read, the values decide."""
_LONE_ZERO: Final = "reader-negative-zero"
_OF_OTHERS: Final = "remove without --columns removes the column's filters, with all others of the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """The checks of one file."""

    file: FilterFile
    options: ValidateOptions
    rules: FilePolicy
    columns: set[int] | None
    """Ordinals of the columns whose filters are checked; None for all."""
    units: frozenset[int]
    """Row groups (in ORC stripes) whose values are read; none without `deep`."""
    engine_filters: EngineFilters
    """The filters that engines keep for these columns."""

    @property
    def proven(self) -> set[int] | None:
        """Ordinals of the columns whose values and statistics are checked; None for those with filters."""
        if self.columns is None or self.options.columns:
            return self.columns
        return self.columns & self.file.filtered_columns()  # only `--exclude` was given

    @property
    def whole(self) -> bool:
        """Whether all values are read, so that these decide what is wrong."""
        return self.options.deep and len(self.units) == len(self.file.units())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """The result of reading the values."""

    checked: int = 0
    findings: tuple[Finding, ...] = ()
    zeros: tuple[Finding, ...] = ()
    """Findings about filters that don't hold +0.0 although a value is -0.0."""
    measured: Mapping[int, MeasuredColumn] = field(default_factory=dict)
    """The values that were read, by the ordinals of their columns."""


@convert_os_errors_of_file
def run(
    path: str | os.PathLike[str],
    options: ValidateOptions,
    *,
    table: FileStatistics | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ValidateReport:
    """Check one file.

    Args:
        path: the file.
        options: what to check.
        table: what the metadata of the file's table say about it; None: it isn't checked.
        threads: used if the options don't set a number.
        progress: called with the bytes that were read.

    Raises: as `validate`.
    """
    options = options.checked()
    rules = policy_of(options).for_file(os.fspath(path))
    started = time.perf_counter()
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        check = _Check(
            file=file,
            options=options,
            rules=rules,
            columns=indexes(file, options.columns, exclude=options.exclude),
            engine_filters=filters_of(file, indexes(file, options.columns, exclude=options.exclude)),
            units=_sample(file, options.sample_row_groups, options.seed) if options.deep else frozenset(),
        )
        facts, findings = _by_metadata(check)
        values = _Values()
        if options.deep:
            values = _by_values(check, findings, options.threads or threads or cores(), progress)
            findings = [f for f in findings if f.id not in _BY_VALUES or not _is_read(check, f)]
            findings += values.findings
        findings += _readers(check, facts, values.zeros)
        if table is not None:
            from bloomcli.checks.table_statistics import check_table  # most files are in no table

            findings += check_table(file, table, check.columns, values.measured)
        return ValidateReport(
            path=source.path,
            format=file.format,
            row_groups=file.row_group_count,
            row_groups_read=sum(n for unit, n in enumerate(file.units()) if unit in check.units),
            filters_checked=len(facts)
            + sum(not f.facts.problem or bool(f.faults) for f in check.engine_filters.filters),
            values_checked=values.checked,
            deep=options.deep,
            findings=_judged(check, findings),
            seconds=time.perf_counter() - started,
        )


def _by_metadata(check: _Check) -> tuple[list[FilterFacts], list[Finding]]:
    """The filters, and the findings that need no values."""
    file, options, rules = check.file, check.options, check.rules
    left_out = excluded(file.columns, options.exclude, path=file.source.path, lacking=file.missing_columns)
    unchecked = {c.path for c in file.columns if c.index in left_out}
    facts: list[FilterFacts] = []
    findings: list[Finding] = []
    contradictions = () if check.whole else file.contradictions(check.columns)
    for item in chain(file.examine(check.columns), contradictions):
        if isinstance(item, Finding):
            findings.append(item)
        else:
            facts.append(item)
    findings = list(by_readers(findings, rules, file.format))
    missing = required(file, _required(check), rules)
    findings += [finding for finding in missing if finding.column not in unchecked]
    findings += rates_and_sizes(file, facts, rules)
    findings += check.engine_filters.examine()
    if rules.advice:
        findings += profit(file, check.columns, rules.readers)
    return facts, findings


def _required(check: _Check) -> tuple[str, ...]:
    """Names and globs of the columns that must have a filter."""
    return (*check.rules.required(), *_columns(check.file, check.options.require))


def _by_values(check: _Check, before: Sequence[Finding], threads: int, progress: Progress | None) -> _Values:
    """Read the values and prove that no filter misses one. An error carries the findings so far, and `before`."""
    file, columns, units = check.file, check.proven, check.units
    values = 0
    findings: list[Finding] = []
    zeros: list[Finding] = []
    measured: list[MeasuredColumn] = []
    try:
        meter = Meter(progress, "check", file.deep_bytes(columns, units))
        for found in file.deep(columns, meter.tick, units, threads):
            values += found.values
            findings += found.proof
            if (part := found.measured) is not None:
                measured.append(part)
            if found.finding is not None:
                findings.append(found.finding)
            if found.negative_zero is not None:
                zeros.append(found.negative_zero)
        for one in check.engine_filters.filters:
            from bloomcli.engine_filters.proof import prove  # most files have no such filter

            proof = prove(file, one, units)
            values += proof.values
            findings += proof.findings
    except BloomError as error:
        if check.whole:
            with suppress(BloomError):  # the first error is reported
                findings += file.contradictions(columns)
        error.findings = _judged(check, [*before, *findings])
        raise
    return _Values(checked=values, findings=tuple(findings), zeros=tuple(zeros), measured=of_columns(measured))


def _judged(check: _Check, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with the policy's severities and complete command lines in hints, the most severe first."""
    path, rules, table = check.file.source.path, check.rules, None
    findings = list(findings)
    if check.options.names is None and any(isinstance(finding.hint, Hint) for finding in findings):
        table = _table_of(path)
    remedies = Remedies(check.file, rules, _required(check))
    others = {column.path for column in check.file.columns if column.not_in_table}

    def judge(finding: Finding) -> Finding:
        hint = completed(remedies.of(finding), path, finding.column, rules.readers)
        if finding.column in others:  # no name selects the column
            hint = _OF_OTHERS
        if table is not None:
            hint = on_table(hint, table)
        return rules.judge(replace(finding, hint=hint))

    return tuple(sorted(map(judge, findings), key=rank))


def _table_of(path: str) -> str | None:
    """The name of the table that a local file belongs to; None if unknown, and for files in a store, where the search
    would send requests."""
    store = store_of(path)
    if store.remote:
        return None
    with suppress(BloomError):
        table = table_above(store, path)
        return None if table is None else table.name
    return None


def rank(finding: Finding) -> tuple[int, str, str, int, int, str]:
    """Sort key of findings: the most severe first, then by rule, file, row group and column."""
    return (
        _GRAVEST.index(finding.severity),
        finding.id,
        finding.path or "",
        finding.stripe or 0,
        finding.row_group or 0,
        finding.column or "",
    )


def _columns(file: FilterFile, names: Sequence[str]) -> Iterable[str]:
    """The columns that the caller requires by name, as globs that match only them. An unknown column is an error, not
    a finding."""
    if not names:
        return ()
    return [escape(c.path) for c in select(file.columns, names, path=file.source.path, lacking=file.missing_columns)]


def _sample(file: FilterFile, text: str | None, seed: int) -> frozenset[int]:
    count = len(file.units())
    if text is None:
        return frozenset(range(count))
    name = PurePath(file.source.path).name
    return frozenset(chosen([f"{name}:{unit}" for unit in range(count)], share(text), seed))


def _is_read(check: _Check, finding: Finding) -> bool:
    """Whether `deep` reads all values that a finding is about; never if it is about no column."""
    unit = finding.row_group if finding.stripe is None else finding.stripe  # what `deep` reads
    if finding.column is None:
        return False
    return unit in check.units if unit is not None else check.whole


def _readers(check: _Check, facts: Sequence[FilterFacts], zeros: Sequence[Finding]) -> Iterator[Finding]:
    """Yield findings about rows that the named readers lose. Filters only hint at lone zeros; if values were read,
    the values decide."""
    file, rules = check.file, check.rules
    if not rules.readers:
        if check.whole:
            yield from broken_promises(file, facts, check.columns)
        return
    proven = list(confirmed_zeros(file, zeros, rules.readers))
    settled = {finding.column for finding in proven}
    for finding in losing(file, facts, rules.readers, rules.table, check.proven):
        if finding.id != _LONE_ZERO or (not check.whole and finding.column not in settled):
            yield finding
    yield from proven
