"""Writes SARIF 2.1.0 (OASIS) with one run, for code scanning services and editors.

The log describes all rules, with or without findings, because readers compare runs by rule; so `ruleIndex` is the
same in each run. Rules that were not checked are disabled in the invocation, by the standard's own property. Results
are written one per line, one after the other, so that memory doesn't grow with them.

GitHub rejects a file with more than 25,000 results in a run and shows the first 5,000. Beyond 25,000, the other
results (the least severe, switched-off and known ones) are left out, and a notification gives their number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from posixpath import join, normpath
from typing import Any, Final, TextIO
from urllib.parse import quote

from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.report.human import finding_location, printable
from bloomcli.report.verdict import NOT_DEEP, excluded, run_facts, sentence, unchecked, verdict
from bloomcli.rules import RULES, Rule, When, page
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import is_uri
from bloomcli.version import __version__
from bloomcli.words import are, plural

RESULTS_MAX: Final = 25_000
"""Results that GitHub accepts per run."""

DESCRIPTION_MAX: Final = 1_024
"""Characters that GitHub accepts in a rule's description."""

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE: Final = "%SRCROOT%"
_INDEX: Final = {id_: index for index, id_ in enumerate(RULES)}
_PROBLEM: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}

Json = dict[str, Any]


def write(report: GateReport, stream: TextIO, *, limit: int = RESULTS_MAX) -> None:
    """Write the report as one SARIF log, ASCII only.

    Args:
        report: the report of `validate`.
        stream: the stream to write to.
        limit: the maximum number of results, those that count first; 0 for all.
    """
    folder = str(Path.cwd())
    left = max(0, len(report.findings) - limit) if limit else 0
    run = {
        "tool": {"driver": _driver()},
        "invocations": [_invocation(report, left, folder)],
        "originalUriBaseIds": {_BASE: {"description": {"text": "The folder that bloom validate was started in."}}},
        "properties": run_facts(report),
    }
    head = json.dumps(run, allow_nan=False).removesuffix("}")
    stream.write(f'{{"$schema": {json.dumps(_SCHEMA)}, "version": "2.1.0", "runs": [\n{head}, "results": [')
    separator = "\n"
    for result in islice(_results(report, folder), limit or None):
        stream.write(separator + json.dumps(result, allow_nan=False))
        separator = ",\n"
    stream.write("\n]}\n]}\n")


def _driver() -> Json:
    return {
        "name": "bloom",
        "fullName": "bloom validate",
        "version": __version__,
        "semanticVersion": __version__,
        "shortDescription": {"text": "Checks Bloom filters in Parquet, ORC and Mosaic files."},
        "rules": [_descriptor(rule) for rule in RULES.values()],
    }


def _descriptor(rule: Rule) -> Json:
    text = page(rule.id)
    title = f"{rule.title[:1].upper()}{rule.title[1:]}."
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": _message(title)},
        "fullDescription": {"text": _message((_first_paragraph(text) or title)[:DESCRIPTION_MAX])},
        "help": {"text": _braces(text), "markdown": _braces(text)},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "tags": [rule.group.value],
            "precision": "very-high",
            "problem.severity": _PROBLEM[rule.severity],
            "asked_by": rule.when.value,
        },
    }


def _first_paragraph(markdown: str) -> str:
    """Return the first paragraph of a page, without its headings, as one line."""
    for block in markdown.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if any(line.strip() for line in lines):
            return " ".join(" ".join(lines).split())
    return ""


def _invocation(report: GateReport, left: int, folder: str) -> Json:
    notifications = [_failure(row, folder) for row in report.rows if row.status is Status.FAILED]
    partial = unchecked(report)
    if partial:
        notifications.append(_notification("partial-look", "warning", partial))
    if report.excluded:
        notifications.append(_notification("files-excluded", "note", excluded(report)))
    if not report.deep:
        notifications.append(_notification("values-not-looked-up", "note", NOT_DEEP))
    if not report.filters_checked:
        notifications.append(_notification("no-filters", "warning", "no filters to check"))
    if left:
        some = f"{left:,} of {plural(len(report.findings), 'finding')} {are(left)}"
        text = f"{some} not in this file; --format json has all"
        notifications.append(_notification("results-left-out", "warning", text))
    invocation = {
        "executionSuccessful": report.failed == 0,
        "exitCode": report.exit_code,
        "exitCodeDescription": verdict(report),
        "toolExecutionNotifications": notifications,
    }
    if not report.deep:
        invocation["ruleConfigurationOverrides"] = [
            {"descriptor": {"id": id_, "index": _INDEX[id_]}, "configuration": {"enabled": False}}
            for id_, rule in RULES.items()
            if rule.when is When.DEEP
        ]
    return invocation


def _failure(row: FileRow, folder: str) -> Json:
    text = (row.error or f"{row.path}: it could not be checked") + _hint(row.hint)
    location = {"physicalLocation": {"artifactLocation": _artifact(row.path, folder)}}
    return {**_notification("file-failed", "error", text), "locations": [location]}


