"""Writes JUnit XML for Jenkins, GitLab and the JUnit reporters for GitHub.

There is one suite per group of rules, and one for the files. A test case is a file and a rule that it breaks (class
``bloom.soundness.value-missing``, name: the path), so that readers that group by package and class show group, rule,
files. Each file without findings that count is a passing case of ``bloom.files``. A check that was not done is a
skipped case, so that a partial check is never entirely green. Readers keep one failure per case, so all findings of a
rule in a file are in one failure.

The format has no standard; this module uses only elements and attributes that those readers know. The text is ASCII
with character references, and therefore well-formed in every encoding of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO
from xml.sax.saxutils import escape, quoteattr

from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.human import finding_location, printable
from bloomcli.report.verdict import NOT_DEEP, excluded, run_facts, sentence, unchecked, verdict
from bloomcli.rules import Group, rule
from bloomcli.words import plural

TEXT_FINDINGS: Final = 100
"""Findings of one rule in one file that a case lists: a file may have a hundred thousand filters."""

_NOT_XML: Final = {ord("\ufffe"): "\\ufffe", ord("\uffff"): "\\uffff"}
"""Characters that XML 1.0 doesn't allow, besides control characters and surrogates (see `printable`)."""


@dataclass(slots=True)
class _Case:
    """One test case: a file and a rule, a file, or a check that was not done."""

    kind: str
    name: str
    file: str | None = None
    seconds: float = 0.0
    failure: tuple[str, str, str] | None = None
    """Message, type, text."""
    error: tuple[str, str, str] | None = None
    skipped: str | None = None
    out: str = ""


def write(report: GateReport, stream: TextIO) -> None:
    """Write the report as one ``testsuites`` document."""
    suites = _suites(report)
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    total = _tally([case for _, cases in suites for case in cases])
    stream.write(_tag("testsuites", {"name": "bloom validate", **total, "time": f"{report.seconds:.3f}"}) + "\n")
    for name, cases in suites:
        seconds = sum(case.seconds for case in cases)
        stream.write("  " + _tag("testsuite", {"name": name, **_tally(cases), "time": f"{seconds:.3f}"}) + "\n")
        if name == _FILES:
            stream.writelines(_properties(report))
        for case in cases:
            stream.writelines(_case(case))
        if name == _FILES:
            stream.write("    " + _element("system-out", printable(verdict(report))) + "\n")
        stream.write("  </testsuite>\n")
    stream.write("</testsuites>\n")


_FILES: Final = "bloom.files"


def _suites(report: GateReport) -> list[tuple[str, list[_Case]]]:
    broken: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        broken.setdefault((finding.id, finding.path or ""), []).append(finding)
    groups: dict[Group, list[_Case]] = {group: [] for group in Group}
    for (id_, path), findings in broken.items():
        groups[rule(id_).group].append(_broken(id_, path, findings))
    # the rules on lost rows come first, as in RULES
    order = dict.fromkeys((Group.SOUNDNESS, *Group))
    named = [(f"bloom.{group.value}", groups[group]) for group in order if groups[group]]
    return [*named, (_FILES, [*_unchecked(report), *_files(report)])]


def _broken(id_: str, path: str, findings: Sequence[Finding]) -> _Case:
    found = rule(id_)
    case = _Case(kind=f"bloom.{found.group.value}.{id_}", name=path, file=path)
    counting = [f for f in findings if f.counts]
    others = [f for f in findings if not f.counts]
    if counting:
        worst = counting[0]
        more = f" (and {len(counting) - 1:,} more)" if len(counting) > 1 else ""
        message = f"{worst.severity.value}: {found.title}: {worst.message}{finding_location(worst)}{more}"
        case.failure = (message, id_, _text(counting))
    elif any(f.off is not None or f.known for f in others):
        case.skipped = "; ".join(_reasons(others))
    if others:
        case.out = _text(others)
    return case


