"""The page of `advise`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from bloomcli.model.advice import AdviseReport, AtRate, ColumnAdvice, Interval
from bloomcli.model.file import TIGHT
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Curve, Estimate
from bloomcli.report.html.parts import Chart, Key, Page, Part, Section, Table, failures, first_columns, table
from bloomcli.report.human import column_name, count
from bloomcli.report.layout import Cell, Columns, Head, Line, Pairs, Style, figures, line
from bloomcli.report.text_advice import (
    INTERVAL,
    NO_QUERIES,
    TO_LEAVE,
    UNSERVED,
    answer,
    commands,
    cost,
    estimate,
    facts,
    interval,
    of_gains,
    readers,
    weights,
)
from bloomcli.words import plural, rate, size

_PANELS: Final = 8
"""The most columns in the chart of sizes."""
_FAILED_SHOWN: Final = 50
_SKIPPED: Final = (
    ("dim", "skipped today: by min/max, dictionaries, and existing filters"),
    ("accent", "skipped in addition with the new filter"),
    ("line", "read in any case"),
)
_READ: Final = (
    Key("ring", "a value that the column has: today"),
    Key("disc", "with the new filter"),
    Key("ring2", "a value that it doesn't have: today"),
    Key("disc2", "with the new filter"),
)


def page(report: AdviseReport, most: int) -> Page:
    """Return the page of `advise`: columns to add filters to, other columns, costs of lookups, sizes, queries."""
    add = [column for column in report.columns if column.recommended]
    leave = [column for column in report.columns if not column.recommended]
    sections = []
    parts: list[Part] = []
    if add:
        parts.append(_before_and_after(add, report))
    parts += commands(report)
    if report.queries is None:
        parts.append(line(NO_QUERIES[0].upper() + NO_QUERIES[1:]))
    if add:
        parts += [_to_add(add, report, most), line(INTERVAL, Style.DIM)]
    if parts:
        sections.append(Section("Add", tuple(parts)))
    if report.uses:
        sections.append(Section("Readers", (readers(report),)))
    if leave:
        sections.append(Section("Leave", (_to_leave(leave, most),)))
    measured = [column for column in report.columns if column.present is not None or column.absent is not None]
    if measured:
        drawn = [column for column in measured if column.recommended]
        if drawn:
            parts = [*_skipped(drawn), _read(drawn[: charts.ROWS], len(drawn)), *_saved(drawn)]
            sections.append(Section("What a lookup reads", tuple(parts)))
    if panels := [column for column in add if column.rates and column.filter_bytes is not None][:_PANELS]:
        sections.append(Section("Size and false-positive rate", (_sizes(panels, report.size),)))
    if report.queries is not None and report.queries.unserved:
        predicates = table("Predicates that can't use a filter", report.queries.unserved, UNSERVED, most=most)
        sections.append(Section("Queries", (predicates,)))
    if measured:
        sections.append(Section("Figures", (_figures(report.columns, most),)))
    sections.append(Section("Sample", tuple(_facts(report))))
    return Page(", ".join(report.paths) or "files", "advise", _lead(report, add), tuple(sections))


def _lead(report: AdviseReport, add: Sequence[ColumnAdvice]) -> Line:
    failed = f" {plural(len(report.failed), 'file')} couldn't be read." if report.failed else ""
    style = Style.WARN if report.failed else Style.PLAIN
    if not add:
        return line("No column needs a new filter." + failed, style)
    sentence = answer(report)
    return line(f"{sentence[0].upper()}{sentence[1:]}; {cost(report)}." + failed, style)


def _before_and_after(add: Sequence[ColumnAdvice], report: AdviseReport) -> Chart:
    """The chart of the bytes that a lookup reads, today and with filters, by recommended column and on average."""
    pairs = [(column_name(c), c.today_bytes or 0.0, c.with_filter_bytes or 0.0) for c in add[: charts.ROWS // 2]]
    if report.total is not None and len(add) > 1:
        pairs.insert(0, ("on average", report.total.today_bytes, report.total.with_filter_bytes))
    rows = []
    for name, today, then in pairs:
        rows.append((f"{name}: today", (("dim", today),), size(today)))
        rows.append(("with filters", (("accent", then),), size(then)))
    columns: Columns[tuple[str, float, float]] = [
        (Head("column"), lambda pair: pair[0]),
        figures("today", lambda pair: pair[1], size),
        figures("with filters", lambda pair: pair[2], size),
    ]
    title = "Bytes that a lookup reads, today and with filters"
    return Chart(
        title,
        "Two bars for each column, and for all on average: the bytes that one lookup reads today, and with filters.",
        charts.bars(rows, charts.sizes(max(p[1] for p in pairs)), "bytes read by a lookup"),
        legend=(Key("dim", "today"), Key("accent", "with filters, their own bytes included")),
        table=table(title, pairs, columns),
        note=f"{weights(report).capitalize()}. " + first_columns(min(len(add), charts.ROWS // 2), len(add)),
    )


def _facts(report: AdviseReport) -> Iterator[Part]:
    yield Pairs((*facts(report), ("rate", Cell(rate(report.fpp)))))
    yield line("Figures are estimates from the sample. Intervals are 95 % confidence intervals.")
    yield from failures(report.failed, _FAILED_SHOWN)


def _to_add(add: Sequence[ColumnAdvice], report: AdviseReport, most: int) -> Table:
    more: Columns[ColumnAdvice] = [
        figures("of the files", lambda c: c.filter_share, rate),
        (Head("because"), lambda c: c.reason),
    ]
    return table("Columns to add filters to", add, [*of_gains(report), *more], most=most)


def _to_leave(leave: Sequence[ColumnAdvice], most: int) -> Table:
    def existing(column: ColumnAdvice) -> str:
        filters = column.existing
        return "none" if filters is None or not filters.filters else f"{count(filters.filters)}: {filters.judgement}"

    columns = [*TO_LEAVE, (Head("existing filters"), existing)]
    return table("Columns to leave as they are", leave, columns, most=most)


def _skipped(measured: Sequence[ColumnAdvice]) -> Iterator[Part]:
    """Yield the chart of the row groups that a lookup of an absent value skips today and with the new filter."""
    gains = [(column_name(column), column.absent) for column in measured if column.absent is not None]
    if not gains:
        return
    rows = []
    for name, gain in gains[: charts.ROWS]:
        today, then = gain.today.row_groups.estimate, gain.with_filter.row_groups.estimate
        parts = (1 - today, max(today - then, 0.0), min(then, today))
        bar = tuple(zip((tone for tone, _ in _SKIPPED), parts, strict=True))
        rows.append((name, bar, f"{rate(parts[2])} read"))
    title = "Row groups that a lookup of an absent value skips"

    def share(at: int, row: tuple[str, tuple[tuple[str, float], ...], str]) -> float:
        return row[1][at][1]

    columns: Columns[tuple[str, tuple[tuple[str, float], ...], str]] = [
        (Head("column"), lambda row: row[0]),
        *(figures(text, partial(share, at), rate) for at, (_, text) in enumerate(_SKIPPED)),
    ]
    yield Chart(
        title,
        f"A bar for each of {plural(len(rows), 'column')}: the share of the row groups that a lookup skips "
        "today, that it skips in addition with the new filter, and that it reads in any case.",
        charts.bars(rows, charts.PERCENT, "share of the row groups"),
        legend=tuple(Key(tone, text) for tone, text in _SKIPPED),
        table=table(title, rows, columns, total=len(gains)),
        note=first_columns(len(rows), len(gains)),
    )


def _read(read: Sequence[ColumnAdvice], total: int) -> Chart:
    """The chart of the row groups that a lookup reads, for present and absent values, with intervals."""

    def shares(column: ColumnAdvice) -> list[Interval | None]:
        gains = (column.present, column.absent)
        costs = [cost for gain in gains for cost in ((gain.today, gain.with_filter) if gain else (None, None))]
        return [None if cost is None else cost.row_groups for cost in costs]

    def cell(at: int, column: ColumnAdvice) -> Cell:
        share = shares(column)[at]
        if share is None:
            return Cell("-", value=-1)
        return Cell(f"{rate(share.estimate)} ({rate(share.low)} to {rate(share.high)})", value=share.estimate)

    series = (("accent", True), ("accent", False), ("second", True), ("second", False))
    rows = [
        (
            column_name(column),
            [
                Estimate(tone, share.estimate, share.low, share.high, hollow)
                for (tone, hollow), share in zip(series, shares(column), strict=True)
                if share is not None
            ],
        )
        for column in read
    ]
    titles = ("present, today", "present, with filter", "absent, today", "absent, with filter")
    columns: Columns[ColumnAdvice] = [
        (Head("column"), column_name),
        *((Head(text, figures=True), partial(cell, at)) for at, text in enumerate(titles)),
    ]
    title = "Row groups that a lookup reads, with intervals"
    return Chart(
        title,
        f"For each of {plural(len(read), 'column')} the share of the row groups that a lookup reads: of a value "
        "that the column has and of one that it doesn't have, today and with the new filter, with 95 % confidence "
        "intervals.",
        charts.estimates(rows, charts.PERCENT, "share of the row groups"),
        legend=_READ,
        table=table(title, read, columns, total=total),
        note="Lines are 95 % confidence intervals. " + first_columns(len(read), total),
    )


def _saved(measured: Sequence[ColumnAdvice]) -> Iterator[Part]:
    savings = [(column, column.saved_bytes) for column in measured if column.saved_bytes is not None]
    if not savings:
        return
    drawn = savings[: charts.ROWS]
    rows = [
        (column_name(column), (Estimate("accent", saved.estimate, saved.low, saved.high),)) for column, saved in drawn
    ]
    ticks = charts.signed_sizes(min(s.low for _, s in drawn), max(s.high for _, s in drawn))
    columns: Columns[tuple[ColumnAdvice, Interval]] = [
        (Head("column"), lambda item: column_name(item[0])),
        figures("saved", lambda item: item[1].estimate, size),
        (Head("95 % interval"), lambda item: interval(item[1])),
        figures("filter size of all row groups", lambda item: estimate(item[0].filter_bytes), size),
    ]
    title = "Bytes that a lookup reads less with the new filter"
    yield Chart(
        title,
        f"For each of {plural(len(drawn), 'column')} the bytes that one lookup saves, those of the filters "
        "deducted, with a 95 % confidence interval; left of the line at 0 it reads more.",
        charts.estimates(rows, ticks, "bytes saved by a lookup", mark=0),
        table=table(title, drawn, columns, total=len(savings)),
        note="Lines are 95 % confidence intervals. " + first_columns(len(drawn), len(savings)),
    )


def _sizes(drawn: Sequence[ColumnAdvice], rule: str) -> Chart:
    """The chart of filter sizes at several rates, with the chosen rate."""
    panels = []
    for column in drawn:
        points = sorted(((max(at.filter_bytes.estimate, 1.0), at.fpp) for at in column.rates), key=lambda p: -p[1])
        chosen = column.filter_bytes
        point = None if chosen is None or column.fpp is None else (max(chosen.estimate, 1.0), column.fpp)
        label = "" if point is None else f"{size(point[0])} at {rate(point[1])}"
        panels.append(Curve(column_name(column), tuple(points), point if column.recommended else None, label))
    columns: Columns[tuple[ColumnAdvice, AtRate]] = [
        (Head("column"), lambda item: column_name(item[0])),
        figures("FPP", lambda item: item[1].fpp, rate),
        figures("filter size", lambda item: item[1].filter_bytes.estimate, size),
        (Head("chosen"), lambda item: "yes" if item[0].recommended and item[0].fpp == item[1].fpp else "no"),
    ]
    sizes = [x for panel in panels for x, _ in panel.points]
    fpps = [y for panel in panels for _, y in panel.points]
    title = "Filter size by false-positive rate"
    return Chart(
        title,
        f"A curve for each of {plural(len(drawn), 'column')}: the bytes of the filters of all row groups at "
        "several false-positive rates, on logarithmic scales. A dot marks the recommended size.",
        charts.curves(
            panels,
            charts.log_sizes(min(sizes), max(sizes)),
            charts.rates(min(fpps), max(*fpps, min(fpps) * 10)),
            "filters of all row groups",
        ),
        table=table(title, [(column, at) for column in drawn for at in column.rates], columns),
        note=(
            "Sizes are tight: any number of blocks, which the named readers take. "
            if rule == TIGHT
            else "Sizes are powers of two for each row group, so that a lower rate can take no more bytes. "
        )
        + f"The chart shows at most {_PANELS} columns, the recommended ones first.",
    )


def _figures(items: Sequence[ColumnAdvice], most: int) -> Table:
    columns: Columns[ColumnAdvice] = [
        (Head("column"), column_name),
        (Head("recommended"), lambda c: "yes" if c.recommended else "no"),
        figures("rows", lambda c: c.rows),
        figures("nulls", lambda c: c.nulls),
        figures("size", lambda c: c.column_bytes, size),
        figures("distinct values", lambda c: estimate(c.distinct)),
        figures("distinct in a row group", lambda c: estimate(c.distinct_per_row_group)),
        figures("row groups with a value in range", lambda c: estimate(c.overlap), rate),
        figures("row groups in dictionaries", lambda c: c.dictionary_row_groups),
        figures("row groups sampled", lambda c: c.sampled_row_groups),
    ]
    return table("Figures of the columns", items, columns, most=most)
