"""The page of `inspect` on one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Final

from bloomcli.model.file import ColumnSummary, FilterFacts
from bloomcli.model.inspect import InspectReport
from bloomcli.report.html import charts
from bloomcli.report.html.charts import Place
from bloomcli.report.html.parts import Chart, Key, Page, Part, Section, Table, first_columns, table
from bloomcli.report.human import count, row_group_text
from bloomcli.report.layout import Cell, Columns, Head, Line, Pairs, Style, figures, line
from bloomcli.report.text_inspect import ENGINE_FILTERS, file_facts, of_columns, of_filters, untrusted
from bloomcli.words import plural, rate, size

_LEAST_RATE: Final = 1e-8
"""The lowest rate in charts; lower ones are drawn at this position."""
_PROBLEMS_SHOWN: Final = 20

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
        columns = [
            *ENGINE_FILTERS,
            (Head("place"), lambda item: item.place),
            (Head("problem"), lambda item: Cell(item.problem or "", Style.BAD)),
        ]
        kept = table("Filters that engines keep themselves, for the whole file", report.engine_filters, columns)
        sections.append(Section("Filters that engines keep", (kept,)))
    return Page(report.path, "inspect", _lead(report, by_column), tuple(sections))


def _lead(report: InspectReport, by_column: ByColumn) -> Line:
    if not by_column:
        kept = f", besides {count(len(report.engine_filters))} that an engine keeps" if report.engine_filters else ""
        chosen = " of the chosen columns" if report.columns_without_filters else ""
        return line(f"The file has no Bloom filters{chosen}{kept}.")
    text = f"{plural(len(report.filters), 'filter')} of {plural(len(by_column), 'column')}"
    if report.unreadable:
        return line(f"{text}; {count(report.unreadable)} of them can't be read.", Style.BAD)
    untrusted = sum(facts.untrusted is not None for facts in report.filters)
    if untrusted:
        return line(f"{text}; readers must not use {count(untrusted)} of them.", Style.BAD)
    return line(f"{text}. All of them can be read.", Style.GOOD)


def _file(report: InspectReport) -> Iterator[Part]:
    yield Pairs(tuple(file_facts(report, summed_up=True)))
    problems = [(f, f.problem) for f in report.filters if f.problem is not None]
    for facts, problem in problems[:_PROBLEMS_SHOWN]:
        yield line(f"{row_group_text(facts.stripe, facts.row_group)}, {facts.column}: {problem}", Style.BAD)
    if len(problems) > _PROBLEMS_SHOWN:
        yield line(f"… and {plural(len(problems) - _PROBLEMS_SHOWN, 'more unreadable filter')}.", Style.BAD)
    yield from untrusted(report)


def _row_groups(report: InspectReport, by_column: ByColumn) -> Chart:
    """The map of row groups (in ORC: stripes) and columns."""
    in_stripes = report.stripes is not None
    word = "stripe" if in_stripes else "row group"
    places = max((report.stripes or 0) if in_stripes else report.row_groups, 1)
    ranges = charts.bins(places)
    sizes = [facts.bitset_bytes for facts in report.filters if facts.bitset_bytes]
    low, high = min(sizes, default=1), max(sizes, default=1)
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
    return Chart(
        f"Filters by {word} and column",
        description,
        charts.place_map(names, cells, charts.ordinals(ranges), word),
        legend=tuple(legend),
        table=_map_table(by_column, names, word),
        note=note,
    )


def _cells(
    filters: Sequence[FilterFacts], ranges: Sequence[range], bounds: tuple[int, int], *, in_stripes: bool
) -> list[Place]:
    """The cells of a column."""
    cell_of = [number for number, places in enumerate(ranges) for _ in places]
    groups: list[list[FilterFacts]] = [[] for _ in ranges]

    def at(facts: FilterFacts) -> int:
        return (facts.stripe or 0) if in_stripes else facts.row_group

    for facts in filters:
        if 0 <= at(facts) < len(cell_of):
            groups[cell_of[at(facts)]].append(facts)
    cells = []
    for places, group in zip(ranges, groups, strict=True):
        sizes = [facts.bitset_bytes for facts in group if facts.bitset_bytes]
        mean = sum(sizes) / len(sizes) if sizes else None
        broken = any(facts.problem is not None or facts.untrusted is not None for facts in group)
        cells.append(charts.place(len(set(map(at, group))) / len(places), mean, bounds, broken=broken))
    return cells


def _map_table(by_column: ByColumn, names: Sequence[str], word: str) -> Table:
    def sizes(name: str) -> list[int]:
        return [facts.bitset_bytes for facts in by_column[name] if facts.bitset_bytes is not None]

    def groups(name: str) -> int:
        return len({f.stripe if f.stripe is not None else f.row_group for f in by_column[name]})

    columns: Columns[str] = [
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
    columns: Columns[str] = [
        (Head("column"), str),
        figures("first byte of the first filter", lambda name: min((p[0] for p in places[name]), default=0)),
        figures("end of the last filter", lambda name: max((p[1] for p in places[name]), default=0)),
        figures("bytes with headers", lambda name: sum(end - start for start, end in places[name]), size),
    ]
    title = "Filters by their place in the file"
    return Chart(
        title,
        f"A band from byte 0 to byte {count(report.file_bytes)} for each of {plural(len(names), 'column')}; marks "
        "show where its filters are. The table below has the offsets.",
        charts.strip(rows, charts.sizes(report.file_bytes), "offset in the file"),
        table=table(title, names, columns, total=len(by_column)),
        note="The height of a mark is the share of the bytes there that belong to filters of the column; "
        f"lower shares than {rate(charts.LEAST_SHARE)} have this height.",
    )


def _figures(by_column: ByColumn) -> Iterator[Part]:
    fills = {name: [f.fill for f in filters if f.fill is not None] for name, filters in by_column.items()}
    rates = {name: [f.fpp for f in filters if f.fpp is not None] for name, filters in by_column.items()}
    yield from spread_charts("Share of set bits (fill)", fills, logarithmic=False)
    yield from spread_charts("Measured false-positive rate", rates, logarithmic=True)


def spread_charts(
    title: str, by_column: dict[str, list[float]], *, logarithmic: bool, what: str = "filters"
) -> Iterator[Part]:
    """Yield the chart of the ranges of figures that were found by column; nothing without figures."""
    series = {name: values for name, values in by_column.items() if values}
    if not series:
        return
    names = list(series)[: charts.ROWS]
    least = _LEAST_RATE if logarithmic else 0
    rows = [charts.spread(name, series[name], least) for name in names]
    low = min(row.low for row in rows)
    ticks = charts.rates(low, max(*(row.high for row in rows), low * 10)) if logarithmic else charts.PERCENT
    exact = [charts.spread(name, series[name]) for name in names]
    columns: Columns[charts.Range] = [
        (Head("column"), lambda row: row.name),
        figures(what, lambda row: len(series[row.name])),
        figures("least", lambda row: row.low, rate),
        figures("median", lambda row: row.median, rate),
        figures("greatest", lambda row: row.high, rate),
    ]
    lowest = (
        f" Rates below {rate(_LEAST_RATE)} are drawn there."
        if logarithmic and min(r.low for r in exact) < least
        else ""
    )
    left = first_columns(len(names), len(series))
    yield Chart(
        title,
        f"{title}, for each of {plural(len(names), 'column')}: a line from the least to the greatest, a bar between "
        "the quartiles, a dot at the median.",
        charts.ranges(rows, ticks, title.lower(), logarithmic=logarithmic),
        table=table(title, exact, columns, total=len(series)),
        note=f"The dot is the median, the line goes from the least to the greatest.{lowest} {left}",
    )


def _columns(report: InspectReport, most: int) -> Table:
    def remark(item: ColumnSummary) -> Cell:
        text = item.untrusted or (plural(item.unreadable, "unreadable filter") if item.unreadable else "")
        return Cell(text, Style.BAD)

    return table("Columns of the file", report.by_column, [*of_columns(report), (Head("remarks"), remark)], most=most)


def _filters(report: InspectReport, most: int) -> Table:
    order = nlargest(
        most,
        enumerate(report.filters),
        key=lambda item: (item[1].problem is not None, item[1].bitset_bytes or 0, -item[0]),
    )
    problem: Columns[FilterFacts] = [(Head("problem"), lambda f: Cell(f.problem or f.untrusted or "", Style.BAD))]
    broken = " (unreadable ones before others)" if report.unreadable else ""
    return table(
        "Filters of the file",
        [facts for _, facts in sorted(order)],
        [*of_filters(report.filters, with_header=True), *problem],
        total=len(report.filters),
        chosen="largest filters" + broken,
        complete="--all --format csv",
    )