def _reasons(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield each reason for which findings don't count, with their number."""
    numbers: dict[str, int] = {}
    for finding in findings:
        if finding.off is not None or finding.known:
            reason = "in the baseline" if finding.off is None else f"switched off: {finding.off}"
            numbers[reason] = numbers.get(reason, 0) + 1
    return (f"{plural(number, 'finding')} {reason}" for reason, number in numbers.items())


def _text(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings[:TEXT_FINDINGS]:
        note = "" if finding.off is None else f" [switched off: {finding.off}]"
        note += " [in the baseline]" if finding.known else ""
        lines.append(printable(f"{finding.severity.value}: {sentence(finding, finding_location(finding))}{note}"))
        if finding.hint:
            lines.append(printable(f"  hint: {finding.hint}"))
    if len(findings) > TEXT_FINDINGS:
        lines.append(f"... and {len(findings) - TEXT_FINDINGS:,} more (all: --format json)")
    return "\n".join(lines)


def _unchecked(report: GateReport) -> Iterator[_Case]:
    """Yield a skipped case for each check that was not done."""
    partial = unchecked(report)
    if partial:
        yield _Case(kind="bloom.scope", name="every file and row group is checked", skipped=partial)
    if report.excluded:
        yield _Case(kind="bloom.scope", name="the policy excludes no file", skipped=excluded(report))
    if not report.deep:
        yield _Case(kind="bloom.scope", name="no value is missing from its filter", skipped=NOT_DEEP)
    if not report.filters_checked:
        yield _Case(kind="bloom.scope", name="there are filters", skipped="no filters to check")


def _files(report: GateReport) -> Iterator[_Case]:
    troubled = {f.path for f in report.findings if f.counts}
    for row in report.rows:
        if row.status is Status.FAILED:
            yield _failed(row)
        elif row.status is not Status.SKIPPED and row.path not in troubled:
            yield _Case(kind=_FILES, name=row.path, file=row.path, seconds=row.seconds)


def _failed(row: FileRow) -> _Case:
    message = row.error or f"{row.path}: it could not be checked"
    text = printable(message) + (f"\nhint: {printable(row.hint)}" if row.hint else "")
    kind = f"exit code {row.exit_code}"
    return _Case(kind=_FILES, name=row.path, file=row.path, seconds=row.seconds, error=(message, kind, text))


def _tally(cases: Sequence[_Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": str(sum(case.error is not None for case in cases)),
        "skipped": str(sum(case.skipped is not None for case in cases)),
    }


def _properties(report: GateReport) -> Iterator[str]:
    yield "    <properties>\n"
    for name, value in run_facts(report).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield "      " + _tag("property", {"name": f"bloom.{name}", "value": text}, closed=True) + "\n"
    yield "    </properties>\n"


def _case(case: _Case) -> Iterator[str]:
    attributes = {"classname": case.kind, "name": case.name}
    if case.file is not None:
        attributes["file"] = case.file
    attributes["time"] = f"{case.seconds:.3f}"
    inner = []
    for name, problem in (("failure", case.failure), ("error", case.error)):
        if problem is not None:
            message, kind, text = problem
            inner.append(_element(name, text, {"message": message, "type": kind}))
    if case.skipped is not None:
        inner.append(_tag("skipped", {"message": case.skipped}, closed=True))
    if case.out:
        inner.append(_element("system-out", case.out))
    yield "    " + _tag("testcase", attributes, closed=not inner) + "\n"
    if inner:
        yield from (f"      {element}\n" for element in inner)
        yield "    </testcase>\n"


def _tag(name: str, attributes: Mapping[str, str], *, closed: bool = False) -> str:
    pairs = "".join(f" {key}={_ascii(quoteattr(_xml(printable(value))))}" for key, value in attributes.items())
    return f"<{name}{pairs}{'/' if closed else ''}>"


def _element(name: str, text: str, attributes: Mapping[str, str] | None = None) -> str:
    """Return an element with lines of printable text."""
    return f"{_tag(name, attributes or {})}{_ascii(escape(_xml(text)))}</{name}>"


def _xml(text: str) -> str:
    return text.translate(_NOT_XML)


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")
