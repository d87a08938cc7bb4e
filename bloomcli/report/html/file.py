"""The page of `inspect` on one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Final

from bloomcli.model.file import ColumnSummary, EngineFilterFacts, FilterFacts
from bloomcli.model.inspect import InspectReport
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Place
from bloomcli.report.html.draw import chart
from bloomcli.report.html.parts import (
    Cell,
    Chart,
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
from bloomcli.report.human import count, rate, row_group_text, share, size, type_text, value_text
from bloomcli.words import exact_size, plural

_LEAST_RATE: Final = 1e-8
"""The lowest rate in charts; lower ones are drawn at this position."""
_PROBLEMS_SHOWN: Final = 20
_DETAILS_SHOWN: Final = 40

ByColumn = dict[str, list[FilterFacts]]


def page(report: InspectReport, limits: Limits) -> Page:
    """Return the page of a file: facts, maps, fill and rates, columns, filters."""
    filtered = {facts.column for facts in report.filters}
    by_column: ByColumn = {item.column: [] for item in report.by_column if item.column in filtered}
    for facts in report.filters:
        by_column.setdefault(facts.column, []).append(facts)
    sections = [Section("File", tuple(_file(report)))]
    if by_column:
        sections.append(Section("Map of the filters", tuple(_maps(report, by_column))))
        sections.append(Section("Fill and false-positive rate", tuple(_figures(by_column))))
    sections.append(Section("Columns", (_columns(report, limits),)))
    if by_column:
        sections.append(Section("Filters", tuple(_filters(report, limits))))
    if report.engine_filters:
        sections.append(Section("Filters that engines keep", (_engine_filters(report.engine_filters),)))
    return Page(report.path, "inspect", _lead(report, by_column), tuple(sections))


def _lead(report: InspectReport, by_column: ByColumn) -> Text:
    if not by_column:
        kept = f", besides {count(len(report.engine_filters))} that an engine keeps" if report.engine_filters else ""
        chosen = " of the chosen columns" if report.columns_without_filters else ""
        return Text(f"The file has no Bloom filters{chosen}{kept}.")
    text = f"{plural(len(report.filters), 'filter')} of {plural(len(by_column), 'column')}"
    if report.unreadable:
        return Text(f"{text}; {count(report.unreadable)} of them can't be read.", "bad")
    untrusted = sum(facts.untrusted is not None for facts in report.filters)
    if untrusted:
        return Text(f"{text}; readers must not use {count(untrusted)} of them.", "bad")
    return Text(f"{text}. All of them can be read.", "good")


def _file(report: InspectReport) -> Iterator[Part]:
    groups = plural(report.row_groups, "row group")
    if report.stripes is not None:
        groups += f" of {plural(report.stripes, 'stripe')}"
    items = [
        ("file", Cell(report.path)),
        ("format", Cell(report.format)),
        ("size", Cell(exact_size(report.file_bytes))),
        ("rows", Cell(f"{count(report.rows)} in {groups}")),
        ("columns", Cell(count(report.columns))),
        ("created by", Cell(report.created_by or "-")),
        *((name, Cell(text)) for name, text in report.details[:_DETAILS_SHOWN]),
    ]
    left = len(report.details) - _DETAILS_SHOWN
    if left > 0:
        items.append(("…", Cell(f"{plural(left, 'more detail')} in the JSON report")))
    bits = sum(facts.bitset_bytes or 0 for facts in report.filters)
    if report.filters:
        text = f"{count(len(report.filters))}, {size(bits)}"
        text += " of bits" if report.stripes is not None else f" ({share(bits, report.file_bytes)} of the file)"
        items.append(("filters", Cell(text)))
    yield Facts(tuple(items))
    problems = [(f, f.problem) for f in report.filters if f.problem is not None]
    for facts, problem in problems[:_PROBLEMS_SHOWN]:
        yield Text(f"{row_group_text(facts.stripe, facts.row_group)}, {facts.column}: {problem}", "bad")
    if len(problems) > _PROBLEMS_SHOWN:
        yield Text(f"… and {plural(len(problems) - _PROBLEMS_SHOWN, 'more unreadable filter')}.", "bad")
    for column, reason in dict.fromkeys((f.column, f.untrusted) for f in report.filters if f.untrusted):
        yield Text(f"{column}: {reason}", "bad")


def _maps(report: InspectReport, by_column: ByColumn) -> Iterator[Part]:
    yield _row_groups(report, by_column)
    ends = [(f, f.offset + (f.length or f.bitset_bytes or 0)) for f in report.filters if f.offset > 0]
    if report.file_bytes and ends:
        yield _offsets(report, by_column)


def _row_groups(report: InspectReport, by_column: ByColumn) -> Chart:
    """The map of row groups (in ORC: stripes) and columns."""
    in_stripes = report.stripes is not None
    word = "stripe" if in_stripes else "row group"
    places = max((report.stripes or 0) if in_stripes else report.row_groups, 1)
    ranges = charts.bins(places)
    known = [facts.bitset_bytes for facts in report.filters if facts.bitset_bytes]
    low, high = min(known, default=1), max(known, default=1)
    names = list(by_column)[: charts.ROWS]
    cells = [_cells(by_column[name], ranges, (low, high), in_stripes=in_stripes) for name in names]
    several = len(ranges) < places
    note = "Shades and figures are the mean size of a filter. "
    if several:
        note += f"Each cell shows about {count(places / len(ranges))} {word}s."
    if len(by_column) > len(names):
        note += f" The map shows the first {len(names)} of {count(len(by_column))} columns with filters."
    legend = [Key(f"q{number}", text) for number, text in charts.level_texts(low, high)]
    if several:
        legend.append(Key("half", f"cell in part filled: only that part of the {word}s has a filter"))
    legend += [Key("none", "no filter"), Key("cross", "can't be read, or readers must not use it")]
    description = (
        f"A map with a row for each of {plural(len(names), 'column')} and a cell for each {word}, or for several "
        f"of them. The darker a cell in the light scheme, and the lighter in the dark one, the larger the filter: "
        f"{size(low)} to {size(high)}."
    )
    return chart(
        f"Filters by {word} and column",
        description,
        lambda svg: charts.place_map(names, cells, charts.ordinals(ranges), word, svg),
        legend=tuple(legend),
        table=_map_table(by_column, names, word),
        note=note.strip(),
    )


def _cells(
    filters: Sequence[FilterFacts], ranges: Sequence[range], bounds: tuple[int, int], *, in_stripes: bool
) -> list[Place]:
    """The cells of a column."""
    length = ranges[-1][-1] + 1
    sums = [0] * length
    present = bytearray(length)
    broken = bytearray(length)
    filled = [0] * length
    for facts in filters:
        at = (facts.stripe or 0) if in_stripes else facts.row_group
        if not 0 <= at < length:
            continue
        present[at] = 1
        broken[at] |= facts.problem is not None or facts.untrusted is not None
        if facts.bitset_bytes:
            sums[at] += facts.bitset_bytes
            filled[at] += 1
    cells = []
    for places in ranges:
        part = slice(places[0], places[-1] + 1)
        number, filters_there = sum(present[part]), sum(filled[part])
        mean = sum(sums[part]) / filters_there if filters_there else 0
        cells.append(
            Place(
                number / len(places),
                charts.level(mean, *bounds) if mean else 1,
                size(round(mean)).replace(".0 ", " ") if mean else "",
                any(broken[part]),
            )
        )
    return cells


def _map_table(by_column: ByColumn, names: Sequence[str], word: str) -> Table:
    heads = (
        Head("column"),
        Head(f"{word}s with a filter", figures=True),
        Head("smallest filter", figures=True),
        Head("largest filter", figures=True),
        Head("unreadable", figures=True),
    )
    rows = []
    for name in names:
        found = by_column[name]
        bits = [facts.bitset_bytes for facts in found if facts.bitset_bytes is not None]
        groups = len({facts.stripe if facts.stripe is not None else facts.row_group for facts in found})
        unreadable = sum(facts.problem is not None for facts in found)
        rows.append(
            (
                Cell(name),
                figure(count(groups), groups),
                size_cell(min(bits, default=None)),
                size_cell(max(bits, default=None)),
                figure(count(unreadable), unreadable),
            )
        )
    return table(f"Filters by {word} and column", heads, rows, total=len(by_column))


def _offsets(report: InspectReport, by_column: ByColumn) -> Chart:
    """The chart of the filters' offsets in the file, by column."""
    names = list(by_column)[: charts.ROWS]
    rows = []
    figures = []
    for name in names:
        parts = [
            (f.offset, min(f.offset + (f.length or f.bitset_bytes or 1), report.file_bytes))
            for f in by_column[name]
            if 0 < f.offset < report.file_bytes
        ]
        rows.append((name, charts.shares(parts, report.file_bytes)))
        first, last = min((p[0] for p in parts), default=0), max((p[1] for p in parts), default=0)
        total = sum(end - start for start, end in parts)
        figures.append((Cell(name), figure(count(first), first), figure(count(last), last), size_cell(total)))
    heads = (
        Head("column"),
        Head("first byte of the first filter", figures=True),
        Head("end of the last filter", figures=True),
        Head("bytes with headers", figures=True),
    )
    title = "Filters by their place in the file"
    return chart(
        title,
        f"A band from byte 0 to byte {count(report.file_bytes)} for each of {plural(len(names), 'column')}; marks "
        "show where its filters are. The table below has the offsets.",
        lambda svg: charts.strip(rows, charts.sizes(report.file_bytes), "offset in the file", svg),
        table=table(title, heads, figures, total=len(by_column)),
        note="The height of a mark is the share of the bytes there that belong to filters of the column; "
        f"lower shares than {rate(charts.LEAST_SHARE)} have this height.",
    )