def _notification(id_: str, level: str, text: str) -> Json:
    return {"descriptor": {"id": id_}, "level": level, "message": {"text": _message(text)}}


def _results(report: GateReport, folder: str) -> Iterator[Json]:
    """Yield the results, those that count first, for readers that show only some."""
    counts = Counter[str]()
    for counting in (True, False):
        for finding in report.findings:
            if finding.counts is counting:
                yield _result(finding, counts, folder, baseline=report.baseline is not None)


def _result(finding: Finding, counts: Counter[str], folder: str, *, baseline: bool) -> Json:
    result: Json = {
        "ruleId": finding.id,
        "ruleIndex": _INDEX[finding.id],
        "level": finding.severity.value,
        "message": {"text": _message(sentence(finding, finding_location(finding)) + _hint(finding.hint))},
        "locations": [_location(finding, folder)],
        "partialFingerprints": _fingerprints(finding, counts, folder),
    }
    if finding.off is not None:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": printable(finding.off)}]
    if baseline:
        result["baselineState"] = "unchanged" if finding.known else "new"
    properties = {"hint": finding.hint, "missing": list(finding.missing)}
    kept = {key: value for key, value in properties.items() if value}
    if kept:
        result["properties"] = kept
    return result


def _hint(hint: str | None) -> str:
    return f". Hint: {hint}" if hint else ""


def _location(finding: Finding, folder: str) -> Json:
    physical: Json = {"artifactLocation": _artifact(finding.path or "", folder)}
    if finding.offset is not None and finding.offset >= 0:
        physical["region"] = {"byteOffset": finding.offset}
    logical = _logical(finding)
    return {"physicalLocation": physical, **({"logicalLocations": logical} if logical else {})}


def _artifact(path: str, folder: str) -> Json:
    uri, relative = uri_reference(path, folder)
    return {"uri": uri, "uriBaseId": _BASE} if relative else {"uri": uri}


def _logical(finding: Finding) -> list[Json]:
    """Return stripe, row group and column, the outermost first, with field paths as in error messages."""
    locations = []
    trail = []
    for kind, field, number in (
        ("stripe", "stripes", finding.stripe),
        ("row group", "row_groups", finding.row_group),
    ):
        if number is not None:
            trail.append(f"{field}[{number}]")
            locations.append({"name": str(number), "kind": kind, "fullyQualifiedName": ".".join(trail)})
    if finding.column is not None:
        column = printable(finding.column)
        trail.append(f"columns[{column}]")
        locations.append({"name": column, "kind": "column", "fullyQualifiedName": ".".join(trail)})
    return locations


def _fingerprints(finding: Finding, counts: Counter[str], folder: str) -> dict[str, str]:
    """Return fingerprints that are stable between runs: of rule and location, but without byte offsets, which change
    when a file is rewritten.

    GitHub uses only `primaryLocationLineHash`, in the form ``hash:number``; the number distinguishes findings of the
    same rule at the same location.
    """
    uri, _ = uri_reference(finding.path or "", folder)
    parts = [finding.id, uri, finding.column, finding.row_group, finding.stripe]
    digest = hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:32]
    counts[digest] += 1
    text = f"{digest}:{counts[digest]}"
    return {"bloom/v1": text, "primaryLocationLineHash": text}


def _message(text: str) -> str:
    """Escape a message string (SARIF 3.11), so that names don't form placeholders (``{0}``) or links
    (``[...](...)``)."""
    return _braces(printable(text)).replace("](", "] (")


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


_PATH_SAFE: Final = "/@!$&'()*+,;=~"
"""Characters that need no encoding in any segment of a path. A colon in the first segment would look like a
scheme."""

_URI_SAFE: Final = _PATH_SAFE + ":?%"
"""Characters that need no encoding in a URI from the command line, which is assumed to be encoded already."""

_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def relative_path(path: str, folder: str | None = None) -> str | None:
    """Return a local path relative to the working directory (or `folder`); None if the path is outside of it.

    Only the text of the path matters: links are not followed, and the file needn't exist.
    """
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    start = base.rstrip("/") + "/"
    return whole[len(start) :] if whole.startswith(start) else None


def uri_reference(path: str, folder: str | None = None) -> tuple[str, bool]:
    """Return the path as a URI reference, and whether it is relative to the working directory (or `folder`).

    Bytes of a name that aren't text are percent-encoded, and so are percent signs in local names.
    """
    if is_uri(path):
        return quote(_bytes(_LONE_PERCENT.sub("%25", path)), safe=_URI_SAFE), False
    relative = relative_path(path, folder)
    if relative is not None:
        return quote(_bytes(relative), safe=_PATH_SAFE), True
    base = folder if folder is not None else str(Path.cwd())
    whole = normpath(join(base, local_path(path)))
    return "file:///" + quote(_bytes(whole.lstrip("/")), safe=_PATH_SAFE), False


def _bytes(path: str) -> bytes:
    """Return a file name's bytes; a surrogate that represents no byte (in a name from another system) is kept."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")
