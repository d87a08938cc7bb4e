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
from typing import Final, TextIO
from xml.etree import ElementTree as ET

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
_FILES: Final = "bloom.files"


def write(report: GateReport, stream: TextIO) -> None:
    """Write the report as one ``testsuites`` document."""
    root = ET.Element("testsuites", {"name": "bloom validate"})
    broken: dict[Group, dict[tuple[str, str], list[Finding]]] = {}
    for finding in report.findings:
        of_group = broken.setdefault(rule(finding.id).group, {})
        of_group.setdefault((finding.id, finding.path or ""), []).append(finding)
    for group in dict.fromkeys((Group.SOUNDNESS, *Group)):  # the rules on lost rows come first, as in RULES
        if group in broken:
            suite = _add(root, "testsuite", {"name": f"bloom.{group.value}"})
            for (id_, path), findings in broken[group].items():
                _broken(suite, id_, path, findings)
    files = _add(root, "testsuite", {"name": _FILES})
    properties = _add(files, "properties")
    for name, value in run_facts(report).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        _add(properties, "property", {"name": f"bloom.{name}", "value": text})
    _unchecked(files, report)
    _files(files, report)
    _add(files, "system-out", text=printable(verdict(report)))
    for suite in root:
        seconds = sum(float(case.get("time", 0)) for case in suite.iter("testcase"))
        _tally(suite, seconds)
    _tally(root, report.seconds)
    ET.indent(root)
    text = ET.tostring(root, encoding="us-ascii").decode("ascii")
    stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _broken(suite: ET.Element, id_: str, path: str, findings: Sequence[Finding]) -> None:
    """Add the case of a rule that a file breaks."""
    rule_ = rule(id_)
    case = _case(suite, f"bloom.{rule_.group.value}.{id_}", path, file=path)
    counting = [f for f in findings if f.counts]
    others = [f for f in findings if not f.counts]
    if counting:
        worst = counting[0]
        more = f" (and {len(counting) - 1:,} more)" if len(counting) > 1 else ""
        message = f"{worst.severity.value}: {rule_.title}: {worst.message}{finding_location(worst)}{more}"
        _add(case, "failure", {"message": message, "type": id_}, _text(counting))
    elif any(f.off is not None or f.known for f in others):
        _add(case, "skipped", {"message": "; ".join(_reasons(others))})
    if others:
        _add(case, "system-out", text=_text(others))


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


def _unchecked(suite: ET.Element, report: GateReport) -> None:
    """Add a skipped case for each check that was not done."""
    for name, message in (
        ("every file and row group is checked", unchecked(report)),
        ("the policy excludes no file", excluded(report)),
        ("no value is missing from its filter", "" if report.deep else NOT_DEEP),
        ("there are filters", "" if report.filters_checked else "no filters to check"),
    ):
        if message:
            _add(_case(suite, "bloom.scope", name), "skipped", {"message": message})


def _files(suite: ET.Element, report: GateReport) -> None:
    """Add a case for each file that failed, or has no findings that count."""
    troubled = {f.path for f in report.findings if f.counts}
    for row in report.rows:
        if row.status is Status.FAILED:
            _failed(_case(suite, _FILES, row.path, file=row.path, seconds=row.seconds), row)
        elif row.status is not Status.SKIPPED and row.path not in troubled:
            _case(suite, _FILES, row.path, file=row.path, seconds=row.seconds)


def _failed(case: ET.Element, row: FileRow) -> None:
    message = row.error or f"{row.path}: it could not be checked"
    text = printable(message) + (f"\nhint: {printable(row.hint)}" if row.hint else "")
    _add(case, "error", {"message": message, "type": f"exit code {row.exit_code}"}, text)


def _tally(suite: ET.Element, seconds: float) -> None:
    """Set the numbers of the cases, and the time."""
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    suite.set("time", f"{seconds:.3f}")


def _case(suite: ET.Element, kind: str, name: str, *, file: str | None = None, seconds: float = 0.0) -> ET.Element:
    """Add one test case: a file and a rule, a file, or a check that was not done."""
    named = {} if file is None else {"file": file}
    return _add(suite, "testcase", {"classname": kind, "name": name, **named, "time": f"{seconds:.3f}"})


def _add(parent: ET.Element, tag: str, attributes: Mapping[str, str] | None = None, text: str = "") -> ET.Element:
    """Add an element with lines of printable text."""
    shown = {key: printable(value).translate(_NOT_XML) for key, value in (attributes or {}).items()}
    element = ET.SubElement(parent, tag, shown)
    element.text = text.translate(_NOT_XML) or None
    return element