def _figures(by_column: ByColumn) -> Iterator[Part]:
    fills = {name: [f.fill for f in found if f.fill is not None] for name, found in by_column.items()}
    rates = {name: [f.fpp for f in found if f.fpp is not None] for name, found in by_column.items()}
    yield from spread_charts("Share of set bits (fill)", fills, logarithmic=False)
    yield from spread_charts("Measured false-positive rate", rates, logarithmic=True)


def spread_charts(
    title: str, figures: dict[str, list[float]], *, logarithmic: bool, what: str = "filters"
) -> Iterator[Part]:
    """Yield the chart of the ranges of figures by column; nothing without figures."""
    known = {name: values for name, values in figures.items() if values}
    if not known:
        return
    names = list(known)[: charts.ROWS]
    least = _LEAST_RATE if logarithmic else 0
    rows = [charts.spread(name, known[name], least) for name in names]
    low = min(row.low for row in rows)
    ticks = charts.rates(low, max(*(row.high for row in rows), low * 10)) if logarithmic else charts.PERCENT
    heads = (
        Head("column"),
        Head(what, figures=True),
        *(Head(text, figures=True) for text in ("least", "median", "greatest")),
    )
    exact = [charts.spread(name, known[name]) for name in names]
    cells = [
        (
            row.name,
            figure(count(len(known[row.name])), len(known[row.name])),
            rate_cell(row.low),
            rate_cell(row.median),
            rate_cell(row.high),
        )
        for row in exact
    ]
    lowest = (
        f" Rates below {rate(_LEAST_RATE)} are drawn there."
        if logarithmic and min(r.low for r in exact) < least
        else ""
    )
    left = (
        f" The chart shows the first {len(names)} of {count(len(known))} columns." if len(known) > len(names) else ""
    )
    yield chart(
        title,
        f"{title}, for each of {plural(len(names), 'column')}: a line from the least to the greatest, a bar between "
        "the quartiles, a dot at the median.",
        lambda svg: charts.ranges(rows, ticks, title.lower(), svg, logarithmic=logarithmic),
        table=table(title, heads, cells, total=len(known)),
        note=f"The dot is the median, the line goes from the least to the greatest.{lowest}{left}",
    )


