"""Writes GitHub workflow commands, ``::error file=...,title=...::message``, which become annotations.

The runner shows the first ten annotations of each level in a step and silently drops the rest. Therefore the first
finding of every rule comes before the second of any, notes leave room for the verdict, and the verdict counts the
findings without an annotation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, TextIO

from bloomcli.model.dataset import Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.human import finding_location, printable
from bloomcli.report.sarif import relative_path
from bloomcli.report.verdict import baseline, excluded, sentence, unchecked, verdict
from bloomcli.rules import rule
from bloomcli.storage.names import is_uri
from bloomcli.words import plural

SHOWN: Final = 10
"""Annotations of one level that GitHub shows per step."""

_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def write(report: GateReport, stream: TextIO, *, per_rule: int = 10) -> None:
    """Write one command per finding, the most severe first, and the verdict last.

    Args:
        report: the report of `validate`.
        stream: the step's standard output.
        per_rule: the number of findings to write per rule; 0 for all.
    """
    levels = Counter[str]()
    for row in report.rows:
        if row.status is Status.FAILED and (not per_rule or levels["error"] < per_rule):
            hint = f"\nhint: {printable(row.hint)}" if row.hint else ""
            message = printable(row.error or f"{row.path}: it could not be checked") + hint
            stream.write(command("error", message, file=row.path, title="bloom: a file could not be checked"))
            levels["error"] += 1
    partial = unchecked(report)
    room = SHOWN - (2 if partial else 1)
    for finding in _spread(report, per_rule):
        level = _LEVEL[finding.severity]
        if level == "notice" and levels[level] >= room:
            break  # notes come last
        levels[level] += 1
        stream.write(_annotation(finding, level))
    if partial:
        stream.write(command("notice", partial, title="bloom: only a part was checked"))
    stream.write(command("notice", _summary(report, levels), title="bloom validate"))


def command(level: str, message: str, *, file: str | None = None, title: str | None = None) -> str:
    """Return one workflow command, including the newline; `file` is a path as the user wrote it."""
    pairs = []
    if file is not None and not is_uri(file):
        pairs.append(f"file={_property(printable(relative_path(file) or file))}")
    if title is not None:
        pairs.append(f"title={_property(printable(title))}")
    return f"::{level} {','.join(pairs)}".rstrip() + f"::{_data(message)}\n"


def _annotation(finding: Finding, level: str) -> str:
    message = printable(sentence(finding, finding_location(finding)))
    if finding.path is not None:  # the log shows only the message
        message = f"{printable(finding.path)}: {message}"
    if finding.hint:
        message += f"\nhint: {printable(finding.hint)}"
    return command(level, message, file=finding.path, title=f"{finding.id}: {rule(finding.id).title}")


def _spread(report: GateReport, per_rule: int) -> Iterator[Finding]:
    """The findings that are neither switched off nor known: the first of each rule, then the second of each, ..."""
    order = list(Severity)
    counts = Counter[tuple[Severity, str]]()
    ranked = []
    for finding in report.findings:
        if finding.off is None and not finding.known:
            key = (finding.severity, finding.id)
            counts[key] += 1
            if not per_rule or counts[key] <= per_rule:
                ranked.append((order.index(finding.severity), counts[key], finding))
    ranked.sort(key=lambda entry: entry[:2])
    return (finding for _, _, finding in ranked)


def _summary(report: GateReport, levels: Counter[str]) -> str:
    lines = [printable(verdict(report))]
    numbers = {"error": report.errors + report.failed, "warning": report.warnings, "notice": report.notes}
    hidden = [
        plural(number - min(levels[level], SHOWN), f"more {noun}")
        for (level, number), noun in zip(numbers.items(), ("error", "warning", "note"), strict=True)
        if number > min(levels[level], SHOWN)
    ]
    if hidden:
        lines.append(f"not among the annotations: {', '.join(hidden)}; bloom validate --max-per-rule 0 lists all")
    if report.excluded and report.rows:  # else the verdict says so
        lines.append(excluded(report))
    note = baseline(report)
    if note:
        lines.append(printable(note))
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
