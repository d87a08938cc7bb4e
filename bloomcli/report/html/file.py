"""The page of `inspect` on one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Final

from bloomcli.model.file import ColumnSummary, EngineFilterFacts, FilterFacts
from bloomcli.model.inspect import InspectReport
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Place
from bloomcli.report.html.parts import (
    Cell,
    Chart,
    Column,
    Facts,
    Key,
    Page,
    Part,
    Section,
    Table,
    Text,
    figure,
    figures,
    first_columns,
    table,
)
from bloomcli.report.human import count, rate, row_group_text, share, size, type_text, value_text
from bloomcli.report.layout import Head
from bloomcli.words import exact_size, plural

_LEAST_RATE: Final = 1e-8
"""The lowest rate in charts; lower ones are drawn at this position."""
_PROBLEMS_SHOWN: Final = 20
_DETAILS_SHOWN: Final = 40

ByColumn = dict[str, list[FilterFacts]]


def page(report: InspectReport, most: int) -> Page:
    """Return the page of a file: facts, maps, fill and rates, columns, filters."""
    filtered = {facts.column for facts in report.filters}
    by_column: ByColumn = {item.column: [] for item in report.by_column if item.column in filtered}
    for facts in report.filters:
        by_column.setdefault(facts.column, []).append(facts)
    sections = [Section("File", tuple(_file(report)))]
    if by_column:
        maps = [_row_groups(report, by_column)]
        if report.file_bytes and any(facts.offset > 0 for facts in report.filters):
            maps.append(_offsets(report, by_column))
        sections.append(Section("Map of the filters", tuple(maps)))
        sections.append(Section("Fill and false-positive rate", tuple(_figures(by_column))))
    sections.append(Section("Columns", (_columns(report, most),)))
    if by_column:
        sections.append(Section("Filters", (_filters(report, most),)))
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
    return charts.chart(
        f"Filters by {word} and column",
        description,
        lambda svg: charts.place_map(names, cells, charts.ordinals(ranges), word, svg),
        legend=tuple(legend),
        table=_map_table(by_column, names, word),
        note=note,
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
    def sizes(name: str) -> list[int]:
        return [facts.bitset_bytes for facts in by_column[name] if facts.bitset_bytes is not None]

    def groups(name: str) -> int:
        return len({f.stripe if f.stripe is not None else f.row_group for f in by_column[name]})

    columns: list[Column[str]] = [
        (Head("column"), str),
        figures(f"{word}s with a filter", groups),
        figures("smallest filter", lambda name: min(sizes(name), default=None), size),
        figures("largest filter", lambda name: max(sizes(name), default=None), size),
        figures("unreadable", lambda name: sum(f.problem is not None for f in by_column[name])),
    ]
    return table(f"Filters by {word} and column", names, columns, total=len(by_column))


def _offsets(report: InspectReport, by_column: ByColumn) -> Chart:
    """The chart of the filters' offsets in the file, by column."""
    names = list(by_column)[: charts.ROWS]
    places = {
        name: [
            (f.offset, min(f.offset + (f.length or f.bitset_bytes or 1), report.file_bytes))
            for f in by_column[name]
            if 0 < f.offset < report.file_bytes
        ]
        for name in names
    }
    rows = [(name, charts.shares(parts, report.file_bytes)) for name, parts in places.items()]
    columns: list[Column[str]] = [
        (Head("column"), str),
        figures("first byte of the first filter", lambda name: min((p[0] for p in places[name]), default=0)),
        figures("end of the last filter", lambda name: max((p[1] for p in places[name]), default=0)),
        figures("bytes with headers", lambda name: sum(end - start for start, end in places[name]), size),
    ]
    title = "Filters by their place in the file"
    return charts.chart(
        title,
        f"A band from byte 0 to byte {count(report.file_bytes)} for each of {plural(len(names), 'column')}; marks "
        "show where its filters are. The table below has the offsets.",
        lambda svg: charts.strip(rows, charts.sizes(report.file_bytes), "offset in the file", svg),
        table=table(title, names, columns, total=len(by_column)),
        note="The height of a mark is the share of the bytes there that belong to filters of the column; "
        f"lower shares than {rate(charts.LEAST_SHARE)} have this height.",
    )


def _figures(by_column: ByColumn) -> Iterator[Part]:
    fills = {name: [f.fill for f in found if f.fill is not None] for name, found in by_column.items()}
    rates = {name: [f.fpp for f in found if f.fpp is not None] for name, found in by_column.items()}
    yield from spread_charts("Share of set bits (fill)", fills, logarithmic=False)
    yield from spread_charts("Measured false-positive rate", rates, logarithmic=True)


