"""The report of `find` as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import UNVERIFIED
from bloomcli.model.find import FileFound, FindReport, ValueFound
from bloomcli.report.human import size
from bloomcli.report.layout import traffic_text
from bloomcli.words import plural

_VALUES_SHOWN: Final = 10
_PATHS_SHOWN: Final = 3


def lines(report: FindReport) -> Iterator[str]:
    """The lines of a report; none if no file could be searched."""
    if not report.files:
        return
    more = "; --limit ended the search" if report.limited else ""
    yield f"found: {_found(report)}{more}"
    yield from _values(report)
    groups = f"row groups: {report.row_groups_possible:,} of {report.row_groups:,} may have the values"
    if report.row_groups_read:
        out = f", {report.pages_left_out:,} left out by the page index" if report.pages_left_out else ""
        pages = f" ({plural(report.pages_read, 'page')} of {report.column}{out})" if report.pages_read else ""
        groups += f", {report.row_groups_read:,} read{pages}"
    yield groups
    yield f"read: {_read(report)}"
    requests = traffic_text(report)
    if requests is not None:
        yield f"object store: {requests}"
    if report.index is not None:
        yield from _by_index(report)
    if report.other_types:
        yield (
            f"not searched: values of {report.column} that have other types than the column, in"
            f" {plural(report.other_types, 'row group')}"
        )
    if report.unverified:
        yield f"not verified: {plural(report.unverified, 'file')}: {UNVERIFIED}"
    if report.skipped:
        yield f"skipped: {plural(report.skipped, 'path')} without a file of a known format"
    if report.failed:
        yield f"failed: {plural(report.failed, 'file')}, in which there may be more"


def _values(report: FindReport) -> Iterator[str]:
    """Which of several values were found, and how often; of more than `_VALUES_SHOWN` only those that weren't."""
    if report.values < 2 or report.values_found is None:
        return
    if report.values_missing is None:
        yield f"values: {report.values_found:,} of {report.values:,} found before --limit ended the search"
        return
    different = report.values_found + report.values_missing
    found = f"values: {report.values_found:,} of {different:,} found"
    if not report.values_missing:
        yield found
    else:
        shown = ", ".join(report.missing[:_VALUES_SHOWN])
        more = report.values_missing - _VALUES_SHOWN
        rest = f", and {more:,} more, which --format json lists" if more > 0 else ""
        yield f"{found}; not found{' in the searched files' if report.failed else ''}: {shown}{rest}"
    if different <= _VALUES_SHOWN:
        yield from (f"  {_of_value(one)}" for one in report.by_value if one.rows)


def _of_value(one: ValueFound) -> str:
    more = f", and {one.files - _PATHS_SHOWN:,} more" if one.files > _PATHS_SHOWN else ""
    files = f"{plural(one.files, 'file')}: {', '.join(one.paths[:_PATHS_SHOWN])}{more}"
    return f"{one.value}: {plural(one.rows, 'row')} in {files}"


def _read(report: FindReport) -> str:
    if report.index is None:
        return f"{size(report.bytes_read)}, footers and filters included; {_scan(report)}"
    opened = f"; {_scan(report)}" if report.scan_bytes else ""
    return f"{size(report.bytes_read)}, the index, footers and filters included{opened}"


def _scan(report: FindReport) -> str:
    """The size of all pages of the columns, which may be smaller than footers and filters."""
    of = "" if report.index is None else " in opened files"
    return f"all pages of the columns{of} have {size(report.scan_bytes)}"


def _by_index(report: FindReport) -> Iterator[str]:
    yield f"index: {report.files_unopened:,} of {plural(report.files, 'file')} not opened"
    others = ((report.files_not_indexed, "not in the index"), (report.files_changed, "changed since"))
    reasons = ", ".join(f"{count:,} {what}" for count, what in others if count)
    if reasons:
        count = report.files_not_indexed + report.files_changed
        them = "those that can be read" if report.failed else "them"
        yield f"index: {plural(count, 'file')} searched without it ({reasons}); `bloom index update` adds {them}"
    if report.files and report.files_not_indexed == report.files + report.failed:
        yield "index: it has none of these files; files that were moved or are mounted elsewhere aren't those it has"


def problems(failed: Iterable[FileFound | FileRow]) -> Iterator[tuple[str, str | None]]:
    """The errors of files with their hints. An error that many files have in common comes once."""
    alike: dict[str, list[FileFound | FileRow]] = {}
    for file in failed:
        alike.setdefault((file.error or "it could not be checked").replace(f"{file.path}: ", ""), []).append(file)
    for error, (first, *others) in alike.items():
        more = f"; the same in {plural(len(others), 'more file')}" if others else ""
        yield f"{first.error or f'{first.path}: {error}'}{more}", first.hint


def _found(report: FindReport) -> str:
    what = "searched file" if report.failed or report.limited else "file"  # not all files were searched
    files = f"{report.files_found:,} of {plural(report.files, what)}"
    if report.rows:
        return f"{plural(report.rows, 'row')} in {files}"
    if not report.files_found:
        return f"no rows in {plural(report.files, what)}"
    have = "has" if report.files_found == 1 else "have"
    return f"{files} {have if report.row_groups_read else 'may have'} such rows"
