"""The page of `trial`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups, TrialReport
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Estimate
from bloomcli.report.html.parts import (
    Chart,
    Document,
    Key,
    Page,
    Part,
    Section,
    Table,
    failures,
    first_columns,
    table,
)
from bloomcli.report.human import column_name, count, seconds
from bloomcli.report.layout import Cell, Columns, Head, Line, Pairs, Style, figures, line
from bloomcli.report.text_trial import answer, effect, facts, saved
from bloomcli.rules import RULES
from bloomcli.rules import page as rule_page
from bloomcli.words import plural, size

_STATUS: Final[dict[str, tuple[str, Style]]] = {
    "equal": ("the same rows", Style.GOOD),
    "unequal": ("other rows with filters", Style.BAD),
    "not-installed": ("not installed", Style.DIM),
    "not-run": ("not run", Style.DIM),
    "unsupported": ("no support for the format", Style.DIM),
    "failed": ("failed", Style.BAD),
}
_ITEMS_SHOWN: Final = 50
_LEAST_RATIO: Final = 0.001

Row = tuple[ReaderTrial, TrialLookups]


def page(report: TrialReport, most: int) -> Page:
    """Return the page of a trial: readers, differences, times, row groups, lookups."""
    sections = [Section("Readers", tuple(_readers(report))), Section("Trial", tuple(_facts(report)))]
    if report.differences:
        sections.append(Section("Differences", tuple(_differences(report, most))))
    rows = [(reader, lookups) for reader in report.readers for lookups in reader.lookups]
    if parts := [*_times(rows), *_row_groups(rows)]:
        sections.append(Section("With filters and without", tuple(parts)))
    if rows:
        sections.append(Section("Lookups", (_lookups(rows, most),)))
    return Page(", ".join(report.paths), "trial", _lead(report), tuple(sections))


def _lead(report: TrialReport) -> Line:
    ran = [reader for reader in report.readers if reader.status in {"equal", "unequal"}]
    if report.differences:
        wrong = [reader.title for reader in ran if reader.differences]
        return line(f"{', '.join(wrong)}: other rows with filters than without.", Style.BAD)
    if not ran:
        return line("No reader could be tried.", Style.WARN)
    sentence = answer(report)
    text = f"{plural(len(ran), 'reader')} returned the same rows with filters and without."
    return line(f"{sentence[0].upper()}{sentence[1:]}. {text}", Style.GOOD)


def _facts(report: TrialReport) -> Iterator[Part]:
    more = (("timed runs", Cell(count(report.runs))), ("time", Cell(seconds(report.seconds))))
    yield Pairs((*facts(report), *more))
    for remark in report.remarks:
        yield line(remark, Style.WARN)
    yield from failures(report.failed, _ITEMS_SHOWN)


def _readers(report: TrialReport) -> Iterator[Part]:
    def rows(reader: ReaderTrial) -> Cell:
        text, style = _STATUS.get(reader.status, (reader.status, Style.PLAIN))
        return Cell(text, style)

    columns: Columns[ReaderTrial] = [
        (Head("reader"), lambda reader: reader.title),
        (Head("version"), lambda reader: reader.version or "-"),
        (
            Head("filters"),
            lambda reader: Cell(
                effect(reader) if reader.lookups else "-", Style.GOOD if saved(reader) else Style.PLAIN
            ),
        ),
        (Head("rows"), rows),
        (Head("without filters"), lambda reader: reader.comparison or "-"),
        (Head("option"), lambda reader: reader.switch or "-"),
        (Head("reason"), lambda reader: reader.reason or ""),
        (Head("hint"), lambda reader: reader.hint or ""),
    ]
    yield table("Readers", report.readers, columns)
    yield line(
        "Without filters: “switch” is the same file with the reader's option off, “added” the file itself and a copy "
        "with filters, “removed” a copy without the file's filters."
    )


def _differences(report: TrialReport, most: int) -> Iterator[Part]:
    pairs = [(reader, difference) for reader in report.readers for difference in reader.differences]
    columns: Columns[tuple[ReaderTrial, RowDifference]] = [
        (Head("reader"), lambda item: item[0].title),
        (Head("file"), lambda item: item[1].path),
        (Head("column"), lambda item: item[1].column),
        (Head("value"), lambda item: item[1].value),
        figures("rows without filters", lambda item: item[1].rows_without),
        figures("rows with filters", lambda item: item[1].rows_with, lambda n: "failed" if n is None else count(n)),
        (Head("rule"), lambda item: item[1].rule or "-"),
        (Head("message"), lambda item: Cell(item[1].message, Style.BAD)),
    ]
    yield table("Lookups that returned other rows with filters", pairs, columns, most=most)
    for id_ in dict.fromkeys(difference.rule for _, difference in pairs if difference.rule in RULES):
        if id_ is not None:
            yield Document(f"{id_}: {RULES[id_].title}", rule_page(id_))


def _name(row: Row) -> str:
    reader, lookups = row
    return f"{reader.title}, {lookups.kind}: {column_name(lookups)}"


def _times(rows: Sequence[Row]) -> Iterator[Part]:
    timed = [(row, row[1].ratio) for row in rows if row[1].ratio is not None]
    if not timed:
        return
    drawn = timed[: charts.ROWS]
    least = min(ratio.low for _, ratio in drawn)
    ticks = charts.ratios(max(least, _LEAST_RATIO), max(ratio.high for _, ratio in drawn))
    points = []
    for row, ratio in drawn:
        median, low, high = (max(n, _LEAST_RATIO) for n in (ratio.median, ratio.low, ratio.high))
        points.append((_name(row), [Estimate("accent", median, low, high)]))

    def ratio_text(value: float | None) -> str:
        return f"{value:.2f}"

    columns: Columns[tuple[Row, Quartiles]] = [
        (Head("reader, kind of value, column"), lambda item: _name(item[0])),
        figures("lower quartile", lambda item: item[1].low, ratio_text),
        figures("median", lambda item: item[1].median, ratio_text),
        figures("upper quartile", lambda item: item[1].high, ratio_text),
        figures("pairs", lambda item: item[1].count),
    ]
    title = "Time of a lookup with filters, divided by the time without"
    yield Chart(
        title,
        f"A dot for each of {count(len(drawn))} readers, columns and kinds of values: the median of the ratios of "
        "pairs of lookups, and a line between the quartiles. Left of the line at 1, filters make lookups faster.",
        charts.estimates(points, ticks, "ratio: below 1, filters are faster", logarithmic=True, mark=1),
        table=table(title, drawn, columns, total=len(timed)),
        note=f"Lines go from the lower to the upper quartile. {first_columns(len(drawn), len(timed), 'rows')}",
    )


def _row_groups(rows: Sequence[Row]) -> Iterator[Part]:
    counted = [
        (row, row[1].row_groups_without, row[1].row_groups_with)
        for row in rows
        if row[1].row_groups and row[1].row_groups_without is not None and row[1].row_groups_with is not None
    ]
    if not counted:
        return
    drawn = counted[: charts.ROWS]
    points = []
    for row, *read in drawn:
        shares = [number / row[1].row_groups for number in read]
        both = tuple(Estimate("accent", n, n, n, hollow) for n, hollow in zip(shares, (True, False), strict=True))
        points.append((_name(row), both))
    columns: Columns[tuple[Row, int, int]] = [
        (Head("reader, column, kind of value"), lambda item: _name(item[0])),
        figures("row groups", lambda item: item[0][1].row_groups),
        figures("read without filters", lambda item: item[1]),
        figures("read with filters", lambda item: item[2]),
    ]
    title = "Row groups that lookups read, by the reader's own count"
    yield Chart(
        title,
        f"For each of {count(len(drawn))} readers, columns and kinds of values the share of the row groups that were "
        "read, without filters and with filters.",
        charts.estimates(points, charts.PERCENT, "share of the row groups"),
        legend=(Key("ring", "without filters"), Key("disc", "with filters")),
        table=table(title, drawn, columns, total=len(counted)),
        note="Readers that don't count row groups aren't in the chart. "
        + first_columns(len(drawn), len(counted), "rows"),
    )


def _lookups(rows: Sequence[Row], most: int) -> Table:
    def faulty(number: int, style: Style) -> Cell:
        return Cell(count(number), style if number else Style.PLAIN, number)

    def median(quartiles: Quartiles | None) -> float | None:
        return None if quartiles is None else quartiles.median

    columns: Columns[Row] = [
        (Head("reader"), lambda row: row[0].title),
        (Head("column"), lambda row: column_name(row[1])),
        (Head("values"), lambda row: row[1].kind),
        figures("lookups", lambda row: row[1].lookups),
        (Head("unequal", figures=True), lambda row: faulty(row[1].unequal, Style.BAD)),
        (Head("not found", figures=True), lambda row: faulty(row[1].not_found, Style.WARN)),
        figures("rows", lambda row: row[1].rows_without),
        figures("rows read without", lambda row: row[1].rows_read_without),
        figures("rows read with", lambda row: row[1].rows_read_with),
        figures("bytes without", lambda row: row[1].bytes_without, size),
        figures("bytes with", lambda row: row[1].bytes_with, size),
        figures("seconds without", lambda row: median(row[1].seconds_without), seconds),
        figures("seconds with", lambda row: median(row[1].seconds_with), seconds),
    ]
    return table("Lookups by reader and column", rows, columns, most=most)
