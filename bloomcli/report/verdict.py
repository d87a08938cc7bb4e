"""What `validate` came to, in the words that all its output forms share. A partial look is never called ok."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bloomcli.model.file import Finding
from bloomcli.model.gate import GateReport
from bloomcli.report.human import plural

NOT_DEEP: Final = "not checked: that no value is missing (--deep)"
"""What a look at headers and bits alone leaves open."""


def verdict(report: GateReport) -> str:
    """The one line that says it: ``ok: ...``, ``not ok: ...``, or what little can be said of a partial look."""
    text = _not_ok(report) if report.exit_code else _fine(report)
    return f"{report.rows[0].path}: {text}" if alone(report) else text


def is_clean(report: GateReport) -> bool:
    """Nothing that counts was found, nothing was left out, and there were filters to check."""
    return report.ok and report.complete and report.filters_checked > 0


def alone(report: GateReport) -> bool:
    """The report is of a single file, whose path needn't be said with every finding."""
    return report.files_found == len(report.rows) == 1


def left_out(report: GateReport) -> tuple[str, ...]:
    """What sampling left out: ``95 of 100 files``; empty where everything was looked at."""
    left = []
    unseen = report.files_found - len(report.rows)
    if unseen:
        left.append(f"{unseen:,} of {plural(report.files_found, 'file')}")
    unread = report.row_groups - report.row_groups_read
    if unread and report.sample is not None and report.sample.row_groups is not None:
        left.append(f"the values of {unread:,} of {plural(report.row_groups, 'row group')}")
    return tuple(left)


def partly(report: GateReport) -> str:
    """``not looked at: 95 of 100 files``; empty where everything was looked at."""
    left = left_out(report)
    return f"not looked at: {' and '.join(left)}" if left else ""


def excluded(report: GateReport) -> str:
    """``2 files excluded by the policy``; empty where it excludes none."""
    return f"{plural(report.excluded, 'file')} excluded by the policy" if report.excluded else ""


def looked_at(report: GateReport) -> str:
    """``5 of 100 files: 12 row groups, 24 filters``."""
    files = plural(report.files_found, "file")
    if report.files != report.files_found:
        files = f"{report.files:,} of {files}"
    return f"{files}: {plural(report.row_groups, 'row group')}, {_filters(report)}"


def _filters(report: GateReport) -> str:
    """``24 filters``, ``8 filters of id, user.*``."""
    return plural(report.filters_checked, "filter") + _scope(report)


def _scope(report: GateReport) -> str:
    """`` of id, user.*``, `` but for secret``; empty for all columns."""
    scope = f" of {', '.join(report.columns)}" if report.columns else ""
    return scope + (f" but for {', '.join(report.excluded_columns)}" if report.excluded_columns else "")


def sampling(report: GateReport) -> str:
    """``5% of the files; --seed 7 takes the same part again``; empty where nothing was sampled."""
    sample = report.sample
    if sample is None:
        return ""
    parts = []
    if sample.files is not None:
        parts.append(f"{sample.files} of the files" if sample.files.endswith("%") else f"files: {sample.files}")
    if sample.row_groups is not None:
        share = sample.row_groups.endswith("%")
        parts.append(
            f"{sample.row_groups} of each file's row groups" if share else f"row groups a file: {sample.row_groups}"
        )
    return f"{', '.join(parts) or 'everything'}; seed {sample.seed}, which takes the same part again"


def baseline(report: GateReport) -> str:
    """What the baseline holds back, and whether it is out of date; empty where there is none."""
    if report.baseline is None and not report.known:
        return ""
    text = f"{plural(report.known, 'known finding')} in the baseline {report.baseline}"
    if report.gone:
        entries = "1 entry of it is" if report.gone == 1 else f"{report.gone:,} entries of it are"
        text += f"; {entries} gone, --update-baseline drops {'it' if report.gone == 1 else 'them'}"
    return text


def sentence(finding: Finding, place: str) -> str:
    """Message, place and missing values on one line, for forms that show a finding as one text."""
    missing = f"; missing: {', '.join(finding.missing)}" if finding.missing else ""
    return f"{finding.message}{place}{missing}"


def figures(report: GateReport) -> dict[str, str | int | float | bool]:
    """What was looked at and how, under the names that the JSON document has; what isn't known is left out."""
    sample = report.sample
    known: dict[str, str | int | float | bool | None] = {
        "engine": report.engine,
        "jobs": report.jobs,
        "seconds": round(report.seconds, 3),
        "policy": report.policy,
        "baseline": report.baseline,
        "gone": report.gone,
        "columns": ", ".join(report.columns) or None,
        "excluded_columns": ", ".join(report.excluded_columns) or None,
        "deep": report.deep,
        "complete": report.complete,
        "seed": None if sample is None else sample.seed,
        "sample_files": None if sample is None else sample.files,
        "sample_row_groups": None if sample is None else sample.row_groups,
        "files_found": report.files_found,
        "excluded": report.excluded,
        "files": report.files,
        "failed": report.failed,
        "row_groups": report.row_groups,
        "row_groups_read": report.row_groups_read,
        "filters_checked": report.filters_checked,
        "values_checked": report.values_checked,
        "errors": report.errors,
        "warnings": report.warnings,
        "notes": report.notes,
        "off": report.off,
        "known": report.known,
    }
    return {key: value for key, value in known.items() if value is not None}


def _not_ok(report: GateReport) -> str:
    parts = []
    counted = _listed((report.errors, "error"), (report.warnings, "warning"))
    if counted:
        files = len({f.path for f in report.findings if f.counts})
        parts.append(" and ".join(counted) + ("" if alone(report) else f" in {plural(files, 'file')}"))
    if report.failed:
        parts.append(
            "could not be checked" if alone(report) else f"{plural(report.failed, 'file')} could not be checked"
        )
    parts += [partly(report)] * (not report.complete)
    return f"not ok: {'; '.join(parts)}"


def _fine(report: GateReport) -> str:
    if not report.rows and report.excluded:
        return f"nothing to check: {excluded(report)}"
    partial = partly(report)
    aside = ", ".join(
        _listed((report.notes, "note"), (report.off, "switched-off finding"), (report.known, "known finding"))
    )
    files = "" if alone(report) else f" in {plural(report.files, 'file')}"
    if not report.filters_checked:
        parts = [
            f"no filters{_scope(report)} to check{files if report.files else ''}" + (f" ({aside})" if aside else ""),
            partial,
        ]
        return "; ".join(filter(None, parts))
    found = f"nothing found that counts ({aside})" if aside else "nothing found"
    filters = _filters(report) + files
    values = "" if report.deep else f"; {NOT_DEEP}"
    if partial:
        return f"{found} in what was looked at ({filters}); {partial}{values}"
    looked = f", {plural(report.values_checked, 'value')} looked up" if report.deep else ""
    return f"ok: {found} in {filters}{looked}{values}"


def _listed(*counts: tuple[int, str]) -> list[str]:
    return [plural(number, noun) for number, noun in counts if number]


def unique(texts: Iterable[str]) -> list[str]:
    """Each text once, in the order in which they came."""
    return list(dict.fromkeys(texts))
