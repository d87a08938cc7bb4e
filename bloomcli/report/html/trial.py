"""The page of `trial`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.trial import Quartiles, ReaderTrial, TrialLookups, TrialReport
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Estimate
from bloomcli.report.html.draw import chart
from bloomcli.report.html.parts import (
    Cell,
    Document,
    Facts,
    Head,
    Key,
    Limits,
    Page,
    Part,
    Section,
    Table,
    Text,
    figure,
    shown,
    table,
)
from bloomcli.report.human import column_name, count, rate, seconds, size
from bloomcli.report.text_trial import answer, effect, names, saved
from bloomcli.rules import RULES
from bloomcli.rules import page as rule_page
from bloomcli.words import plural

_STATUS: Final = {
    "equal": ("the same rows", "good"),
    "unequal": ("other rows with filters", "bad"),
    "not-installed": ("not installed", "dim"),
    "not-run": ("not run", "dim"),
    "unsupported": ("no support for the format", "dim"),
    "failed": ("failed", "bad"),
}
_ITEMS_SHOWN: Final = 50
_LEAST_RATIO: Final = 0.001

Row = tuple[ReaderTrial, TrialLookups]


def page(report: TrialReport, limits: Limits) -> Page:
    """Return the page of a trial: readers, differences, times, row groups, lookups."""
    sections = [Section("Readers", tuple(_readers(report))), Section("Trial", tuple(_facts(report)))]
    if report.differences:
        sections.append(Section("Differences", tuple(_differences(report, limits))))
    rows = [(reader, found) for reader in report.readers for found in reader.lookups]
    if parts := [*_times(rows), *_row_groups(rows)]:
        sections.append(Section("With filters and without", tuple(parts)))
    if rows:
        sections.append(Section("Lookups", (_lookups(rows, limits),)))
    return Page(", ".join(report.paths), "trial", _lead(report), tuple(sections))


def _lead(report: TrialReport) -> Text:
    ran = [reader for reader in report.readers if reader.status in {"equal", "unequal"}]
    if report.differences:
        wrong = [reader.title for reader in ran if reader.differences]
        return Text(f"{', '.join(wrong)}: other rows with filters than without.", "bad")
    if not ran:
        return Text("No reader could be tried.", "warn")
    said = answer(report)
    text = f"{plural(len(ran), 'reader')} returned the same rows with filters and without."
    return Text(f"{said[0].upper()}{said[1:]}. {text}", "good")


def _facts(report: TrialReport) -> Iterator[Part]:
    tried = f"{count(len(report.tried))} of {plural(report.files, 'file')}" + (
        f" (sample {report.sample})" if report.sample else ""
    )
    items = [
        ("tried", f"{tried}, {plural(report.row_groups, 'row group')}, {plural(report.rows, 'row')}"),
        ("columns", ", ".join(map(shown, names(report)))),
        ("values", ", ".join(report.queries) or f"{count(report.values)} of each kind, sampled; seed {report.seed}"),
        ("rate of new filters", rate(report.fpp)),
        ("timed runs", count(report.runs)),
        ("time", seconds(report.seconds)),
    ]
    yield Facts(tuple((name, Cell(text)) for name, text in items))
    for remark in report.remarks:
        yield Text(remark, "warn")
    for path, why in report.failed[:_ITEMS_SHOWN]:
        yield Text(why if path in why else f"{path}: {why}", "bad")
    if len(report.failed) > _ITEMS_SHOWN:
        yield Text(f"… and {plural(len(report.failed) - _ITEMS_SHOWN, 'more file')}: --format json", "bad")


def _readers(report: TrialReport) -> Iterator[Part]:
    heads = tuple(map(Head, ("reader", "version", "filters", "rows", "without filters", "option", "reason", "hint")))
    rows = []
    for reader in report.readers:
        text, tone = _STATUS.get(reader.status, (reader.status, ""))
        rows.append(
            (
                Cell(reader.title),
                Cell(reader.version or "-"),
                Cell(effect(reader) if reader.lookups else "-", tone="good" if saved(reader) else ""),
                Cell(text, tone=tone),
                Cell(reader.comparison or "-"),
                Cell(reader.switch or "-"),
                Cell(reader.reason or ""),
                Cell(reader.hint or ""),
            )
        )
    yield table("Readers", heads, rows)
    yield Text(
        "Without filters: “switch” is the same file with the reader's option off, “added” the file itself and a copy "
        "with filters, “removed” a copy without the file's filters."
    )


def _differences(report: TrialReport, limits: Limits) -> Iterator[Part]:
    found = [(reader, one) for reader in report.readers for one in reader.differences]
    heads = (
        *map(Head, ("reader", "file", "column", "value")),
        *(Head("rows without filters", figures=True), Head("rows with filters", figures=True)),
        *(Head("rule"), Head("message")),
    )
    rows = [
        (
            Cell(reader.title),
            Cell(one.path),
            Cell(one.column),
            Cell(one.value),
            figure(count(one.rows_without), one.rows_without),
            figure("failed" if one.rows_with is None else count(one.rows_with), one.rows_with),
            Cell(one.rule or "-"),
            Cell(one.message, tone="bad"),
        )
        for reader, one in found[: limits.rows]
    ]
    yield table("Lookups that returned other rows with filters", heads, rows, total=len(found))
    for id_ in dict.fromkeys(one.rule for _, one in found if one.rule in RULES):
        if id_ is not None:
            yield Document(f"{id_}: {RULES[id_].title}", rule_page(id_))


def _name(row: Row) -> str:
    reader, found = row
    return f"{reader.title}, {found.kind}: {column_name(found)}"


def _times(rows: Sequence[Row]) -> Iterator[Part]:
    timed = [(row, row[1].ratio) for row in rows if row[1].ratio is not None]
    if not timed:
        return
    drawn = timed[: charts.ROWS]
    least = min(ratio.low for _, ratio in drawn)
    ticks = charts.ratios(max(least, _LEAST_RATIO), max(ratio.high for _, ratio in drawn))
    points = [(_name(row), (_estimate(ratio),)) for row, ratio in drawn]
    figures = [
        (Cell(_name(row)), *(figure(f"{n:.2f}", n) for n in (ratio.low, ratio.median, ratio.high)), _number(ratio))
        for row, ratio in drawn
    ]
    heads = (
        Head("reader, kind of value, column"),
        *(Head(text, figures=True) for text in ("lower quartile", "median", "upper quartile", "pairs")),
    )
    title = "Time of a lookup with filters, divided by the time without"
    yield chart(
        title,
        f"A dot for each of {count(len(drawn))} readers, columns and kinds of values: the median of the ratios of "
        "pairs of lookups, and a line between the quartiles. Left of the line at 1, filters make lookups faster.",
        lambda svg: charts.estimates(
            points, ticks, "ratio: below 1, filters are faster", svg, logarithmic=True, mark=1
        ),
        table=table(title, heads, figures, total=len(timed)),
        note="Lines go from the lower to the upper quartile." + _rest(len(drawn), len(timed)),
    )


def _estimate(ratio: Quartiles) -> Estimate:
    median, low, high = (max(n, _LEAST_RATIO) for n in (ratio.median, ratio.low, ratio.high))
    return Estimate("accent", median, low, high)


def _number(found: Quartiles) -> Cell:
    return figure(count(found.count), found.count)


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
    figures = []
    for row, without, with_filters in drawn:
        whole = row[1].row_groups
        shares = (without / whole, with_filters / whole)
        both = tuple(Estimate("accent", n, n, n, hollow) for n, hollow in zip(shares, (True, False), strict=True))
        points.append((_name(row), both))
        figures.append((Cell(_name(row)), *(figure(count(n), n) for n in (whole, without, with_filters))))
    heads = (
        Head("reader, column, kind of value"),
        *(Head(text, figures=True) for text in ("row groups", "read without filters", "read with filters")),
    )
    title = "Row groups that lookups read, by the reader's own count"
    yield chart(
        title,
        f"For each of {count(len(drawn))} readers, columns and kinds of values the share of the row groups that were "
        "read, without filters and with filters.",
        lambda svg: charts.estimates(points, charts.PERCENT, "share of the row groups", svg),
        legend=(Key("ring", "without filters"), Key("disc", "with filters")),
        table=table(title, heads, figures, total=len(counted)),
        note="Readers that don't count row groups aren't in the chart." + _rest(len(drawn), len(counted)),
    )


def _rest(shown_rows: int, total: int) -> str:
    return f" The chart shows the first {shown_rows} of {count(total)} rows." if total > shown_rows else ""


def _lookups(rows: Sequence[Row], limits: Limits) -> Table:
    titles = (
        *("lookups", "unequal", "not found", "rows", "rows read without", "rows read with"),
        *("bytes without", "bytes with", "seconds without", "seconds with"),
    )
    heads = (Head("reader"), Head("column"), Head("values"), *(Head(title, figures=True) for title in titles))
    cells = []
    for reader, found in rows[: limits.rows]:
        numbers = (found.rows_without, found.rows_read_without, found.rows_read_with)
        cells.append(
            (
                Cell(reader.title),
                Cell(column_name(found)),
                Cell(found.kind),
                figure(count(found.lookups), found.lookups),
                Cell(count(found.unequal), found.unequal, "bad" if found.unequal else ""),
                Cell(count(found.not_found), found.not_found, "warn" if found.not_found else ""),
                *(figure(count(n), n) for n in numbers),
                *(figure("-" if n is None else size(n), n) for n in (found.bytes_without, found.bytes_with)),
                *(_time(spread) for spread in (found.seconds_without, found.seconds_with)),
            )
        )
    return table("Lookups by reader and column", heads, cells, total=len(rows))


def _time(found: Quartiles | None) -> Cell:
    return figure("-" if found is None else seconds(found.median), None if found is None else found.median)
