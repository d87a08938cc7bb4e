"""The page of `validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import chain, islice
from typing import Final

from bloomcli.hints import joined
from bloomcli.model.dataset import Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.html import charts
from bloomcli.report.html.draw import chart
from bloomcli.report.html.parts import (
    SEVERITY_TONE,
    Cell,
    Chart,
    Document,
    Facts,
    Head,
    Key,
    Limits,
    Page,
    Part,
    Section,
    Table,
    Text,
    figure,
    table,
)
from bloomcli.report.human import count, row_group_text, seconds
from bloomcli.report.verdict import baseline, checked, excluded, is_clean, sampling, verdict
from bloomcli.rules import page as rule_page
from bloomcli.rules import rule
from bloomcli.words import plural

_FILES_IN_HINT: Final = 5
"""The most files that a hint's command names."""
_SERIES: Final = (("bad", "errors"), ("warn", "warnings"), ("dim", "notes"), ("line", "switched off or known"))


def page(report: GateReport, limits: Limits) -> Page:
    """Return the page of a check: facts, findings by rule, findings, files, pages of rules."""
    by_rule: dict[str, Counter[str]] = {}
    for finding in report.findings:
        by_rule.setdefault(finding.id, Counter())[_kind(finding)] += 1
    tone = "bad" if report.exit_code else "good" if is_clean(report) else "warn"
    sections = [Section("Check", tuple(_facts(report)))]
    if by_rule:
        sections.append(Section("Findings by rule", (_by_rule(by_rule), _by_column(report.findings, limits))))
        sections.append(Section("Findings", (*_hints(report.findings), _findings(report.findings, limits))))
    if report.rows:
        sections.append(Section("Files", (_files(report, limits),)))
    if by_rule:
        texts = tuple(Document(f"{id_}: {rule(id_).title}", rule_page(id_)) for id_ in by_rule)
        sections.append(Section("Rules", (Text("What each rule checks, why, and how to fix a finding."), *texts)))
    return Page(_title(report), "validate", Text(verdict(report), tone), tuple(sections))


def _title(report: GateReport) -> str:
    if report.table is not None:
        return report.table.name
    return report.rows[0].path if len(report.rows) == 1 else checked(report)


def _facts(report: GateReport) -> Iterator[Part]:
    items = [
        ("checked", checked(report)),
        ("sample", sampling(report)),
        ("policy", report.policy or ""),
        ("baseline", baseline(report)),
        ("excluded", excluded(report)),
        ("values looked up", count(report.values_checked) if report.deep else "none: they are read with --deep"),
        ("errors", count(report.errors)),
        ("warnings", count(report.warnings)),
        ("notes", count(report.notes)),
        ("switched off", count(report.off) if report.off else ""),
        ("in the baseline", count(report.known) if report.known else ""),
        ("time", f"{seconds(report.seconds)}, {report.engine}"),
    ]
    yield Facts(tuple((name, Cell(text)) for name, text in items if text))
    for remark in report.remarks:
        yield Text(remark, "warn")


def _kind(finding: Finding) -> str:
    if finding.off is not None or finding.known:
        return "line"
    return SEVERITY_TONE[finding.severity]


def _by_rule(by_rule: dict[str, Counter[str]]) -> Chart:
    rows = []
    figures = []
    for id_, found in sorted(by_rule.items(), key=lambda item: -item[1].total()):
        parts = tuple((tone, float(found[tone])) for tone, _ in _SERIES)
        rows.append((id_, parts, count(found.total())))
        numbers = tuple(figure(count(found[tone]), found[tone]) for tone, _ in _SERIES)
        figures.append((Cell(id_), Cell(rule(id_).title), *numbers))
    heads = (Head("rule"), Head("what"), *(Head(text, figures=True) for _, text in _SERIES))
    title = "Findings by rule"
    most = max(found.total() for found in by_rule.values())
    return chart(
        title,
        f"A bar for each of {count(len(rows))} rules, as long as it has findings: errors, warnings, notes, and those "
        "that are switched off or known.",
        lambda svg: charts.bars(rows, charts.numbers(most), "findings", svg),
        legend=tuple(Key(tone, text) for tone, text in _SERIES),
        table=table(title, heads, figures),
    )


