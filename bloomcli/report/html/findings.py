"""The page of `validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, islice
from typing import Final

from bloomcli.hints import joined
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.html import charts
from bloomcli.report.html.parts import Chart, Document, Key, Page, Part, Section, Table, table
from bloomcli.report.human import count, row_group_text
from bloomcli.report.layout import Cell, Columns, Head, Pairs, Style, figures, line
from bloomcli.report.text_dataset import STATUS_STYLE
from bloomcli.report.text_gate import SEVERITY_STYLE, run_facts
from bloomcli.report.verdict import baseline, checked, is_clean, sentence, verdict
from bloomcli.rules import page as rule_page
from bloomcli.rules import rule
from bloomcli.words import plural

_FILES_IN_HINT: Final = 5
"""The most files that a hint's command names."""
_TONE: Final = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "dim"}
_SERIES: Final = (("bad", "errors"), ("warn", "warnings"), ("dim", "notes"), ("line", "switched off or known"))


def page(report: GateReport, most: int) -> Page:
    """Return the page of a check: facts, findings by rule, findings, files, pages of rules."""
    by_rule: dict[str, Counter[str]] = {}
    for finding in report.findings:
        disregarded = finding.off is not None or finding.known
        by_rule.setdefault(finding.id, Counter())["line" if disregarded else _TONE[finding.severity]] += 1
    style = Style.BAD if report.exit_code else Style.GOOD if is_clean(report) else Style.WARN
    sections = [Section("Check", tuple(_facts(report)))]
    if by_rule:
        sections.append(Section("Findings by rule", (_by_rule(by_rule), _by_column(report.findings, most))))
        sections.append(Section("Findings", (*_hints(report.findings), _findings(report.findings, most))))
    if report.rows:
        sections.append(Section("Files", (_files(report, most),)))
    if by_rule:
        texts = tuple(Document(f"{id_}: {rule(id_).title}", rule_page(id_)) for id_ in by_rule)
        sections.append(Section("Rules", (line("What each rule checks, why, and how to fix a finding."), *texts)))
    return Page(_title(report), "validate", line(verdict(report), style), tuple(sections))


def _title(report: GateReport) -> str:
    if report.table is not None:
        return report.table.name
    return report.rows[0].path if len(report.rows) == 1 else checked(report)


def _facts(report: GateReport) -> Iterator[Part]:
    items = [
        ("baseline", baseline(report)),
        ("errors", count(report.errors)),
        ("warnings", count(report.warnings)),
        ("notes", count(report.notes)),
        ("switched off", count(report.off) if report.off else ""),
        ("in the baseline", count(report.known) if report.known else ""),
    ]
    yield Pairs((*run_facts(report).items, *((name, Cell(text)) for name, text in items if text)))


def _by_rule(by_rule: dict[str, Counter[str]]) -> Chart:
    ordered = sorted(by_rule.items(), key=lambda item: -item[1].total())
    rows = [
        (id_, tuple((tone, float(counts[tone])) for tone, _ in _SERIES), count(counts.total()))
        for id_, counts in ordered
    ]

    def number(tone: str, item: tuple[str, Counter[str]]) -> int:
        return item[1][tone]

    columns: Columns[tuple[str, Counter[str]]] = [
        (Head("rule"), lambda item: item[0]),
        (Head("what"), lambda item: rule(item[0]).title),
        *(figures(text, partial(number, tone)) for tone, text in _SERIES),
    ]
    title = "Findings by rule"
    most = max(counts.total() for counts in by_rule.values())
    return Chart(
        title,
        f"A bar for each of {count(len(rows))} rules, as long as it has findings: errors, warnings, notes, and those "
        "that are switched off or known.",
        charts.bars(rows, charts.numbers(most), "findings"),
        legend=tuple(Key(tone, text) for tone, text in _SERIES),
        table=table(title, ordered, columns),
    )


