"""The verdict of `validate` and the sentences that all its output formats share. A partial check is never "ok"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bloomcli.model.gate import GateReport
from bloomcli.model.validate import Finding
from bloomcli.words import are, plural

NOT_DEEP: Final = "not checked: missing values (--deep)"
"""The checks that `validate` skips without ``--deep``."""


def verdict(report: GateReport) -> str:
    """Return the verdict in one line: ``ok: ...``, ``not ok: ...``, or the result of a partial check."""
    text = _not_ok(report) if report.exit_code else _no_failure(report)
    return f"{report.rows[0].path}: {text}" if is_single_file(report) else text


def is_clean(report: GateReport) -> bool:
    """Return whether no finding counts, nothing was left out, and at least one filter or value was checked."""
    return report.ok and report.complete and (report.filters_checked > 0 or report.values_checked > 0)


def is_single_file(report: GateReport) -> bool:
    """Return whether the report is on a single file, whose path then isn't repeated with every finding."""
    return report.files_found == len(report.rows) == 1


def unchecked_parts(report: GateReport) -> tuple[str, ...]:
    """Return what sampling left out: ``95 of 100 files``; empty if everything was checked."""
    left = []
    unseen = report.files_found - len(report.rows)
    if unseen:
        left.append(f"{unseen:,} of {plural(report.files_found, 'file')}")
    unread = report.row_groups - report.row_groups_read
    if unread and report.sample is not None and report.sample.row_groups is not None:
        left.append(f"the values of {unread:,} of {plural(report.row_groups, 'row group')}")
    return tuple(left)


def unchecked(report: GateReport) -> str:
    """Return ``not checked: 95 of 100 files``; empty if everything was checked."""
    left = unchecked_parts(report)
    return f"not checked: {' and '.join(left)}" if left else ""


def excluded(report: GateReport) -> str:
    """Return ``2 files excluded by the policy``; empty if it excludes none."""
    return f"{plural(report.excluded, 'file')} excluded by the policy" if report.excluded else ""


def checked(report: GateReport) -> str:
    """Return ``5 of 100 files: 12 row groups, 24 filters``."""
    files = plural(report.files_found, "file")
    read = report.files - report.failed
    if read != report.files_found:
        files = f"{read:,} of {files}"
    return f"{files}: {plural(report.row_groups, 'row group')}, {_filters(report)}"


def _filters(report: GateReport) -> str:
    """Return ``24 filters``, ``8 filters of id, user.*``."""
    return plural(report.filters_checked, "filter") + _of_columns(report)


def _of_columns(report: GateReport) -> str:
    """Return `` of id, user.*``, `` except of secret``; empty for all columns."""
    text = f" of {', '.join(report.columns)}" if report.columns else ""
    return text + (f" except of {', '.join(report.excluded_columns)}" if report.excluded_columns else "")


def sampling(report: GateReport) -> str:
    """Return ``5% of the files; seed 7, which selects the same part again``; empty without sampling."""
    sample = report.sample
    if sample is None:
        return ""
    parts = []
    if sample.files is not None:
        parts.append(f"{sample.files} of the files" if sample.files.endswith("%") else f"files: {sample.files}")
    if sample.row_groups is not None:
        share = sample.row_groups.endswith("%")
        parts.append(
            f"{sample.row_groups} of each file's row groups" if share else f"row groups per file: {sample.row_groups}"
        )
    return f"{', '.join(parts) or 'everything'}; seed {sample.seed}, which selects the same part again"


def baseline(report: GateReport) -> str:
    """Return the number of known findings and of outdated baseline entries; empty without a baseline."""
    if report.baseline is None and not report.known:
        return ""
    text = f"{plural(report.known, 'known finding')} in the baseline {report.baseline}"
    if report.gone:
        entries = f"{plural(report.gone, 'entry')} of it {are(report.gone)}"
        text += f"; {entries} gone, --update-baseline drops {'it' if report.gone == 1 else 'them'}"
    return text


def sentence(finding: Finding, location: str) -> str:
    """Return message, location and missing values in one line, for formats with one text per finding."""
    missing = f"; missing: {', '.join(finding.missing)}" if finding.missing else ""
    return f"{finding.message}{location}{missing}"


_RUN_FACTS: Final = (
    *("engine", "jobs", "seconds", "policy", "baseline", "gone", "columns", "excluded_columns", "deep", "complete"),
    *("seed", "sample_files", "sample_row_groups", "files_found", "excluded", "files", "failed", "row_groups"),
    *("row_groups_read", "filters_checked", "values_checked", "errors", "warnings", "notes", "off", "known"),
)
"""The names of the facts of a run, in order."""


def run_facts(report: GateReport) -> dict[str, str | int | float | bool]:
    """Return the facts of the run, named as in JSON, without unknown ones."""
    sample = report.sample
    facts: dict[str, str | int | float | bool | None] = {
        **{name: getattr(report, name, None) for name in _RUN_FACTS},
        "seconds": round(report.seconds, 3),
        "columns": ", ".join(report.columns) or None,
        "excluded_columns": ", ".join(report.excluded_columns) or None,
        "seed": None if sample is None else sample.seed,
        "sample_files": None if sample is None else sample.files,
        "sample_row_groups": None if sample is None else sample.row_groups,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _not_ok(report: GateReport) -> str:
    parts = []
    counted = _listed((report.errors, "error"), (report.warnings, "warning"))
    if counted:
        files = len({f.path for f in report.findings if f.counts})
        parts.append(" and ".join(counted) + ("" if is_single_file(report) else f" in {plural(files, 'file')}"))
    if report.failed:
        parts.append(
            "could not be checked"
            if is_single_file(report)
            else f"{plural(report.failed, 'file')} could not be checked"
        )
    parts += [unchecked(report)] * (not report.complete)
    return f"not ok: {'; '.join(parts)}"


def _no_failure(report: GateReport) -> str:
    if not report.rows and report.excluded:
        return f"nothing to check: {excluded(report)}"
    partial = unchecked(report)
    disregarded = ", ".join(
        _listed((report.notes, "note"), (report.off, "switched-off finding"), (report.known, "known finding"))
    )
    files = "" if is_single_file(report) else f" in {plural(report.files, 'file')}"
    if not report.filters_checked:
        lacking = f"no filters{_of_columns(report)} to check{files if report.files else ''}"
        if not report.values_checked:
            return "; ".join(filter(None, [lacking + (f" ({disregarded})" if disregarded else ""), partial]))
        # The columns were selected by name, so that their statistics and indexes were compared with their values.
        looked = plural(report.values_checked, "value")
        agree = f"statistics and indexes agree with {looked}"
        if disregarded:
            agree = f"no finding counts ({disregarded}); {looked} compared with statistics and indexes"
        return "; ".join(filter(None, [agree if partial else f"ok: {agree}", lacking, partial]))
    outcome = f"no finding counts ({disregarded})" if disregarded else "no fault"
    filters = _filters(report) + files
    values = "" if report.deep else f"; {NOT_DEEP}"
    if partial:
        return f"{outcome} in the checked part ({filters}); {partial}{values}"
    if report.deep:
        looked = plural(report.values_checked, "value")
        values = (
            f"; {looked} looked up"
            if disregarded
            else f"; none of {looked} is missing from them; statistics and indexes of their columns agree"
        )
    return f"ok: {outcome} in {filters}{values}"


def _listed(*counts: tuple[int, str]) -> list[str]:
    return [plural(number, noun) for number, noun in counts if number]


def unique(texts: Iterable[str]) -> list[str]:
    """Return each text once, in the order of the first occurrences."""
    return list(dict.fromkeys(texts))
