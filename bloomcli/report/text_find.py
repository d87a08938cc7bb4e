"""Text of `find`, as lines; of `find --reachable`; and of `index build`, `index update` and `index inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from bloomcli.model.file import UNVERIFIED
from bloomcli.report.human import count, seconds
from bloomcli.report.layout import Block, Cell, Columns, Gap, Grid, Head, Line, Style, line, traffic_text
from bloomcli.words import are, noun, plural, rate, size

if TYPE_CHECKING:
    from bloomcli.model.dataset import FileRow
    from bloomcli.model.find import FileFound, FindReport, LookedAt, Place, ReachableReport, ValueFound
    from bloomcli.model.index import IndexedColumnFacts, IndexFacts, IndexReport

_VALUES_SHOWN: Final = 10
_PATHS_SHOWN: Final = 3


def lines(report: FindReport) -> Iterator[str]:
    """The lines of a report; none if all files failed."""
    if not report.files:
        if not report.failed:
            yield "found: nothing, because there is no file to search"
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
    summary = f"values: {report.values_found:,} of {different:,} found"
    if not report.values_missing:
        yield summary
    else:
        shown = ", ".join(report.missing[:_VALUES_SHOWN])
        more = report.values_missing - _VALUES_SHOWN
        rest = f", and {more:,} more, which --format json lists" if more > 0 else ""
        yield f"{summary}; not found{' in the searched files' if report.failed else ''}: {shown}{rest}"
    if different <= _VALUES_SHOWN:
        yield from (f"  {_of_value(value)}" for value in report.by_value if value.rows)


def _of_value(value: ValueFound) -> str:
    more = f", and {value.files - _PATHS_SHOWN:,} more" if value.files > _PATHS_SHOWN else ""
    files = f"{plural(value.files, 'file')}: {', '.join(value.paths[:_PATHS_SHOWN])}{more}"
    return f"{value.value}: {plural(value.rows, 'row')} in {files}"


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


def reachable(report: ReachableReport) -> Iterator[Block]:
    """Yield the places that have values, and the statements that end them; or that there are none."""
    where = f"all that {report.table} reaches"
    values = f"{plural(report.values, 'value')} of {report.column}"
    if report.places:
        still = f"{report.values_found:,} of {values} {are(report.values_found)} still in {where}"
        yield Line(Cell(f"{still}: in {plural(len(report.places), 'place')}", Style.BAD))
        groups: dict[tuple[object, ...], list[Place]] = {}
        for place in report.places:
            groups.setdefault((place.kind, place.part, bool(place.live_rows), place.kept_by, place.ends), []).append(
                place
            )
        for places in groups.values():
            yield Gap()
            yield from _group(places)
        yield Gap()
        yield line("statements that end this, in this order; look again afterwards:")
        yield from (Line(Cell(f"{text};"), 2, whole=True) for text in report.statements)
        yield from (line(f"note: {note}") for note in report.notes)
    elif report.errors:
        yield line(f"no value was found in what could be searched of {where}")
    else:
        yield Line(Cell(f"nothing left: {where} has none of {values}", Style.GOOD))
    yield Gap()
    yield from (line(f"looked at: {_looked_at(looked_at)}") for looked_at in report.looked_at)
    yield line(f"looked at: {plural(report.metadata_files, 'file')} of metadata")
    yield from (line(f"not looked at: {text}") for text in report.not_looked_at)
    if report.errors:
        yield line(
            f"failed: {plural(len(report.errors), 'file')}, in which there may be more; there is no certificate"
        )


def _group(places: list[Place]) -> Iterator[Block]:
    """Yield places that the same things keep."""
    first, rows = places[0], sum(place.rows for place in places)
    facts = [f"{plural(rows, 'row')}, {sum(place.live_rows for place in places):,} not deleted"] if rows else []
    facts += ["the beginning of a value, perhaps of another one"] if first.part else []
    yield Line(Cell(": ".join((first.kind, *facts)), Style.TITLE))
    yield from (Line(Cell(place.path), 2, whole=True) for place in places[:_PATHS_SHOWN])
    if len(places) > _PATHS_SHOWN:
        yield Line(Cell(f"and {len(places) - _PATHS_SHOWN:,} more, which --format json lists"), 2)
    yield Line(Cell(f"kept by: {'; '.join(first.kept_by)}"), 2)


def _looked_at(item: LookedAt) -> str:
    numbers = (
        (item.by_filter, "ruled out by filters, statistics or schema"),
        (item.by_scan, "read"),
        (item.without_values, "not opened: only row numbers"),
    )
    return f"{item.kind}: {item.files:,}; " + ", ".join(f"{count:,} {what}" for count, what in numbers if count)


def index_change(report: IndexReport) -> Iterator[Block]:
    """Yield the result of `index build` or `index update`."""
    yield line(_index_verdict(report))
    would = "would be " if report.dry_run else ""
    filters = f"{plural(report.filters, 'filter')} {would}taken"
    if report.columns_read:
        chunks = plural(report.columns_read, "column chunk")
        filters += f", {chunks} {would}read ({size(report.bytes_decoded)})"
    if report.added:
        groups = plural(report.row_groups, "row group")
        yield line(f"{plural(report.added, 'file')} {would}read: {groups}, {filters}")
    if report.update:
        yield line(f"{report.kept:,} unchanged, {report.dropped:,} {would}dropped{_drop_reasons(report)}")
    if report.dropped_unnamed:
        yield line("an update needs all paths of the index: it drops the files that they don't name")
    if report.kept_unseen:
        paths = ", ".join(report.paths_unseen[:3]) + (", ..." if len(report.paths_unseen) > 3 else "")
        yield line(f"{plural(report.kept_unseen, 'file')} not found and not dropped: there is no file in {paths}")
    if report.skipped:
        yield line(f"{plural(report.skipped, 'path')} skipped: no file of a format that can be indexed")
    if report.failed:
        is_not, them = ("isn't", "it") if report.failed == 1 else ("aren't", "them")
        failed = plural(report.failed, "file")
        yield line(f"{failed} failed and {is_not} in the index: `find` searches {them} itself")
    if report.requests is not None:
        moved = f"{size(report.bytes_downloaded or 0)} downloaded, {size(report.bytes_uploaded or 0)} uploaded"
        yield line(f"{plural(report.requests, 'request')} to stores, {moved}")
    for remark in report.remarks:
        yield line(remark)


def _drop_reasons(report: IndexReport) -> str:
    """Format the reasons for which files were dropped, with their numbers."""
    numbers = (
        (report.dropped_gone, "gone"),
        (report.dropped_unnamed, "not named by the paths"),
        (report.dropped_failed, "failed now"),
    )
    reasons = ", ".join(f"{count:,} {why}" for count, why in numbers if count)
    return f": {reasons}" if reasons else ""


def _index_verdict(report: IndexReport) -> str:
    columns = f"{noun(len(report.columns), 'column')} {', '.join(report.columns)}"
    if report.dry_run:
        would = f"would have {columns} of {plural(report.files, 'file')}"
        return f"{report.path or 'the index'} {would}; nothing was written"
    if report.written:
        took = f"{size(report.bytes or 0)}, {seconds(report.seconds)}"
        return f"{report.path}: {columns} of {plural(report.files, 'file')}, {took}"
    if report.update and report.files and not report.failed and not report.kept_unseen:
        return f"{report.path}: up to date, {columns} of {plural(report.files, 'file')}"
    if report.update:
        return f"{report.path}: not written, it stays as it was"
    return f"{report.path}: not written"


def index_facts(facts: IndexFacts) -> Iterator[Block]:
    """Yield the facts of an index: files, row groups, and a row per column."""
    yield line(f"{facts.path}: {size(facts.bytes)}, by {facts.created_by}")
    files = f"{plural(facts.files, 'file')} of {size(facts.data_bytes)}"
    yield line(
        f"{files}, {plural(facts.row_groups, 'row group')}, {plural(facts.rows, 'row')}; rate {rate(facts.fpp)}"
    )
    yield Gap()
    names = Counter((item.column, item.logical) for item in facts.columns)

    def type_of(item: IndexedColumnFacts) -> str:
        alike = item.logical is not None and names[item.column, item.logical] > 1
        return f"{item.logical} {item.physical}" if alike else item.logical or item.physical

    columns: Columns[IndexedColumnFacts] = [
        (Head("column"), lambda item: item.column),
        (Head("type", rank=1), type_of),
        (Head("row groups", figures=True), lambda item: count(item.row_groups)),
        (Head("filters", figures=True), lambda item: count(item.filters)),
        (Head("no filter", figures=True, rank=3), lambda item: count(item.always)),
        (Head("no values", figures=True, rank=3), lambda item: count(item.never)),
        (Head("free slots", figures=True, rank=6), lambda item: count(item.free_slots)),
        (Head("filter size", figures=True, rank=4), lambda item: size(item.filter_bytes)),
        (Head("FPP", figures=True, rank=2), lambda item: rate(item.fpp)),
        (Head("bytes", figures=True, rank=5), lambda item: size(item.bytes)),
        (Head("lookup", figures=True, rank=7), lambda item: size(item.lookup_bytes)),
    ]
    yield Grid.of(facts.columns, columns, complete="--format json")
