"""The page of `advise`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.advice import AdviseReport, ColumnAdvice, Interval
from bloomcli.model.file import TIGHT
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Curve, Estimate
from bloomcli.report.html.draw import chart
from bloomcli.report.html.file import rate_cell
from bloomcli.report.html.parts import (
    Cell,
    Chart,
    Command,
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
    table,
)
from bloomcli.report.human import column_name, count, rate, seconds, size
from bloomcli.report.text_advice import NO_QUERIES, answer, cost, engine_filters, unverified, weights
from bloomcli.rules.filter_use import GAINS, NEVER_LOOKS
from bloomcli.rules.readers import reader
from bloomcli.words import are, plural

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


def page(report: AdviseReport, limits: Limits) -> Page:
    """Return the page of `advise`: columns to add filters to, other columns, costs of lookups, sizes, queries."""
    add = [column for column in report.columns if column.recommended]
    leave = [column for column in report.columns if not column.recommended]
    sections = []
    parts: list[Part] = []
    if add:
        parts.append(_before_and_after(add, report))
    for title, lines in (
        ("To add them:", report.command),
        ("To add page indexes, with which lookups read fewer pages:", report.page_index_command),
        ("To fold or remove existing filters:", report.upkeep),
    ):
        if lines is not None:
            parts += [Text(title), Command(lines)]
    parts += map(Text, engine_filters(report))
    if report.unverified:
        parts.append(Text(f"Not verified: {unverified(report)}.", "warn"))
    if report.queries is None:
        parts.append(Text(NO_QUERIES[0].upper() + NO_QUERIES[1:]))
    if add:
        parts.append(_to_add(add, limits))
    if parts:
        sections.append(Section("Add", tuple(parts)))
    if report.uses:
        sections.append(Section("Readers", (_readers(report),)))
    if leave:
        sections.append(Section("Leave", (_to_leave(leave, limits),)))
    measured = [column for column in report.columns if column.present is not None or column.absent is not None]
    if measured:
        drawn = [column for column in measured if column.recommended]
        if drawn:
            parts = [*_skipped(drawn), _read(drawn[: charts.ROWS], len(drawn)), *_saved(drawn)]
            sections.append(Section("What a lookup reads", tuple(parts)))
    if panels := [column for column in add if column.rates and column.filter_bytes is not None][:_PANELS]:
        sections.append(Section("Size and false-positive rate", (_sizes(panels, report.size),)))
    if report.queries is not None and report.queries.unserved:
        sections.append(Section("Queries", (_unserved(report, limits),)))
    if measured:
        sections.append(Section("Figures", (_figures(report.columns, limits),)))
    sections.append(Section("Sample", tuple(_facts(report))))
    return Page(", ".join(report.paths) or "files", "advise", _lead(report, add), tuple(sections))


def _lead(report: AdviseReport, add: Sequence[ColumnAdvice]) -> Text:
    failed = f" {plural(len(report.failed), 'file')} couldn't be read." if report.failed else ""
    if not add:
        return Text("No column needs a new filter." + failed, "warn" if failed else "")
    said = answer(report)
    return Text(f"{said[0].upper()}{said[1:]}; {cost(report)}." + failed, "warn" if failed else "")


def _before_and_after(columns: Sequence[ColumnAdvice], report: AdviseReport) -> Chart:
    """The chart of the bytes that a lookup reads, today and with filters, by recommended column and on average."""
    pairs = [(column_name(c), c.today_bytes or 0.0, c.with_filter_bytes or 0.0) for c in columns[: charts.ROWS // 2]]
    if report.total is not None and len(columns) > 1:
        pairs.insert(0, ("on average", report.total.today_bytes, report.total.with_filter_bytes))
    rows = []
    for name, today, then in pairs:
        rows.append((f"{name}: today", (("dim", today),), size(round(today))))
        rows.append(("with filters", (("accent", then),), size(round(then))))
    figures = [(Cell(name), *(figure(size(round(n)), n) for n in (today, then))) for name, today, then in pairs]
    heads = (Head("column"), Head("today", figures=True), Head("with filters", figures=True))
    title = "Bytes that a lookup reads, today and with filters"
    return chart(
        title,
        "Two bars for each column, and for all on average: the bytes that one lookup reads today, and with filters.",
        lambda svg: charts.bars(rows, charts.sizes(max(p[1] for p in pairs)), "bytes read by a lookup", svg),
        legend=(Key("dim", "today"), Key("accent", "with filters, their own bytes included")),
        table=table(title, heads, figures),
        note=f"{weights(report).capitalize()}. " + _rest(min(len(columns), charts.ROWS // 2), len(columns)),
    )


def _readers(report: AdviseReport) -> Table:
    """What filters do for each reader."""
    tones = {GAINS: "good", NEVER_LOOKS: "dim"}
    rows = [
        (Cell(use.title), Cell(use.reason, tone=tones.get(use.verdict, "")), Cell(", ".join(use.columns)))
        for use in report.uses
    ]
    return table("Readers", (Head("reader"), Head("what it does"), Head("columns")), rows)


def _facts(report: AdviseReport) -> Iterator[Part]:
    groups = f"{count(report.sampled_row_groups)} of {plural(report.row_groups, 'row group')}"
    items = [
        ("files", f"{count(report.files)}, {plural(report.rows, 'row')}, {size(report.bytes)}"),
        ("values", f"from {groups}, in {plural(report.sampled_files, 'file')}; seed {report.seed}"),
        ("weights", weights(report)),
        ("rate", rate(report.fpp)),
        ("readers", ", ".join(reader(name).title for name in report.readers) or "any that read files as they are"),
    ]
    if report.policy is not None:
        items.append(("policy", report.policy))
    log = report.queries
    if log is not None:
        items.append(
            (
                "queries",
                f"{plural(log.statements, 'statement')}, {count(log.about_table)} {are(log.about_table)} about these "
                f"files, {count(log.unreadable)} can't be read",
            )
        )
    if report.budget_bytes is not None and report.budget_used is not None:
        items.append(("budget", f"{size(report.budget_bytes)}; {size(report.budget_used)} used"))
    items.append(("time", seconds(report.seconds)))
    yield Facts(tuple((name, Cell(text)) for name, text in items))
    yield Text("Figures are estimates from the sample. Intervals are 95 % confidence intervals.")
    for path, why in report.failed[:_FAILED_SHOWN]:
        yield Text(why if path in why else f"{path}: {why}", "bad")
    if len(report.failed) > _FAILED_SHOWN:
        yield Text(f"… and {plural(len(report.failed) - _FAILED_SHOWN, 'more file')}: --format json", "bad")


def _to_add(columns: Sequence[ColumnAdvice], limits: Limits) -> Table:
    titles = ("filter size", "of the files", "FPP", "saved by a lookup", "95 % interval", "lookups", "time to add")
    heads = (Head("column"), Head("type"), *(Head(title, figures=True) for title in titles), Head("because"))
    rows = []
    for column in columns[: limits.rows]:
        time = column.seconds_to_add
        rows.append(
            (
                Cell(column_name(column)),
                Cell(column.type),
                _size_cell(column.filter_bytes),
                rate_cell(column.filter_share),
                rate_cell(column.fpp),
                _size_cell(column.saved_bytes),
                Cell(_interval(column.saved_bytes)),
                figure(count(column.lookups), column.lookups),
                figure("-" if time is None else seconds(time.estimate), None if time is None else time.estimate),
                Cell(column.reason),
            )
        )
    return table("Columns to add filters to", heads, rows, total=len(columns))


def _to_leave(columns: Sequence[ColumnAdvice], limits: Limits) -> Table:
    heads = (Head("column"), Head("type"), Head("because"), Head("existing filters"))
    rows = []
    for column in columns[: limits.rows]:
        there = column.existing
        text = "none" if there is None or not there.filters else f"{count(there.filters)}: {there.judgement}"
        tone = "warn" if column.reason_id == "loses-rows" else ""
        rows.append((Cell(column_name(column)), Cell(column.type), Cell(column.reason, tone=tone), Cell(text)))
    return table("Columns to leave as they are", heads, rows, total=len(columns))


def _skipped(measured: Sequence[ColumnAdvice]) -> Iterator[Part]:
    """Yield the chart of the row groups that a lookup of an absent value skips today and with the new filter."""
    known = [(column_name(column), column.absent) for column in measured if column.absent is not None]
    if not known:
        return
    rows = []
    figures = []
    for name, gain in known[: charts.ROWS]:
        today, then = gain.today.row_groups.estimate, gain.with_filter.row_groups.estimate
        parts = (1 - today, max(today - then, 0.0), min(then, today))
        bar = tuple(zip((tone for tone, _ in _SKIPPED), parts, strict=True))
        rows.append((name, bar, f"{rate(parts[2])} read"))
        figures.append((Cell(name), *map(rate_cell, parts)))
    title = "Row groups that a lookup of an absent value skips"
    heads = (Head("column"), *(Head(text, figures=True) for _, text in _SKIPPED))
    yield chart(
        title,
        f"A bar for each of {plural(len(rows), 'column')}: the share of the row groups that a lookup skips "
        "today, that it skips in addition with the new filter, and that it reads in any case.",
        lambda svg: charts.bars(rows, charts.PERCENT, "share of the row groups", svg),
        legend=tuple(Key(tone, text) for tone, text in _SKIPPED),
        table=table(title, heads, figures, total=len(known)),
        note=_rest(len(rows), len(known)),
    )


def _read(columns: Sequence[ColumnAdvice], total: int) -> Chart:
    """The chart of the row groups that a lookup reads, for present and absent values, with intervals."""
    rows = []
    figures = []
    for column in columns:
        found = []
        cells = [Cell(column_name(column))]
        for gain, tone in ((column.present, "accent"), (column.absent, "second")):
            for read, hollow in ((gain and gain.today, True), (gain and gain.with_filter, False)):
                share = read.row_groups if read else None
                if share is not None:
                    found.append(Estimate(tone, share.estimate, share.low, share.high, hollow))
                text = "-" if share is None else f"{rate(share.estimate)} ({rate(share.low)} to {rate(share.high)})"
                cells.append(figure(text, share.estimate if share else None))
        rows.append((column_name(column), tuple(found)))
        figures.append(tuple(cells))
    heads = ("present, today", "present, with filter", "absent, today", "absent, with filter")
    title = "Row groups that a lookup reads, with intervals"
    return chart(
        title,
        f"For each of {plural(len(columns), 'column')} the share of the row groups that a lookup reads: of a value "
        "that the column has and of one that it doesn't have, today and with the new filter, with 95 % confidence "
        "intervals.",
        lambda svg: charts.estimates(rows, charts.PERCENT, "share of the row groups", svg),
        legend=_READ,
        table=table(title, (Head("column"), *(Head(text, figures=True) for text in heads)), figures, total=total),
        note="Lines are 95 % confidence intervals. " + _rest(len(columns), total),
    )


def _saved(measured: Sequence[ColumnAdvice]) -> Iterator[Part]:
    known = [(column, column.saved_bytes) for column in measured if column.saved_bytes is not None]
    if not known:
        return
    columns = known[: charts.ROWS]
    rows = [
        (column_name(column), (Estimate("accent", saved.estimate, saved.low, saved.high),))
        for column, saved in columns
    ]
    ticks = charts.signed_sizes(min(s.low for _, s in columns), max(s.high for _, s in columns))
    figures = [
        (Cell(column_name(column)), _size_cell(saved), Cell(_interval(saved)), _size_cell(column.filter_bytes))
        for column, saved in columns
    ]
    heads = (
        Head("column"),
        Head("saved", figures=True),
        Head("95 % interval"),
        Head("filter size of all row groups", figures=True),
    )
    title = "Bytes that a lookup reads less with the new filter"
    yield chart(
        title,
        f"For each of {plural(len(columns), 'column')} the bytes that one lookup saves, those of the filters "
        "deducted, with a 95 % confidence interval; left of the line at 0 it reads more.",
        lambda svg: charts.estimates(rows, ticks, "bytes saved by a lookup", svg, mark=0),
        table=table(title, heads, figures, total=len(known)),
        note="Lines are 95 % confidence intervals. " + _rest(len(columns), len(known)),
    )


def _sizes(columns: Sequence[ColumnAdvice], rule: str) -> Chart:
    """The chart of filter sizes at several rates, with the chosen rate."""
    panels = []
    figures = []
    for column in columns:
        points = sorted(((max(at.filter_bytes.estimate, 1.0), at.fpp) for at in column.rates), key=lambda p: -p[1])
        chosen = column.filter_bytes
        point = None if chosen is None or column.fpp is None else (max(chosen.estimate, 1.0), column.fpp)
        label = "" if point is None else f"{size(round(point[0]))} at {rate(point[1])}"
        panels.append(Curve(column_name(column), tuple(points), point if column.recommended else None, label))
        for at in column.rates:
            is_chosen = "yes" if column.recommended and at.fpp == column.fpp else "no"
            figures.append(
                (Cell(column_name(column)), rate_cell(at.fpp), _size_cell(at.filter_bytes), Cell(is_chosen))
            )
    sizes = [x for panel in panels for x, _ in panel.points]
    fpps = [y for panel in panels for _, y in panel.points]
    heads = (Head("column"), Head("FPP", figures=True), Head("filter size", figures=True), Head("chosen"))
    title = "Filter size by false-positive rate"
    return chart(
        title,
        f"A curve for each of {plural(len(columns), 'column')}: the bytes of the filters of all row groups at "
        "several false-positive rates, on logarithmic scales. A dot marks the recommended size.",
        lambda svg: charts.curves(
            panels,
            charts.log_sizes(min(sizes), max(sizes)),
            charts.rates(min(fpps), max(*fpps, min(fpps) * 10)),
            "filters of all row groups",
            svg,
        ),
        table=table(title, heads, figures),
        note=(
            "Sizes are tight: any number of blocks, which the named readers take. "
            if rule == TIGHT
            else "Sizes are powers of two for each row group, so that a lower rate can take no more bytes. "
        )
        + f"The chart shows at most {_PANELS} columns, the recommended ones first.",
    )


def _unserved(report: AdviseReport, limits: Limits) -> Table:
    found = report.queries.unserved if report.queries is not None else ()
    heads = (Head("kind"), Head("column"), Head("number", figures=True), Head("example"))
    rows = [
        (Cell(one.kind), Cell(one.column or "several"), figure(count(one.count), one.count), Cell(one.example))
        for one in found[: limits.rows]
    ]
    return table("Predicates that can't use a filter", heads, rows, total=len(found))


def _figures(columns: Sequence[ColumnAdvice], limits: Limits) -> Table:
    titles = (
        "rows",
        "nulls",
        "size",
        "distinct values",
        "distinct in a row group",
        "row groups with a value in range",
    )
    heads = (
        *(Head("column"), Head("recommended"), *(Head(title, figures=True) for title in titles)),
        *(Head("row groups in dictionaries", figures=True), Head("row groups sampled", figures=True)),
    )
    rows = [
        (
            Cell(column_name(column)),
            Cell("yes" if column.recommended else "no"),
            *(figure(count(n), n) for n in (column.rows, column.nulls)),
            figure("-" if column.column_bytes is None else size(column.column_bytes), column.column_bytes),
            *(_count_cell(found) for found in (column.distinct, column.distinct_per_row_group)),
            rate_cell(None if column.overlap is None else column.overlap.estimate),
            *(figure(count(n), n) for n in (column.dictionary_row_groups, column.sampled_row_groups)),
        )
        for column in columns[: limits.rows]
    ]
    return table("Figures of the columns", heads, rows, total=len(columns))


def _rest(shown: int, total: int) -> str:
    return f"The chart shows the first {shown} of {count(total)} columns." if total > shown else ""


def _size_cell(found: Interval | None) -> Cell:
    return figure("-" if found is None else size(round(found.estimate)), None if found is None else found.estimate)


def _count_cell(found: Interval | None) -> Cell:
    return figure(count(None if found is None else found.estimate), None if found is None else found.estimate)


def _interval(found: Interval | None) -> str:
    if found is None:
        return "-"
    low, high = size(round(found.low)), size(round(found.high))
    return "exact" if found.low == found.high else f"{low} to {high}"
