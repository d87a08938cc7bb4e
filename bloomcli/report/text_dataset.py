"""Text reports on many files: their columns, a table of the files if they are few, errors, notes and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from bloomcli.hints import quoted
from bloomcli.model.dataset import ColumnOverFiles, DatasetReport, FileRow, Status, TableFacts
from bloomcli.report.human import count, first_names, growth, seconds, speed
from bloomcli.report.layout import (
    Block,
    Cell,
    Columns,
    Gap,
    Grid,
    Head,
    Style,
    bar,
    figures,
    line,
    planned,
    traffic_line,
)
from bloomcli.report.text import answers, policy_line
from bloomcli.words import plural, rate, size

_TITLES: Final = {"iceberg": "Iceberg", "delta": "Delta"}
_VERSIONS: Final = {"iceberg": "snapshot", "delta": "version"}
_COMMITS_SHOWN: Final = 10

_Coverage = tuple[tuple[str, str], ...]
"""A file's columns, each with its coverage."""
_DIFFERENT_SHOWN: Final = 50
_WRITERS_SHOWN: Final = 8
_WORDS: Final = {
    "all": "has filters",
    "some": "has a filter in some row groups only",
    "none": "has no filter",
}


def lake(report: DatasetReport) -> Iterator[Block]:
    """Yield the columns, the writers, and the files whose columns or filters differ from those of most files."""
    writers: Counter[str] = Counter()
    coverages: Counter[_Coverage] = Counter()
    for row in _read(report.rows):
        writers[row.created_by or "unknown"] += 1
        if row.row_groups:
            coverages[_coverage(row)] += 1
    if not writers:
        return
    yield Grid.of(report.by_column, over_files(report), complete="--format json")
    yield Gap()
    yield line("written by: " + _writers(writers))
    yield from _different(report.rows, coverages)
    yield Gap()


def _read(rows: Iterable[FileRow]) -> Iterator[FileRow]:
    return (row for row in rows if row.status is Status.DONE and row.by_column)


def over_files(report: DatasetReport) -> Columns[ColumnOverFiles]:
    """What a table says of each column over all files."""

    def unreadable(column: ColumnOverFiles) -> Cell:
        number = column.unreadable
        return Cell(count(number), Style.BAD if number else Style.PLAIN, number)

    return [
        (Head("column"), lambda c: c.column),
        (Head("type", rank=3), lambda c: " or ".join(c.types)),
        figures("files", lambda c: c.files, rank=5),
        figures("with filter", lambda c: c.files_with_filter),
        figures("partly", lambda c: c.files_partly, shown=_any(report, "files_partly")),
        figures("without", lambda c: c.files_without_filter),
        (Head("", graphic=True), lambda c: bar(c.files_with_filter / files) if (files := _files(c)) else ""),
        figures("filters", lambda c: c.filters, rank=4),
        (Head("unreadable", figures=True, shown=_any(report, "unreadable")), unreadable),
        figures("filter size", lambda c: c.bitset_bytes, size, rank=2),
        figures("worst FPP", lambda c: c.max_fpp, rate, rank=1),
        figures("engines' own", lambda c: c.engine_filters, shown=_any(report, "engine_filters")),
    ]


def _any(report: DatasetReport, name: str) -> bool:
    """Whether a figure of any column is above 0."""
    return any(getattr(column, name) for column in report.by_column)


def _files(column: ColumnOverFiles) -> int:
    """The number of files that have rows of the column."""
    return column.files_with_filter + column.files_partly + column.files_without_filter


def _writers(writers: Counter[str]) -> str:
    shown = [f"{writer} ({plural(files, 'file')})" for writer, files in writers.most_common(_WRITERS_SHOWN)]
    left = len(writers) - len(shown)
    return ", ".join(shown) + (f" and {plural(left, 'other')}" if left else "")