def _columns(report: InspectReport, limits: Limits) -> Table:
    items: Sequence[ColumnSummary] = report.by_column
    heads = (
        Head("column"),
        Head("type"),
        Head("nulls", figures=True),
        Head("min"),
        Head("max"),
        Head("NDV", figures=True),
        Head("size", figures=True),
        Head("row groups with a filter", figures=True),
        Head("filter size", figures=True),
        Head("worst FPP", figures=True),
        Head("remarks"),
    )
    rows = []
    for item in items[: limits.rows]:
        with_filter = f"{count(item.row_groups_with_filter)} of {count(report.row_groups)}"
        remark = item.untrusted or (f"{plural(item.unreadable, 'unreadable filter')}" if item.unreadable else "")
        rows.append(
            (
                Cell(item.column),
                item.logical or item.physical,
                figure(count(item.nulls), item.nulls),
                "-" if item.min is None else value_text(item.min, exact=item.min_exact),
                "-" if item.max is None else value_text(item.max, exact=item.max_exact),
                figure(("~" if item.distinct_from == "filter" else "") + count(item.distinct), item.distinct),
                size_cell(item.compressed_bytes),
                figure(with_filter, item.row_groups_with_filter),
                size_cell(item.bitset_bytes or None),
                rate_cell(item.max_fpp),
                Cell(remark, tone="bad" if remark else ""),
            )
        )
    return table("Columns of the file", heads, rows, total=len(items))


