"""validate: is every filter sound, is every wanted one there, and does none miss a value?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from glob import escape
from pathlib import PurePath
from typing import Final

from bloomcli.checks.limits import rates_and_sizes, required
from bloomcli.checks.profit import profit
from bloomcli.checks.readers import broken_promises, confirmed_zeros
from bloomcli.checks.readers import readers as losing
from bloomcli.commands.arguments import names, readers_policy
from bloomcli.commands.columns import excluded, indexes, select
from bloomcli.commands.progress import Meter, Progress, cores
from bloomcli.commands.sampling import chosen, share
from bloomcli.errors import BloomError, UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.file import FilterFacts, Finding, Severity, ValidateReport
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.storage.os_errors import of_file
from bloomcli.storage.source import open_source

_GRAVEST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_MISSING: Final = "value-missing"
"""Without reading values statistics may prove it; where values are read, those decide."""
_LONE_ZERO: Final = "reader-negative-zero"


@of_file
def validate(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    deep: bool = False,
    sample_row_groups: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ValidateReport:
    """Check a file's Bloom filters.

    Structure always: headers, lengths, offsets, overlaps, known-wrong writers. With `deep` every value of
    every filtered column chunk is read again, the filter is built again from them, and its bits are compared.

    Args:
        path: the file, local or a URI.
        columns: leaf paths or globs whose filters are checked; none means all.
        exclude: leaf paths or globs of columns that nothing is said of, whatever else names them.
        require: leaf paths or globs that must have a filter in every row group that has values.
        max_fpp: highest measured false-positive rate that is accepted, between 0 and 1.
        max_oversize: how many times as large as its values need a filter may be, at least 1.
        readers: the engines that read the file: where one of them would probe a filter wrongly is a finding.
        table_schema: file with the table's schema, for readers that probe at its types.
        policy: a policy, or the file that holds one; what is given here besides wins over it.
        deep: prove that no value is missing.
        sample_row_groups: ``5%`` or a number of each file's row groups (in ORC stripes) that `deep` reads.
        seed: of the sample.
        threads: column chunks that `deep` reads at a time; as many as there are cores if None.
        progress: called with ("check", bytes done, bytes in all).

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`; a filter that is wrong is a
        finding, a file that can't be read is an error. Where only its values can't be, the error's `findings`
            are what was found before.
        UsageError: a figure out of range, a policy that can't be read, an unknown engine.
    """
    asked = asked_for(policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table_schema=table_schema)
    rules = asked.for_file(os.fspath(path))
    started = time.perf_counter()
    with open_source(path) as source:
        file = open_file(source)
        unwanted = names(exclude, "columns")
        wanted = indexes(file.columns, names(columns, "columns"), path=source.path, exclude=unwanted)
        out = excluded(file.columns, unwanted, path=source.path)
        unasked = {c.path for c in file.columns if c.index in out}
        facts: list[FilterFacts] = []
        findings: list[Finding] = []
        for told in file.examine(wanted):
            if isinstance(told, Finding):
                findings.append(told)
            else:
                facts.append(told)
        needed = required(file, (*rules.required(), *_columns(file, names(require, "columns"))))
        findings += [finding for finding in needed if finding.column not in unasked]
        findings += rates_and_sizes(file, facts, rules)
        if rules.advice:
            findings += profit(file, wanted, rules.readers)
        units = _sample(file, sample_row_groups, seed) if deep else frozenset()
        values = 0
        zeros: list[Finding] = []
        if deep:
            proven: list[Finding] = []
            try:
                for found, zero, count in _deep(file, wanted, units, threads or cores(), progress):
                    values += count
                    proven += found
                    zeros += zero
            except BloomError as error:
                error.findings = _judged([*findings, *proven], rules)
                raise
            findings = [f for f in findings if f.id != _MISSING or _unit(f) not in units] + proven
        findings += _readers(file, facts, wanted, rules, zeros, whole=deep and len(units) == len(file.units()))
        return ValidateReport(
            path=source.path,
            format=file.format,
            row_groups=file.row_group_count,
            row_groups_read=sum(n for unit, n in enumerate(file.units()) if unit in units),
            filters_checked=len(facts),
            values_checked=values,
            deep=deep,
            findings=_judged(findings, rules),
            seconds=time.perf_counter() - started,
        )


def asked_for(
    policy: Policy | str | os.PathLike[str] | None,
    *,
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
) -> Policy:
    """The policy, or that of a file, with what was asked for besides. Raises UsageError."""
    asked = readers_policy(
        policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table_schema=table_schema
    )
    if table_schema is not None and not any(part.readers for part in (asked.whole, *asked.files)):
        raise UsageError(
            "a table's schema is for readers, and none is named",
            path=os.fspath(table_schema),
            hint="--readers spark,trino, or readers in the policy",
        )
    return asked


def _judged(findings: Iterable[Finding], rules: FilePolicy) -> tuple[Finding, ...]:
    return tuple(sorted(map(rules.judge, findings), key=rank))


def rank(finding: Finding) -> tuple[int, str, str, int, int, str]:
    """Sorts findings: the most severe first, then by rule, file and place."""
    return (
        _GRAVEST.index(finding.severity),
        finding.id,
        finding.path or "",
        finding.stripe or 0,
        finding.row_group or 0,
        finding.column or "",
    )


def _columns(file: FilterFile, names: Sequence[str]) -> Iterable[str]:
    """The columns that were named by hand, as globs of their own names: one that isn't there is a mistake, not a
    finding."""
    return [escape(c.path) for c in select(file.columns, names, path=file.source.path)] if names else ()


def _sample(file: FilterFile, text: str | None, seed: int) -> frozenset[int]:
    count = len(file.units())
    if text is None:
        return frozenset(range(count))
    name = PurePath(file.source.path).name
    return frozenset(chosen([f"{name}:{unit}" for unit in range(count)], share(text), seed))


def _unit(finding: Finding) -> int | None:
    """The row group or stripe that `deep` reads for it."""
    return finding.row_group if finding.stripe is None else finding.stripe


def _deep(
    file: FilterFile, wanted: set[int] | None, units: frozenset[int], threads: int, progress: Progress | None
) -> Iterator[tuple[list[Finding], list[Finding], int]]:
    meter = Meter(progress, "check", file.deep_bytes(wanted, units))
    for check in file.deep(wanted, meter.tick, units, threads):
        found = [] if check.finding is None else [check.finding]
        yield found, [] if check.negative_zero is None else [check.negative_zero], check.values


def _readers(
    file: FilterFile,
    facts: Sequence[FilterFacts],
    wanted: set[int] | None,
    rules: FilePolicy,
    zeros: Sequence[Finding],
    *,
    whole: bool,
) -> Iterator[Finding]:
    """What the named readers would lose. Of lone zeros filters only hint: where values were read, those decide."""
    if not rules.readers:
        if whole:
            yield from broken_promises(file, facts, wanted)
        return
    proven = list(confirmed_zeros(file, zeros, rules.readers))
    settled = {finding.column for finding in proven}
    for finding in losing(file, facts, rules.readers, rules.table, wanted):
        if finding.id != _LONE_ZERO or (not whole and finding.column not in settled):
            yield finding
    yield from proven
