"""Text report of `validate`: findings by rule, the most severe first; the last line is the verdict.

Text of its `--explain`: the lists of the rules and of a policy's keys, and their pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from textwrap import wrap
from typing import Final

from bloomcli.hints import joined
from bloomcli.model.dataset import Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding, ValidateReport
from bloomcli.policy.policy_keys import PAGES
from bloomcli.report.human import finding_location, seconds, speed
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Line, Pairs, Paragraph, Style, line, traffic_pairs
from bloomcli.report.text_dataset import table_title, version_text
from bloomcli.report.text_find import problems
from bloomcli.report.verdict import baseline, checked, is_clean, is_single_file, sampling, unique, verdict
from bloomcli.rules import RULES, page, rule
from bloomcli.words import plural

SEVERITY_STYLE: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.NOTE: Style.DIM}
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
    yield run_facts(report)
    yield Gap()
    style = Style.BAD if report.exit_code else Style.GOOD if is_clean(report) else Style.WARN
    yield line(verdict(report), style)


def faults(report: GateReport, *, per_rule: int = 5) -> Iterator[Block]:
    """Yield findings by rule, and failed files. The arguments are those of `gate`."""
    first = True
    reported = [f for f in report.findings if f.off is None and not f.known]
    for group in _groups(reported):
        if not first:
            yield Gap()
        first = False
        yield from _group(group, per_rule, with_path=not is_single_file(report))
    if report.failed:
        if not first:
            yield Gap()
        yield from _failures(report, per_rule)


def one_file(report: ValidateReport) -> Iterator[Block]:
    """Yield the findings in one file by rule, and how much was checked."""
    for group in _groups(report.findings):
        yield from _group(group, 5, with_path=False)
    checked = plural(report.filters_checked, "filter")
    yield line(
        f"{report.path}: {checked} checked, {plural(len(report.findings), 'finding')}",
        Style.GOOD if report.ok else Style.BAD,
    )


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by severity and rule: a policy may set a rule's severity differently for some files."""
    groups: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.id), []).append(finding)
    order = list(Severity)
    return sorted(groups.values(), key=lambda group: order.index(group[0].severity))


def _group(findings: Sequence[Finding], per_rule: int, *, with_path: bool) -> Iterator[Line]:
    first = findings[0]
    files = f" in {plural(len({f.path for f in findings}), 'file')}" if with_path else ""
    yield line(
        f"{first.severity.value} {first.id}: {rule(first.id).title}: {plural(len(findings), 'finding')}{files}",
        SEVERITY_STYLE[first.severity],
    )
    shown = list(islice(findings, per_rule or None))
    files_shown = {f.path for f in shown}
    common = joined(f.hint or "" for f in findings if f.path in files_shown)
    hints = unique(f.hint for f in shown if f.hint) if common is None else [common]
    for finding in shown:
        path = f"{finding.path}: " if with_path else ""
        yield line(f"{path}{finding.message}{finding_location(finding)}", indent=2)
        if finding.missing:
            yield line("missing: " + ", ".join(finding.missing), indent=4)
        if finding.hint and len(hints) > 1:
            yield line("hint: " + finding.hint, indent=4)
    yield from _more(len(findings) - len(shown))
    if len(hints) == 1 and hints[0]:
        these = "this file" if len(files_shown) == 1 else f"these {len(files_shown)} files"
        some = f" for {these}" if {f.path for f in findings} - files_shown else ""
        yield line(f"hint{some}: {hints[0]}", indent=2)


def _more(number: int) -> Iterator[Line]:
    if number:
        yield line(f"... and {number:,} more (--all or --format csv shows all)", Style.DIM, indent=2)


def _failures(report: GateReport, per_rule: int) -> Iterator[Line]:
    yield line(f"{plural(report.failed, 'file')} could not be checked", Style.BAD)
    errors = list(problems(row for row in report.rows if row.status is Status.FAILED))
    for error, hint in errors[: per_rule or None]:
        yield line(error, indent=2)
        if hint:
            yield line("hint: " + hint, indent=4)
    yield from _more(max(len(errors) - per_rule, 0) if per_rule else 0)


def _switched_off(report: GateReport) -> Iterator[Line]:
    reasons: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.off is not None:
            reasons.setdefault(finding.id, []).append(finding.off)
    for id_, group in reasons.items():
        different = unique(group)
        text = "; ".join(different[:_REASONS_SHOWN])
        if len(different) > _REASONS_SHOWN:
            text += f"; and {plural(len(different) - _REASONS_SHOWN, 'reason')} more"
        yield line(f"switched off: {id_}: {plural(len(group), 'finding')}: {text}", Style.DIM)


def _known(report: GateReport) -> Iterator[Line]:
    text = baseline(report)
    if text and (report.known or report.gone):
        yield line(text, Style.WARN if report.gone else Style.DIM)


def run_facts(report: GateReport) -> Pairs:
    """Return the extent of the check, and how it ran."""
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


_WIDTH: Final = 78


def rule_list() -> Iterator[Block]:
    """Yield a table of every rule: id, default severity, when it is checked, and title."""
    grid = Grid((Head("rule"), Head("severity"), Head("checked with"), Head("what", prose=True)))
    for rule_ in RULES.values():
        grid.add(rule_.id, Cell(rule_.severity.value, SEVERITY_STYLE[rule_.severity]), rule_.when.value, rule_.title)
    yield grid


def all_pages() -> Iterator[Block]:
    """Yield the table of every rule, and that of every key of a policy."""
    yield from rule_list()
    yield Gap()
    grid = Grid((Head("key of the policy"), Head("what")))
    for key, key_page in PAGES.items():
        grid.add(key, key_page.title)
    yield grid


def page_of(name: str) -> Iterator[Block]:
    """Yield the page of a rule or of a key of a policy. Raises UsageError for an unknown name."""
    if name not in PAGES:
        yield from rule_page(name)
        return
    key_page = PAGES[name]
    yield Line(Cell(f"{name}: {key_page.title}", Style.TITLE))
    yield Gap()
    yield Paragraph(tuple(map(Cell, wrap(key_page.text, _WIDTH, break_on_hyphens=False))))
    yield Gap()
    for text in key_page.example.splitlines():
        yield Line(Cell(text), indent=4, whole=True)


def rule_page(name: str) -> Iterator[Block]:
    """Yield a rule's page. Raises UsageError for an unknown rule."""
    paragraph: list[Cell] = []
    code = False
    for text in page(name).splitlines():
        code ^= text.startswith("```")
        heading = text.startswith("#") and not code
        whole = code or heading or text.startswith(("```", "|"))
        if paragraph and (not text or whole or text.startswith("- ")):
            yield Paragraph(tuple(paragraph))
            paragraph = []
        if not text:
            yield Gap()
        elif whole:
            yield Line(Cell(text, Style.TITLE if heading else Style.PLAIN), whole=True)
        else:
            paragraph.append(Cell(text))
    if paragraph:
        yield Paragraph(tuple(paragraph))