def _different(rows: Iterable[FileRow], coverages: Counter[_Coverage]) -> Iterator[Block]:
    full = coverages.total()
    if full < 2:  # one file can't differ from the others
        return
    ((usual, files),) = coverages.most_common(1)
    different = full - files
    if not different:
        without = all(coverage in {"none", "empty"} for _, coverage in usual)
        have = "None of the {} has a filter of its format." if without else "All {} have filters of the same columns."
        yield line(have.format(plural(full, "file")))
        return
    yield Gap()
    if files == 1:
        yield line("No two files have filters of the same columns.", Style.WARN)
        return
    verb = "differs" if different == 1 else "differ"
    yield line(f"{plural(different, 'file')} {verb} from the {count(files)} that are alike:", Style.WARN)
    others = (row for row in _read(rows) if row.row_groups and _coverage(row) != usual)
    for row in islice(others, _DIFFERENT_SHOWN):
        yield line(f"{row.path}: {_difference(dict(_coverage(row)), dict(usual))}", indent=2)
    left = different - _DIFFERENT_SHOWN
    if left > 0:
        yield line(f"... and {plural(left, 'more file')}: --all or --format csv lists every file", indent=2)


def _coverage(row: FileRow) -> _Coverage:
    return tuple(sorted((column.column, column.coverage) for column in row.by_column))


def _difference(own: dict[str, str], usual: dict[str, str]) -> str:
    """Describe the differences between a file and most files."""
    parts: dict[str, list[str]] = {}
    for column in dict.fromkeys((*usual, *own)):
        if column not in own:
            parts.setdefault("has no column", []).append(column)
        elif column not in usual:
            parts.setdefault("also has column", []).append(column)
        elif own[column] != usual[column]:
            parts.setdefault(f"{_WORDS.get(own[column], own[column])} for", []).append(column)
    return "; ".join(f"{what} {first_names(columns)}" for what, columns in parts.items())


ROWS_SHOWN: Final = 50
"""Reports on at most this many files list every file."""
_COMPLETE: Final = "--all or --format csv"
"""The options that show all rows."""
_NOTES_SHOWN: Final = 200
_NOTE_WIDTH: Final = 40
"""Longer notes are printed below the table: on a terminal of 80 cells, they would wrap after every word."""
STATUS_STYLE: Final = {
    Status.DONE: Style.GOOD,
    Status.PLANNED: Style.GOOD,
    Status.SKIPPED: Style.DIM,
    Status.FOUND: Style.WARN,
    Status.FAILED: Style.BAD,
}

_CHANGING: Final = ("add", "remove", "fold", "repair")
_PROCESSED: Final = (Status.DONE, Status.PLANNED)
"""The statuses of files that the command changed or answered for, or would change."""


def dataset(report: DatasetReport, *, every: bool = False) -> Iterator[Block]:
    """Yield the files, if they are few or `every` is true, the errors and long notes, and the totals."""
    few = report.files <= ROWS_SHOWN
    listed = every or (few and not _are_alike(report.rows))
    if report.command == "inspect" and not every:
        yield from lake(report)
    if listed:
        yield Grid.of(report.rows, [*of_files(report), (Head("note", prose=True), _note)])
        yield Gap()
    noted = [row for row in report.rows if _has_note(row, listed=listed)]
    if every:
        for row in noted:
            yield from _note_lines(row)
    else:
        yield from _shared_notes(noted)
    if noted:
        yield Gap()
    yield from _totals(report, listed=listed)
    if not listed and not few:
        yield line(f"{plural(report.files, 'file')} not shown: {_COMPLETE}", Style.DIM)


def _are_alike(rows: Sequence[FileRow]) -> bool:
    """Whether several files were all skipped, or all failed, for the same reason: one line says so."""
    kinds = {(row.status, row.reason, (row.error or "").removeprefix(f"{row.path}: ")) for row in rows}
    return len(rows) > 1 and len(kinds) == 1 and rows[0].status in {Status.SKIPPED, Status.FAILED}