def _by_column(findings: Sequence[Finding], limits: Limits) -> Table:
    """The number of findings by rule and column, the most severe first."""
    numbers = Counter((finding.id, finding.column or "", finding.severity) for finding in findings)
    files: dict[tuple[str, str, Severity], set[str | None]] = {}
    for finding in findings:
        files.setdefault((finding.id, finding.column or "", finding.severity), set()).add(finding.path)
    order = sorted(numbers, key=lambda key: (-_severity(key[2]), -numbers[key]))
    heads = (
        *(Head("rule"), Head("column"), Head("severity")),
        *(Head("findings", figures=True), Head("files", figures=True)),
    )
    rows = [
        (
            Cell(key[0]),
            Cell(key[1]),
            Cell(key[2].value, _severity(key[2]), SEVERITY_TONE[key[2]]),
            figure(count(numbers[key]), numbers[key]),
            figure(count(len(files[key])), len(files[key])),
        )
        for key in order[: limits.rows]
    ]
    return table("Findings by rule and column", heads, rows, total=len(order), chosen="most severe")


def _hints(findings: Sequence[Finding]) -> Iterator[Table]:
    """One hint for each rule: for the first files, if it fits them all, or that of the first finding."""
    hints: dict[str, dict[str | None, list[str]]] = {}
    for finding in findings:
        if finding.hint and finding.off is None and not finding.known:
            hints.setdefault(finding.id, {}).setdefault(finding.path, []).append(finding.hint)
    rows = []
    for id_, by_file in hints.items():
        first = [hint for found in islice(by_file.values(), _FILES_IN_HINT) for hint in found]
        common, left = joined(first), len(by_file) - _FILES_IN_HINT
        if common is None:
            others = len(set(chain.from_iterable(by_file.values()))) - 1
            rows.append((id_, first[0], f"likewise for {count(others)} more"))
        else:
            rows.append((id_, common, f"likewise in {plural(left, 'more file')}" if left > 0 else ""))
    if rows:
        yield table("What to do", (Head("rule"), Head("hint"), Head("other findings")), rows)


def _findings(findings: Sequence[Finding], limits: Limits) -> Table:
    heads = (
        Head("rule"),
        Head("severity"),
        Head("file"),
        Head("column"),
        Head("where"),
        Head("message"),
        Head("counts"),
    )
    rows = []
    for finding in findings[: limits.rows]:
        where = row_group_text(finding.stripe, finding.row_group)
        if finding.places:
            where = f"row groups {finding.places}"
        missing = f"; missing: {', '.join(finding.missing)}" if finding.missing else ""
        counts = finding.off or ("in the baseline" if finding.known else "yes" if finding.counts else "no: a note")
        rows.append(
            (
                Cell(finding.id),
                Cell(finding.severity.value, _severity(finding.severity), SEVERITY_TONE[finding.severity]),
                Cell(finding.path or ""),
                Cell(finding.column or ""),
                Cell(where),
                Cell(finding.message + missing),
                Cell(counts),
            )
        )
    return table("Findings", heads, rows, total=len(findings), chosen="most severe")


def _severity(severity: Severity) -> float:
    return (Severity.NOTE, Severity.WARNING, Severity.ERROR).index(severity)


def _files(report: GateReport, limits: Limits) -> Table:
    """The table of files: failed ones first, then those with the most findings."""
    order = (Status.FAILED, Status.FOUND, Status.DONE, Status.SKIPPED, Status.PLANNED)
    number = Counter(finding.path for finding in report.findings if finding.counts)
    chosen = nsmallest(limits.rows, report.rows, key=lambda row: (order.index(row.status), -number[row.path]))
    titles = ("findings that count", "row groups", "filters", "values looked up")
    heads = (Head("file"), Head("status"), *(Head(title, figures=True) for title in titles), Head("error"))
    tones = {Status.FAILED: "bad", Status.FOUND: "warn", Status.SKIPPED: "dim"}
    rows = [
        (
            Cell(row.path),
            Cell(row.status.value, tone=tones.get(row.status, "")),
            figure(count(number[row.path]), number[row.path]),
            *(figure(count(n), n) for n in (row.row_groups, row.filters, row.values_checked)),
            Cell(row.error or row.reason or "", tone="bad" if row.error else ""),
        )
        for row in chosen
    ]
    return table(
        "Checked files",
        heads,
        rows,
        total=len(report.rows),
        chosen="files with most findings (failed ones before others)",
    )