def spread_charts(
    title: str, found: dict[str, list[float]], *, logarithmic: bool, what: str = "filters"
) -> Iterator[Part]:
    """Yield the chart of the ranges of figures that were found by column; nothing without figures."""
    known = {name: values for name, values in found.items() if values}
    if not known:
        return
    names = list(known)[: charts.ROWS]
    least = _LEAST_RATE if logarithmic else 0
    rows = [charts.spread(name, known[name], least) for name in names]
    low = min(row.low for row in rows)
    ticks = charts.rates(low, max(*(row.high for row in rows), low * 10)) if logarithmic else charts.PERCENT
    exact = [charts.spread(name, known[name]) for name in names]
    columns: list[Column[charts.Range]] = [
        (Head("column"), lambda row: row.name),
        figures(what, lambda row: len(known[row.name])),
        figures("least", lambda row: row.low, rate),
        figures("median", lambda row: row.median, rate),
        figures("greatest", lambda row: row.high, rate),
    ]
    lowest = (
        f" Rates below {rate(_LEAST_RATE)} are drawn there."
        if logarithmic and min(r.low for r in exact) < least
        else ""
    )
    left = first_columns(len(names), len(known))
    yield charts.chart(
        title,
        f"{title}, for each of {plural(len(names), 'column')}: a line from the least to the greatest, a bar between "
        "the quartiles, a dot at the median.",
        lambda svg: charts.ranges(rows, ticks, title.lower(), svg, logarithmic=logarithmic),
        table=table(title, exact, columns, total=len(known)),
        note=f"The dot is the median, the line goes from the least to the greatest.{lowest} {left}",
    )


def _columns(report: InspectReport, most: int) -> Table:
    def ndv(item: ColumnSummary) -> Cell:
        return figure(("~" if item.distinct_from == "filter" else "") + count(item.distinct), item.distinct)

    def with_filter(item: ColumnSummary) -> Cell:
        found = item.row_groups_with_filter
        return figure(f"{count(found)} of {count(report.row_groups)}", found)

    def remark(item: ColumnSummary) -> Cell:
        text = item.untrusted or (plural(item.unreadable, "unreadable filter") if item.unreadable else "")
        return Cell(text, tone="bad" if text else "")

    columns: list[Column[ColumnSummary]] = [
        (Head("column"), lambda item: item.column),
        (Head("type"), lambda item: item.logical or item.physical),
        figures("nulls", lambda item: item.nulls),
        (Head("min"), lambda item: "-" if item.min is None else value_text(item.min, exact=item.min_exact)),
        (Head("max"), lambda item: "-" if item.max is None else value_text(item.max, exact=item.max_exact)),
        (Head("NDV", figures=True), ndv),
        figures("size", lambda item: item.compressed_bytes, size),
        (Head("row groups with a filter", figures=True), with_filter),
        figures("filter size", lambda item: item.bitset_bytes or None, size),
        figures("worst FPP", lambda item: item.max_fpp, rate),
        (Head("remarks"), remark),
    ]
    return table("Columns of the file", report.by_column, columns, most=most)


def _filters(report: InspectReport, most: int) -> Table:
    order = nlargest(
        most,
        enumerate(report.filters),
        key=lambda item: (item[1].problem is not None, item[1].bitset_bytes or 0, -item[0]),
    )
    columns: list[Column[FilterFacts]] = [
        (Head("column"), lambda f: f.column),
        (Head("stripe", figures=True, shown=report.stripes is not None), lambda f: figure(str(f.stripe), f.stripe)),
        (Head("row group", figures=True), lambda f: figure(str(f.row_group), f.row_group)),
        (Head("type"), lambda f: type_text(f.physical, f.logical)),
        (Head("offset", figures=True), lambda f: figure(str(f.offset), f.offset)),
        figures("size", lambda f: f.bitset_bytes, size),
        figures("NDV, estimated", lambda f: f.ndv_estimate),
        figures("fill", lambda f: f.fill, rate),
        figures("FPP", lambda f: f.fpp, rate),
        (Head("problem"), lambda f: Cell(f.problem or f.untrusted or "", tone="bad")),
    ]
    broken = " (unreadable ones before others)" if report.unreadable else ""
    return table(
        "Filters of the file",
        [facts for _, facts in sorted(order)],
        columns,
        total=len(report.filters),
        chosen="largest filters" + broken,
        complete="--all --format csv",
    )


def _engine_filters(filters: Sequence[EngineFilterFacts]) -> Table:
    columns: list[Column[EngineFilterFacts]] = [
        (Head("column"), lambda one: one.column),
        (Head("kind"), lambda one: one.kind),
        (Head("place"), lambda one: one.place),
        figures("size", lambda one: one.length, size),
        figures("sized for", lambda one: one.sized_for),
        figures("file's rows", lambda one: one.values),
        figures("NDV, estimated", lambda one: one.ndv_estimate),
        figures("fill", lambda one: one.fill, rate),
        figures("FPP", lambda one: one.fpp, rate),
        (Head("problem"), lambda one: Cell(one.problem or "", tone="bad")),
    ]
    return table("Filters that engines keep themselves, for the whole file", filters, columns)