def of_files(report: DatasetReport) -> Columns[FileRow]:
    """What a table says of each file, except for its note."""
    changed = any(r.bytes_after is not None for r in report.rows)
    bound = f", {planned(report.command)}" if report.dry_run else ""
    repairs, probes, inspects = (report.command == name for name in ("repair", "probe", "inspect"))
    before = "before" if changed else "row-group size" if probes else "size"
    return [
        (Head("file", path=True), lambda row: row.path),
        (Head("status"), lambda row: Cell(_status(report, row.status), STATUS_STYLE[row.status])),
        (Head("format", rank=7), lambda row: row.format or "-"),
        # figures that the command never sets have no column
        figures("row groups", lambda row: row.row_groups, rank=5, shown=report.command not in _CHANGING),
        figures("filtered columns" if inspects else "columns", lambda row: row.columns, rank=6),
        figures(
            "structures" if repairs else "filters",
            lambda row: row.structures if repairs else row.filters,
            rank=1,
            shown=not probes,
        ),
        figures(
            "filter size" + (bound if report.command == "add" else ""),
            lambda row: row.filter_bytes,
            size,
            rank=2,
            shown=report.command not in {"probe", "remove", "repair"},
        ),
        figures("worst FPP", lambda row: row.max_fpp, rate, rank=3, optional=True),
        figures(before, lambda row: row.bytes_before, size, rank=4),
        figures("after" + bound, lambda row: row.bytes_after, size, shown=changed),
    ]


def _status(report: DatasetReport, status: Status) -> str:
    return f"would {report.command}" if status is Status.PLANNED else status.value


def _note(row: FileRow) -> str:
    """Return the note in a file's row. Longer notes are below the table, per file or for all skipped files."""
    reason = "see below" if row.reason and _is_long(row.reason) else row.reason
    answers = (f"{totals.value}: {totals.answer.value}" for totals in row.totals)
    return "; ".join(filter(None, (*answers, reason)))


def _is_long(reason: str) -> bool:
    return len(reason) > _NOTE_WIDTH


def _note_lines(row: FileRow, others: int = 0) -> Iterator[Block]:
    """Yield the error of a file with its hint, or its note.

    Args:
        row: the file.
        others: the number of other files with the same error or note.
    """
    more = f"; the same in {plural(others, 'more file')}" if others else ""
    if row.error is not None:
        yield line(row.error + more, Style.BAD)
        if row.hint:
            yield line("hint: " + row.hint, indent=2)
    elif row.reason is not None:
        yield line(f"{row.path}: {row.reason}{more}", Style.WARN)


def _has_note(row: FileRow, *, listed: bool) -> bool:
    """Whether a file has an error, or a note that no table shows."""
    reason = row.reason if row.status in _PROCESSED else None
    return row.status is Status.FAILED or bool(reason and (not listed or _is_long(reason)))


def _shared_notes(rows: Sequence[FileRow]) -> Iterator[Block]:
    """Yield the errors and notes of files. One that several files share is shown once, with the first file."""
    shared: dict[tuple[str, ...], list[FileRow]] = {}
    for row in rows:
        hint = (row.hint or "").replace(quoted(row.path), "")
        key = ((row.error or "").removeprefix(f"{row.path}: "), hint, row.reason or "")
        shared.setdefault(key, []).append(row)
    for first, *others in islice(shared.values(), _NOTES_SHOWN):
        yield from _note_lines(first, len(others))
    left = sum(map(len, islice(shared.values(), _NOTES_SHOWN, None)))
    if left:
        yield line(f"... and {plural(left, 'file')} more: {_COMPLETE}")


