"""validate: checks that every filter is sound, that required filters exist, and that no filter misses a value."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from glob import escape
from itertools import chain
from pathlib import PurePath
from typing import Final

from bloomcli.checks.additions import Remedies, by_readers
from bloomcli.checks.limits import rates_and_sizes, required
from bloomcli.checks.profit import profit
from bloomcli.checks.readers import broken_promises, confirmed_zeros
from bloomcli.checks.readers import readers as losing
from bloomcli.commands.columns import excluded, indexes, select
from bloomcli.commands.options import ValidateOptions, policy_of
from bloomcli.commands.sampling import chosen, share
from bloomcli.concurrency.threads import Meter, Progress, cores
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
        table: what the metadata of the file's table say about it; None if it isn't checked.
        threads: used if the options don't set a number.
        progress: called with the bytes that were read.

    Raises: as `validate`.
    """
    options = options.checked()
    rules = policy_of(options).for_file(os.fspath(path))
    started = time.perf_counter()
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        check = _Check(file, options, rules)
        findings = check.judged(check.findings(table, options.threads or threads or cores(), progress))
        return ValidateReport(
            path=source.path,
            format=file.format,
            row_groups=file.row_group_count,
            row_groups_read=sum(n for unit, n in enumerate(file.units()) if unit in check.units),
            filters_checked=check.filters,
            values_checked=check.values,
            deep=options.deep,
            findings=findings,
            seconds=time.perf_counter() - started,
        )


class _Check:
    """The checks of one file.

    Attributes:
        units: row groups (in ORC stripes) whose values are read; none without `deep`.
        values: the number of values that were read.
    """

    def __init__(self, file: FilterFile, options: ValidateOptions, rules: FilePolicy) -> None:
        self._file, self._options, self._rules = file, options, rules
        self._columns = indexes(file, options.columns, exclude=options.exclude)
        """Ordinals of the columns whose filters are checked; None for all."""
        self._engine_filters = filters_of(file, self._columns)
        """The filters that engines keep for these columns."""
        self.units = _sample(file, options.sample_row_groups, options.seed) if options.deep else frozenset()
        self._whole = options.deep and len(self.units) == len(file.units())
        """Whether all values are read, so that these decide what is wrong."""
        self._facts: list[FilterFacts] = []
        self._zeros: list[Finding] = []
        """Findings about filters that don't hold +0.0 although a value is -0.0."""
        self._measured: list[MeasuredColumn] = []
        """The values that were read."""
        self.values = 0

    @property
    def filters(self) -> int:
        """The number of filters that were checked."""
        return len(self._facts) + sum(not f.facts.problem or bool(f.faults) for f in self._engine_filters.filters)

    @property
    def _proven(self) -> set[int] | None:
        """Ordinals of the columns whose values and statistics are checked; None for those with filters."""
        if self._columns is None or self._options.columns:
            return self._columns
        return self._columns & self._file.filtered_columns()  # only `--exclude` was given

    def findings(self, table: FileStatistics | None, threads: int, progress: Progress | None) -> list[Finding]:
        """All findings, not yet judged. An error in reading the values carries those so far."""
        findings = self._by_metadata()
        if self._options.deep:
            by_values = self._by_values(findings, threads, progress)
            findings = [f for f in findings if f.id not in _BY_VALUES or not self._is_read(f)]
            findings += by_values
        findings += self._readers()
        if table is not None:
            from bloomcli.checks.table_statistics import check_table  # most files are in no table

            findings += check_table(self._file, table, self._columns, of_columns(self._measured))
        return findings

    def _by_metadata(self) -> list[Finding]:
        """The findings that need no values."""
        file, options, rules = self._file, self._options, self._rules
        left_out = excluded(file.columns, options.exclude, path=file.source.path, lacking=file.missing_columns)
        unchecked = {c.path for c in file.columns if c.index in left_out}
        findings: list[Finding] = []
        contradictions = () if self._whole else file.contradictions(self._columns)
        for item in chain(file.examine(self._columns), contradictions):
            if isinstance(item, Finding):
                findings.append(item)
            else:
                self._facts.append(item)
        findings = list(by_readers(findings, rules, file.format))
        missing = required(file, self._required(), rules)
        findings += [finding for finding in missing if finding.column not in unchecked]
        findings += rates_and_sizes(file, self._facts, rules)
        findings += self._engine_filters.examine()
        if rules.advice:
            findings += profit(file, self._columns, rules.readers)
        return findings

    def _required(self) -> tuple[str, ...]:
        """Names and globs of the columns that must have a filter. Those that options name become globs that match
        only them: an unknown one is an error, not a finding."""
        file, names = self._file, self._options.require
        if not names:
            return self._rules.required()
        chosen = select(file.columns, names, path=file.source.path, lacking=file.missing_columns)
        return (*self._rules.required(), *(escape(column.path) for column in chosen))

    def _by_values(self, before: Sequence[Finding], threads: int, progress: Progress | None) -> list[Finding]:
        """Read the values and prove that no filter misses one. An error carries the findings so far, and `before`."""
        file, columns, units = self._file, self._proven, self.units
        findings: list[Finding] = []
        try:
            meter = Meter(progress, "check", file.deep_bytes(columns, units))
            for check in file.deep(columns, meter.tick, units, threads):
                self.values += check.values
                findings += check.proof
                if check.measured is not None:
                    self._measured.append(check.measured)
                if check.finding is not None:
                    findings.append(check.finding)
                if check.negative_zero is not None:
                    self._zeros.append(check.negative_zero)
            for filter_ in self._engine_filters.filters:
                from bloomcli.engine_filters.proof import prove  # most files have no such filter

                proof = prove(file, filter_, units)
                self.values += proof.values
                findings += proof.findings
        except BloomError as error:
            if self._whole:
                with suppress(BloomError):  # the first error is reported
                    findings += file.contradictions(columns)
            error.findings = self.judged([*before, *findings])
            raise
        return findings

    def _is_read(self, finding: Finding) -> bool:
        """Whether `deep` reads all values that a finding is about; never if it is about no column."""
        unit = finding.row_group if finding.stripe is None else finding.stripe  # what `deep` reads
        if finding.column is None:
            return False
        return unit in self.units if unit is not None else self._whole

    def _readers(self) -> Iterator[Finding]:
        """Yield findings about rows that the named readers lose. Filters only hint at lone zeros; if values were
        read, the values decide."""
        file, rules = self._file, self._rules
        if not rules.readers:
            if self._whole:
                yield from broken_promises(file, self._facts, self._columns)
            return
        proven = list(confirmed_zeros(file, self._zeros, rules.readers))
        settled = {finding.column for finding in proven}
        for finding in losing(file, self._facts, rules.readers, rules.table, self._proven):
            if finding.id != _LONE_ZERO or (not self._whole and finding.column not in settled):
                yield finding
        yield from proven

    def judged(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings with the policy's severities and complete command lines in hints, the most severe first."""
        path, rules, table = self._file.source.path, self._rules, None
        if self._options.names is None and any(isinstance(finding.hint, Hint) for finding in findings):
            table = _table_of(path)
        remedies = Remedies(self._file, rules, self._required())
        others = {column.path for column in self._file.columns if column.not_in_table}

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


def _sample(file: FilterFile, text: str | None, seed: int) -> frozenset[int]:
    count = len(file.units())
    if text is None:
        return frozenset(range(count))
    name = PurePath(file.source.path).name
    return frozenset(chosen([f"{name}:{unit}" for unit in range(count)], share(text), seed))
