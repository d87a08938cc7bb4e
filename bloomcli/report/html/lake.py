"""The page of `inspect` on many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Final

from bloomcli.model.dataset import ColumnFilters, ColumnOverFiles, DatasetReport, FileRow, Status
from bloomcli.report.fitting import common_directory
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Place
from bloomcli.report.html.file import spread_charts
from bloomcli.report.html.parts import Chart, Key, Page, Part, Section, Table, first_columns, table
from bloomcli.report.human import count, seconds
from bloomcli.report.layout import Cell, Columns, Head, Line, Pairs, Style, figures, line
from bloomcli.report.text_dataset import STATUS_STYLE, of_files, over_files
from bloomcli.words import plural, size

_COVERED: Final = (
    Key("accent", "files with a filter in every row group"),
    Key("q2", "in some row groups"),
    Key("line", "in none"),
)


def page(report: DatasetReport, most: int) -> Page:
    """Return the page of many files: totals, coverage, rates, columns, files."""
    columns = report.by_column
    filtered = [column for column in columns if column.filters or column.unreadable]
    sections = [Section("Files", tuple(_totals(report)))]
    if filtered:
        names = [column.column for column in filtered[: charts.ROWS]]
        rates: dict[str, list[float]] = {name: [] for name in names}
        parts = (
            _coverage(filtered, names),
            _map(report, names, rates, len(filtered)),
            *spread_charts("Worst false-positive rate of each file", rates, logarithmic=True, what="files"),
        )
        sections.append(Section("Coverage", parts))
    if columns:
        column_table = table("Columns over all files", columns, over_files(report), most=most)
        sections.append(Section("Columns", (column_table,)))
    sections.append(Section("All files", (_files(report, most),)))
    return Page(_title(report), "inspect", _lead(report, filtered), tuple(sections))


def _title(report: DatasetReport) -> str:
    """The name of the table, or the number of files and their common directory."""
    if report.table is not None:
        return report.table.name
    folder = common_directory(row.path for row in report.rows)
    return plural(report.files, "file") + (f" in {folder}" if folder else "")


def _lead(report: DatasetReport, filtered: list[ColumnOverFiles]) -> Line:
    if report.failed:
        return line(f"{plural(report.failed, 'file')} of {count(report.files)} couldn't be read.", Style.BAD)
    if not filtered:
        kept = sum(column.engine_filters for column in report.by_column)
        besides = f" of its format, besides {count(kept)} that engines keep" if kept else ""
        return line(f"No file has a Bloom filter{besides}.")
    whole = [c for c in filtered if c.files_with_filter and not c.files_partly and not c.files_without_filter]
    return line(
        f"{plural(len(filtered), 'column')} with filters; {count(len(whole))} of them in every row group of every "
        "file that has the column."
    )


def _totals(report: DatasetReport) -> Iterator[Part]:
    statuses = report.row_totals().statuses
    items = [
        (status.value, Cell(count(statuses[status]), STATUS_STYLE[status])) for status in Status if statuses[status]
    ]
    bits = sum(row.filter_bytes or 0 for row in report.rows)
    whole = sum(row.bytes_before or 0 for row in report.rows)
    items += [
        ("row groups", Cell(count(report.row_totals().row_groups))),
        ("filters", Cell(f"{count(report.row_totals().filters)}, {size(bits)}")),
        ("size of the files", Cell(size(whole))),
        ("time", Cell(f"{seconds(report.seconds)}, {report.engine}, {plural(report.jobs, 'job')}")),
    ]
    if report.not_started:
        items.append(
            ("not started", Cell(f"{plural(report.not_started, 'file')}: --fail-fast ended the run", Style.WARN))
        )
    yield Pairs(tuple(items))
    for remark in report.remarks:
        yield line(remark, Style.WARN)


def _coverage(filtered: list[ColumnOverFiles], names: list[str]) -> Chart:
    """The chart of the number of files with filters, by column."""
    rows = []
    for column in filtered[: len(names)]:
        parts = (column.files_with_filter, column.files_partly, column.files_without_filter)
        text = f"{count(parts[0])} of {count(sum(parts))}"
        rows.append((column.column, tuple(zip(("accent", "q2", "line"), map(float, parts), strict=True)), text))
    columns: Columns[ColumnOverFiles] = [
        (Head("column"), lambda c: c.column),
        figures("in every row group", lambda c: c.files_with_filter),
        figures("in some row groups", lambda c: c.files_partly),
        figures("in none", lambda c: c.files_without_filter),
    ]
    most = max(sum(length for _, length in parts) for _, parts, _ in rows)
    title = "Files with filters by column"
    return Chart(
        title,
        f"A bar for each of {plural(len(names), 'column')}: files with a filter in every row group, in some, in "
        "none.",
        charts.bars(rows, charts.numbers(most), "files that have the column and rows"),
        legend=_COVERED,
        table=table(title, filtered, columns, most=len(names)),
        note=first_columns(len(names), len(filtered), "columns with filters"),
    )


def _map(report: DatasetReport, names: list[str], rates: dict[str, list[float]], total: int) -> Chart:
    """The map of files and columns. Also fills `rates` with the worst rate of each file, in the same pass."""
    ranges = charts.bins(max(report.files, 1))
    groups: dict[str, list[list[ColumnFilters]]] = {name: [[] for _ in ranges] for name in names}
    cell = 0
    for number, row in enumerate(report.rows):
        if number >= ranges[cell].stop:
            cell += 1
        for column in row.by_column:
            if column.column in groups:
                groups[column.column][cell].append(column)
                if column.max_fpp is not None:
                    rates[column.column].append(column.max_fpp)
    means = [mean for row in groups.values() for group in row if (mean := _mean(group)) is not None]
    low, high = min(means, default=1.0), max(means, default=1.0)
    cells = [[_place(group, low, high) for group in groups[name]] for name in names]
    legend = [Key(f"q{number}", text) for number, text in charts.level_texts(low, high)]
    legend += [
        Key("half", "cell in part filled: only that part of the row groups has a filter"),
        Key("none", "no filter"),
        Key("cross", "a filter that can't be read"),
    ]
    several = (
        f"Each cell shows about {count(report.files / len(ranges))} files. " if len(ranges) < report.files else ""
    )
    title = "Filters by file and column"
    return Chart(
        title,
        f"A map with a row for each of {plural(len(names), 'column')} and a cell for each file, or for several "
        "files in their order. Where a cell is filled to its top, all row groups have a filter. Shades show the mean "
        f"size of a filter: {size(round(low))} to {size(round(high))}. The table of columns has the figures.",
        charts.place_map(names, cells, charts.ordinals(ranges), "file, in the order of the table"),
        legend=tuple(legend),
        note=several
        + "An empty place: no file there has rows of the column. "
        + first_columns(len(names), total, "columns with filters"),
    )


def _mean(columns: Sequence[ColumnFilters]) -> float | None:
    """The mean bytes of the filters of a column in some files; None without any."""
    filters = sum(column.filters for column in columns)
    return sum(column.bitset_bytes for column in columns) / filters if filters else None


def _place(columns: Sequence[ColumnFilters], low: float, high: float) -> Place | None:
    with_filter = sum(column.row_groups_with_filter for column in columns)
    groups = with_filter + sum(column.row_groups_without_filter for column in columns)
    if not groups:
        return None
    broken = any(column.unreadable for column in columns)
    return charts.place(with_filter / groups, _mean(columns), (low, high), broken=broken)


def _files(report: DatasetReport, most: int) -> Table:
    """The table of files: if not all fit, failed ones first, then the largest. The number is the position in the
    map."""
    chosen = nlargest(
        most,
        enumerate(report.rows),
        key=lambda item: (item[1].status is Status.FAILED, item[1].bytes_before or 0, -item[0]),
    )
    number = {row.path: at for at, row in enumerate(report.rows)}
    more: Columns[FileRow] = [
        figures("number", lambda row: number[row.path]),
        (Head("note"), lambda row: Cell(row.error or row.reason or "", Style.BAD if row.error else Style.PLAIN)),
    ]
    rows = [row for _, row in sorted(chosen, key=lambda item: item[0])]
    word = "largest files" + (" (failed ones before others)" if report.failed else "")
    columns = [*of_files(report), *more]
    return table("All files", rows, columns, total=report.files, chosen=word, complete="--all --format csv")
