"""Text report of `validate`: findings by rule, the most severe first; the last line is the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from bloomcli.hints import joined
from bloomcli.model.dataset import Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.human import finding_location, seconds, speed
from bloomcli.report.layout import Block, Cell, Gap, Line, Pairs, Style, line
from bloomcli.report.text_dataset import table_title, version_text
from bloomcli.report.text_traffic import traffic_pairs
from bloomcli.report.verdict import baseline, checked, is_clean, is_single_file, sampling, unique, verdict
from bloomcli.rules import rule
from bloomcli.words import plural

_STYLE: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.NOTE: Style.DIM}
_REASONS_SHOWN: Final = 3


def gate(report: GateReport, *, per_rule: int = 5) -> Iterator[Block]:
    """Yield findings by rule, failed files, switched-off and known findings, the extent of the check, and the
    verdict.

    Args:
        report: the report of `validate`.
        per_rule: the number of findings per rule, and of failed files, to print; 0 for all.
    """
    shown = list(faults(report, per_rule=per_rule))
    if shown:
        yield from shown
        yield Gap()
    disregarded = [*_switched_off(report), *_known(report)]
    if disregarded:
        yield from disregarded
        yield Gap()
    yield _run_facts(report)
    yield Gap()
    style = Style.BAD if report.exit_code else Style.GOOD if is_clean(report) else Style.WARN
    yield line(verdict(report), style)


def faults(report: GateReport, *, per_rule: int = 5) -> Iterator[Block]:
    """Yield findings by rule, and failed files. The arguments are those of `gate`."""
    first = True
    reported = [f for f in report.findings if f.off is None and not f.known]
    for found in _groups(reported):
        if not first:
            yield Gap()
        first = False
        yield from _group(found, per_rule, with_path=not is_single_file(report))
    if report.failed:
        if not first:
            yield Gap()
        yield from _failures(report, per_rule)


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by severity and rule: a policy may set a rule's severity differently for some files."""
    groups: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.id), []).append(finding)
    order = list(Severity)
    return sorted(groups.values(), key=lambda found: order.index(found[0].severity))


def _group(found: Sequence[Finding], per_rule: int, *, with_path: bool) -> Iterator[Line]:
    first = found[0]
    files = f" in {plural(len({f.path for f in found}), 'file')}" if with_path else ""
    yield line(
        f"{first.severity.value} {first.id}: {rule(first.id).title}: {plural(len(found), 'finding')}{files}",
        _STYLE[first.severity],
    )
    shown = list(islice(found, per_rule or None))
    common = joined(f.hint or "" for f in shown)
    hints = unique(f.hint for f in shown if f.hint) if common is None else [common]
    for finding in shown:
        path = f"{finding.path}: " if with_path else ""
        yield line(f"{path}{finding.message}{finding_location(finding)}", indent=2)
        if finding.missing:
            yield line("missing: " + ", ".join(finding.missing), indent=4)
        if finding.hint and len(hints) > 1:
            yield line("hint: " + finding.hint, indent=4)
    yield from _more(len(found) - len(shown))
    if len(hints) == 1 and hints[0]:
        left = len({f.path for f in found} - {f.path for f in shown})
        others = f", without the other {plural(left, 'file')}" if left else ""
        yield line(f"hint{others}: {hints[0]}", indent=2)


def _more(number: int) -> Iterator[Line]:
    if number:
        yield line(f"... and {number:,} more (--all or --format csv shows all)", Style.DIM, indent=2)


def _failures(report: GateReport, per_rule: int) -> Iterator[Line]:
    yield line(f"{plural(report.failed, 'file')} could not be checked", Style.BAD)
    failed = (row for row in report.rows if row.status is Status.FAILED)
    for row in islice(failed, per_rule or None):
        yield line(row.error or f"{row.path}: it could not be checked", indent=2)
        if row.hint:
            yield line("hint: " + row.hint, indent=4)
    yield from _more(max(report.failed - per_rule, 0) if per_rule else 0)


def _switched_off(report: GateReport) -> Iterator[Line]:
    reasons: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.off is not None:
            reasons.setdefault(finding.id, []).append(finding.off)
    for id_, given in reasons.items():
        different = unique(given)
        text = "; ".join(different[:_REASONS_SHOWN])
        if len(different) > _REASONS_SHOWN:
            text += f"; and {plural(len(different) - _REASONS_SHOWN, 'reason')} more"
        yield line(f"switched off: {id_}: {plural(len(given), 'finding')}: {text}", Style.DIM)


def _known(report: GateReport) -> Iterator[Line]:
    text = baseline(report)
    if text and (report.known or report.gone):
        yield line(text, Style.WARN if report.gone else Style.DIM)


def _run_facts(report: GateReport) -> Pairs:
    items = [("checked", Cell(checked(report)))]
    if report.table is not None:
        items.append(("table", Cell(f"{table_title(report.table)}, {version_text(report.table, report.version)}")))
    if report.excluded:
        items.append(("excluded", Cell(f"{plural(report.excluded, 'file')}, by the policy", Style.DIM)))
    items += [("sample", Cell(text)) for text in [sampling(report)] if text]
    skipped = Counter(r.reason for r in report.rows if r.status is Status.SKIPPED and r.reason)
    items += [("skipped", Cell(f"{plural(n, 'file')}: {why}", Style.DIM)) for why, n in skipped.most_common()]
    if report.deep:
        groups = plural(report.row_groups_read, "row group")
        items.append(("values", Cell(f"{plural(report.values_checked, 'value')} looked up in {groups}")))
    else:
        items.append(("values", Cell("not looked up (--deep)")))
    items.append(("policy", Cell(report.policy or "none (--policy FILE names one, --init writes one)")))
    how = f"{report.engine}, {plural(report.jobs, 'job')}"
    if report.files > 1 and report.seconds:
        how = f"{speed(report.files, report.seconds)}, {how}"
    items.append(("took", Cell(f"{seconds(report.seconds)} ({how})")))
    items += traffic_pairs(report)
    items += [("remark", Cell(text, Style.WARN)) for text in report.remarks]
    return Pairs(tuple(items))
