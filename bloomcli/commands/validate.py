"""validate: is every filter sound, is every wanted one there, and does none miss a value?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from bloomcli.commands.change import Progress
from bloomcli.commands.columns import indexes, select
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model import FilterFacts, Finding, Severity, ValidateReport
from bloomcli.source import open_source

_SHOWN = 8


def validate(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    deep: bool = False,
    progress: Progress | None = None,
) -> ValidateReport:
    """Check a file's Bloom filters.

    Structure always: headers, lengths, offsets, overlaps, known-wrong writers. With `deep` every value of
    every filtered column chunk is read again and looked up in its filter.

    Args:
        path: the file, local or a URI.
        columns: leaf paths or globs whose filters are checked; none means all.
        require: leaf paths or globs that must have a filter in every row group that has values.
        max_fpp: highest measured false-positive rate that is accepted.
        deep: prove that no value is missing.
        progress: called with ("check", bytes done, bytes in all).

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`; a filter that is wrong is a
        finding, a file that can't be read is an error.
    """
    if max_fpp is not None and not 0 < max_fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {max_fpp}")
    started = time.perf_counter()
    with open_source(path) as source:
        file = open_file(source)
        chosen = indexes(file.columns, columns, path=source.path)
        facts = list(file.facts(chosen))
        findings = list(file.structure(chosen))
        findings += _required(file, require)
        if max_fpp is not None:
            findings += _above(facts, max_fpp)
        values = 0
        if deep:
            done, total = 0, file.deep_bytes(chosen)

            def tick(count: int) -> None:
                nonlocal done
                done += count
                if progress is not None:
                    progress("check", done, total)

            for check in file.deep(chosen, tick):
                values += check.values
                if check.finding is not None:
                    findings.append(check.finding)
        return ValidateReport(
            path=source.path,
            format=file.format,
            filters_checked=len(facts),
            values_checked=values,
            deep=deep,
            findings=tuple(sorted(findings, key=_rank)),
            seconds=time.perf_counter() - started,
        )


def _rank(finding: Finding) -> tuple[int, str, int, str]:
    order = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    return order.index(finding.severity), finding.id, finding.row_group or 0, finding.column or ""


def _required(file: FilterFile, names: Sequence[str]) -> Iterator[Finding]:
    if not names:
        return
    for column in select(file.columns, names, path=file.source.path):
        without = file.without_filter(column)
        if without:
            listed = ", ".join(map(str, without[:_SHOWN])) + (", ..." if len(without) > _SHOWN else "")
            yield Finding(
                id="filter-required",
                severity=Severity.ERROR,
                message=f"no filter in {len(without)} of {file.row_group_count} row groups: {listed}",
                row_group=without[0],
                column=column.path,
                hint=f"`bloom add --columns {column.path}`",
            )


def _above(facts: Sequence[FilterFacts], max_fpp: float) -> Iterator[Finding]:
    for fact in facts:
        if fact.fpp is not None and fact.fpp > max_fpp:
            yield Finding(
                id="filter-fpp",
                severity=Severity.ERROR,
                message=f"the measured false-positive rate is {fact.fpp:.4g}, above {max_fpp:g}",
                row_group=fact.row_group,
                column=fact.column,
                offset=fact.offset,
                hint=f"`bloom add --replace --fpp {max_fpp:g} --columns {fact.column}`",
            )