def _totals(report: DatasetReport, *, listed: bool) -> Iterator[Block]:
    worked = [row for row in report.rows if row.status in _PROCESSED]
    filters, structures, filter_bytes, before, after = (
        sum(getattr(row, name) or 0 for row in worked)
        for name in ("filters", "structures", "filter_bytes", "bytes_before", "bytes_after")
    )
    statuses = report.row_totals().statuses
    parts = [f"{statuses[s]:,} {_status(report, s)}" for s in Status if statuses[s]]
    command = report.command + (": dry run, nothing was written" if report.dry_run else "")
    yield line(
        f"{command}: {plural(report.files, 'file')}: {', '.join(parts) or 'none'}, {seconds(report.seconds)}"
        f" ({speed(report.files, report.seconds)}, {report.engine}, {plural(report.jobs, 'job')})",
        Style.BAD if statuses[Status.FAILED] else Style.TITLE,
    )
    if report.not_started:
        untouched = ", and no file was changed" if report.command in _CHANGING and not report.done else ""
        text = f"{plural(report.not_started, 'file')} not started: --fail-fast ended the run{untouched}"
        yield line(text, Style.WARN)
    if report.command in _CHANGING and worked:
        change = f"{f'{planned(report.command)} ' * report.dry_run}{size(after)} ({growth(before, after)})"
        what = (structures, "structure") if report.command == "repair" else (filters, "filter")
        yield line(f"{plural(*what)}, {size(before)} -> {change}")
    elif filters:
        yield line(f"{plural(filters, 'filter')}, {size(filter_bytes)}")
    yield from policy_line(report.policy)
    yield from table_lines(report)
    yield from traffic_line(report, dry_run=report.dry_run)
    reasons = Counter(row.reason for row in report.rows if row.status is Status.SKIPPED and row.reason)
    for reason, number in reasons.most_common():
        yield line(f"skipped {plural(number, 'file')}: {reason}", Style.DIM)
    for text in report.remarks:
        yield line(f"remark: {text}", Style.WARN)
    if report.command == "probe":
        yield from answers(report.rows, listed=listed)


def table_title(table: TableFacts) -> str:
    """Return ``ice.db.orders (Iceberg)``."""
    return f"{table.name} ({_TITLES.get(table.format, table.format)})"


def version_text(table: TableFacts, version: int | None) -> str:
    """Return ``snapshot 123``, ``version 7``, or ``no snapshot``."""
    return "no snapshot" if version is None else f"{_VERSIONS.get(table.format, 'version')} {version}"


def table_lines(report: DatasetReport) -> Iterator[Block]:
    """Yield the snapshot that the command read, and its commits; nothing for files that were named by path."""
    table = report.table
    if table is None:
        return
    start = f"table {table_title(table)}, {version_text(table, report.version_before)}"
    if report.command not in _CHANGING:
        yield line(f"{start}: {plural(report.files, 'data file')}")
    elif not report.commits:
        yield line(f"{start}: nothing to commit" if not report.failed else f"{start}: nothing was committed")
    elif report.dry_run:
        yield line(f"{start}: {_replaced(report)} would be replaced in {_commits(report)}; it {_bytes(report)}")
        if len(report.commits) > 1:
            yield from _each(report)
    else:
        versions = [version_text(table, commit.version) for commit in report.commits[-1:]]
        last = "the last one " if len(report.commits) > 1 else ""
        yield line(f"{start}: {_replaced(report)} replaced in {_commits(report)}, {last}{versions[0]}", Style.GOOD)


def _replaced(report: DatasetReport) -> str:
    return (
        f"{sum(commit.files for commit in report.commits):,} of {plural(report.files + report.not_started, 'file')}"
    )


def _commits(report: DatasetReport) -> str:
    text = plural(len(report.commits), "commit")
    snapshots = sum(commit.snapshots for commit in report.commits)
    return text if snapshots == len(report.commits) else f"{text} ({plural(snapshots, 'snapshot')})"


def _bytes(report: DatasetReport) -> str:
    """Return the bytes that a dry run expects to read, copy and write."""
    rows = [row for row in report.rows if row.status is Status.PLANNED]
    read = sum(row.bytes_decoded or 0 for row in rows)
    copied = sum(row.bytes_copied or 0 for row in rows)
    new = sum(row.bytes_after or 0 for row in rows) - copied
    written = f"writes {planned(report.command)} {size(new)} anew"
    return f"reads at most {size(read)} of columns, copies {size(copied)}, {written}"


def _each(report: DatasetReport) -> Iterator[Block]:
    for number, commit in enumerate(report.commits[:_COMMITS_SHOWN], 1):
        files = plural(commit.files, "file")
        after = f"{planned(report.command)} {size(commit.bytes_after)}"
        yield line(f"commit {number}: {files}, {size(commit.bytes_before)} -> {after}", indent=2)
    if len(report.commits) > _COMMITS_SHOWN:
        yield line(f"... and {plural(len(report.commits) - _COMMITS_SHOWN, 'commit')} more: --format json", indent=2)