def _by_column(findings: Sequence[Finding], most: int) -> Table:
    """The number of findings by rule and column, the most severe first."""
    groups: dict[tuple[str, str, Severity], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.id, finding.column or "", finding.severity), []).append(finding)
    order = sorted(groups, key=lambda key: (-_severity(key[2]), -len(groups[key])))
    columns: Columns[tuple[str, str, Severity]] = [
        (Head("rule"), lambda key: key[0]),
        (Head("column"), lambda key: key[1]),
        (Head("severity"), lambda key: _severity_cell(key[2])),
        figures("findings", lambda key: len(groups[key])),
        figures("files", lambda key: len({finding.path for finding in groups[key]})),
    ]
    return table("Findings by rule and column", order, columns, most=most, chosen="most severe")


def _hints(findings: Sequence[Finding]) -> Iterator[Table]:
    """One hint for each rule: for the first files, if it fits them all, or that of the first finding."""
    hints: dict[str, dict[str | None, list[str]]] = {}
    for finding in findings:
        if finding.hint and finding.off is None and not finding.known:
            hints.setdefault(finding.id, {}).setdefault(finding.path, []).append(finding.hint)
    rows = []
    for id_, by_file in hints.items():
        first = [hint for texts in islice(by_file.values(), _FILES_IN_HINT) for hint in texts]
        common, left = joined(first), len(by_file) - _FILES_IN_HINT
        if common is None:
            others = len(set(chain.from_iterable(by_file.values()))) - 1
            rows.append((id_, first[0], f"likewise for {count(others)} more"))
        else:
            rows.append((id_, common, f"likewise in {plural(left, 'more file')}" if left > 0 else ""))
    if rows:
        columns: Columns[tuple[str, str, str]] = [
            (Head("rule"), lambda row: row[0]),
            (Head("hint"), lambda row: row[1]),
            (Head("other findings"), lambda row: row[2]),
        ]
        yield table("What to do", rows, columns)


def _findings(findings: Sequence[Finding], most: int) -> Table:
    def where(finding: Finding) -> str:
        if finding.places:
            return f"row groups {finding.places}"
        return row_group_text(finding.stripe, finding.row_group)

    def counts(finding: Finding) -> str:
        return finding.off or ("in the baseline" if finding.known else "yes" if finding.counts else "no: a note")

    columns: Columns[Finding] = [
        (Head("rule"), lambda f: f.id),
        (Head("severity"), lambda f: _severity_cell(f.severity)),
        (Head("file"), lambda f: f.path or ""),
        (Head("column"), lambda f: f.column or ""),
        (Head("where"), where),
        (Head("message"), lambda f: sentence(f, "")),
        (Head("counts"), counts),
    ]
    return table("Findings", findings, columns, most=most, chosen="most severe")


def _severity_cell(severity: Severity) -> Cell:
    return Cell(severity.value, SEVERITY_STYLE[severity], _severity(severity))


def _severity(severity: Severity) -> float:
    return (Severity.NOTE, Severity.WARNING, Severity.ERROR).index(severity)


def _files(report: GateReport, most: int) -> Table:
    """The table of files: failed ones first, then those with the most findings."""
    order = (Status.FAILED, Status.FOUND, Status.DONE, Status.SKIPPED, Status.PLANNED)
    number = Counter(finding.path for finding in report.findings if finding.counts)
    chosen = nsmallest(most, report.rows, key=lambda row: (order.index(row.status), -number[row.path]))
    columns: Columns[FileRow] = [
        (Head("file"), lambda row: row.path),
        (Head("status"), lambda row: Cell(row.status.value, STATUS_STYLE[row.status])),
        figures("findings that count", lambda row: number[row.path]),
        figures("row groups", lambda row: row.row_groups),
        figures("filters", lambda row: row.filters),
        figures("values looked up", lambda row: row.values_checked),
        (Head("error"), lambda row: Cell(row.error or row.reason or "", Style.BAD if row.error else Style.PLAIN)),
    ]
    return table(
        "Checked files",
        chosen,
        columns,
        total=len(report.rows),
        chosen="files with most findings (failed ones before others)",
    )
