"""Text of `index build`, `index update` and `index inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bloomcli.model.index import IndexedColumnFacts, IndexFacts, IndexReport
from bloomcli.report.human import count, rate, seconds, size
from bloomcli.report.layout import Block, Columns, Gap, Grid, Head, line
from bloomcli.words import noun, plural


def index_change(report: IndexReport) -> Iterator[Block]:
    """Yield the result of `index build` or `index update`."""
    yield line(f"{_verdict(report)}")
    would = "would be " if report.dry_run else ""
    taken = f"{plural(report.filters, 'filter')} {would}taken"
    if report.columns_read:
        chunks = plural(report.columns_read, "column chunk")
        taken += f", {chunks} {would}read ({size(report.bytes_decoded)})"
    if report.added:
        groups = plural(report.row_groups, "row group")
        yield line(f"{plural(report.added, 'file')} {would}read: {groups}, {taken}")
    if report.update:
        yield line(f"{report.kept:,} unchanged, {report.dropped:,} {would}dropped{_reasons(report)}")
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


def _reasons(report: IndexReport) -> str:
    """Format the reasons for which files were dropped, with their numbers."""
    numbers = (
        (report.dropped_gone, "gone"),
        (report.dropped_unnamed, "not named by the paths"),
        (report.dropped_failed, "failed now"),
    )
    found = ", ".join(f"{count:,} {why}" for count, why in numbers if count)
    return f": {found}" if found else ""


def _verdict(report: IndexReport) -> str:
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