def _filters(report: InspectReport, limits: Limits) -> Iterator[Part]:
    order = nlargest(
        limits.rows,
        enumerate(report.filters),
        key=lambda item: (item[1].problem is not None, item[1].bitset_bytes or 0, -item[0]),
    )
    stripes = report.stripes is not None
    heads = (
        Head("column"),
        *([Head("stripe", figures=True)] * stripes),
        Head("row group", figures=True),
        Head("type"),
        Head("offset", figures=True),
        Head("size", figures=True),
        Head("NDV, estimated", figures=True),
        Head("fill", figures=True),
        Head("FPP", figures=True),
        Head("problem"),
    )
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(facts.column),
            *([figure(str(facts.stripe), facts.stripe)] * stripes),
            figure(str(facts.row_group), facts.row_group),
            type_text(facts.physical, facts.logical),
            figure(str(facts.offset), facts.offset),
            size_cell(facts.bitset_bytes),
            figure(count(facts.ndv_estimate), facts.ndv_estimate),
            rate_cell(facts.fill),
            rate_cell(facts.fpp),
            Cell(facts.problem or facts.untrusted or "", tone="bad"),
        )
        for _, facts in sorted(order)
    ]
    broken = " (unreadable ones before others)" if report.unreadable else ""
    yield table(
        "Filters of the file",
        heads,
        rows,
        total=len(report.filters),
        chosen="largest filters" + broken,
        complete="--all --format csv",
    )


def _engine_filters(filters: Sequence[EngineFilterFacts]) -> Table:
    heads = (
        Head("column"),
        Head("kind"),
        Head("place"),
        Head("size", figures=True),
        Head("sized for", figures=True),
        Head("file's rows", figures=True),
        Head("NDV, estimated", figures=True),
        Head("fill", figures=True),
        Head("FPP", figures=True),
        Head("problem"),
    )
    rows = [
        (
            Cell(one.column),
            Cell(one.kind),
            Cell(one.place),
            size_cell(one.length),
            figure(count(one.sized_for), one.sized_for),
            figure(count(one.values), one.values),
            figure(count(one.ndv_estimate), one.ndv_estimate),
            rate_cell(one.fill),
            rate_cell(one.fpp),
            Cell(one.problem or "", tone="bad"),
        )
        for one in filters
    ]
    return table("Filters that engines keep themselves, for the whole file", heads, rows)


def size_cell(number: int | None) -> Cell:
    """Return a cell with a number of bytes."""
    return figure("-" if number is None else size(number), number)


def rate_cell(number: float | None) -> Cell:
    """Return a cell with a rate."""
    return figure(rate(number), number)
