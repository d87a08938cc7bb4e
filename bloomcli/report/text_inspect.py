"""Text reports of `inspect` and `dump`: the columns, filters, pages, indexes, schema and footer of a file.

Every figure comes from the report.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from bloomcli.model.file import (
    ColumnSummary,
    EngineFilterFacts,
    FilterFacts,
    IndexEntry,
    MergedFilter,
    PageFacts,
)
from bloomcli.model.inspect import FilterDump, FilterSummary, InspectReport
from bloomcli.model.schema import SchemaNode
from bloomcli.report.human import (
    CUT,
    VALUE_WIDTH,
    column_name,
    count,
    first_names,
    number,
    row_group_text,
    share,
    type_text,
    value_text,
)
from bloomcli.report.layout import (
    Block,
    Cell,
    Columns,
    Gap,
    Grid,
    Head,
    Line,
    Pairs,
    Style,
    as_cell,
    bar,
    figures,
    line,
    sparkline,
    traffic_pairs,
    traffic_text,
)
from bloomcli.words import exact_size, plural, rate, size

T = TypeVar("T", PageFacts, IndexEntry, MergedFilter)

_FILLS: Final = "fill"
_OF_LEVELS: Final = ("RLE", "BIT_PACKED")
"""Encodings of Parquet's levels. They are left out if the column has other encodings."""


def columns(report: InspectReport) -> Iterator[Block]:
    """Yield a row per column; below the table, the legend, and the problems of statistics and filters."""
    grid = Grid.of(report.by_column, of_columns(report), complete="--format json")
    _explain(report, grid)
    yield grid
    notes = list(_problems(report))
    if notes:
        yield Gap()
        yield from notes


def of_columns(report: InspectReport) -> Columns[ColumnSummary]:
    """What a table says of each column of a file."""
    filters = any(item.row_groups_with_filter for item in report.by_column)
    fills = _fills(report)

    def name(item: ColumnSummary) -> Cell:
        doubtful = item.untrusted is not None or item.unreadable
        return Cell(column_name(item), Style.BAD if doubtful else Style.PLAIN)

    def with_filter(item: ColumnSummary) -> Cell:
        groups = item.row_groups_with_filter
        text = f"{count(groups)} of {count(report.row_groups)}" if groups else "none"
        return Cell(text, Style.PLAIN if groups else Style.DIM, groups)

    return [
        (Head("column"), name),
        (Head("type", rank=1), lambda item: item.logical or item.physical),
        figures("nulls", lambda item: item.nulls, rank=6),
        (Head("min", rank=3, most=VALUE_WIDTH), lambda item: _bound(item.min, item.min_exact)),
        (Head("max", rank=3, most=VALUE_WIDTH), lambda item: _bound(item.max, item.max_exact)),
        (Head("NDV", figures=True, rank=5), _distinct),
        figures("dictionary", lambda item: item.dictionary_bytes, size, rank=9, optional=True),
        (Head("encodings", rank=10, optional=True), _encodings),
        figures("bucket", lambda item: item.bucket, rank=8, optional=True),
        figures("size", lambda item: item.compressed_bytes, size, rank=4, optional=True),
        (Head("filters", figures=True, shown=filters), with_filter),
        figures(
            "filter size",
            lambda item: item.bitset_bytes if item.row_groups_with_filter else None,
            size,
            rank=7,
            shown=filters,
        ),
        figures("worst FPP", lambda item: item.max_fpp, rate, rank=2, shown=filters),
        (Head(_FILLS, graphic=True, shown=bool(fills)), lambda item: sparkline(fills.get(item.column, ()))),
    ]


def _fills(report: InspectReport) -> dict[str, list[float]]:
    """The shares of set bits of each column's filters, in the order of the row groups; empty if no column has several
    filters. Columns with the same name are left out."""
    fills: dict[str, list[float]] = {}
    for facts in report.filters:
        if facts.fill is not None:
            fills.setdefault(facts.column, []).append(facts.fill)
    names = Counter(item.column for item in report.by_column)
    fills = {name: shares for name, shares in fills.items() if names[name] == 1}
    return fills if any(len(shares) > 1 for shares in fills.values()) else {}


def _bound(text: str | None, exact: bool | None = None) -> str:
    return "-" if text is None else value_text(text, exact=exact)


def _distinct(item: ColumnSummary) -> Cell:
    text = _estimate if item.distinct_from == "filter" else count
    return Cell(text(item.distinct), value=-1 if item.distinct is None else item.distinct)


def _estimate(ndv: float | None) -> str:
    return "-" if ndv is None else f"~{count(ndv)}"


def _encodings(item: ColumnSummary) -> str:
    of_values = [name for name in item.encodings if name not in _OF_LEVELS]
    return ", ".join(of_values or item.encodings) or "-"


def _problems(report: InspectReport) -> Iterator[Block]:
    for item in report.by_column:
        if item.no_bounds is not None:
            yield line(f"{item.column}: min/max not shown: {item.no_bounds}", Style.WARN)
    if report.summary:  # the table of the summary has the problems of filters
        return
    yield from untrusted(report)
    broken: dict[str, list[int]] = {}
    for index, facts in enumerate(report.filters):
        if facts.problem is not None:
            broken.setdefault(facts.column, []).append(index)
    for column, indexes in broken.items():
        first = report.filters[indexes[0]]
        where = f"{row_group_text(first.stripe, first.row_group)}, {column}: {first.problem}"
        more = f" (and {plural(len(indexes) - 1, 'more unreadable filter')} of the column)" if indexes[1:] else ""
        yield line(where + more, Style.BAD)


def untrusted(report: InspectReport) -> Iterator[Line]:
    """Yield the reasons for which readers must not use filters, each once."""
    for column, variant, reason in dict.fromkeys(
        (f.column, f.variant, f.untrusted) for f in report.filters if f.untrusted
    ):
        yield line(f"{column}: {variant + ', ' if variant else ''}{reason}", Style.BAD)


def _explain(report: InspectReport, grid: Grid) -> None:
    """Add the legend: the meaning of the marks in the table, and the options that show more."""
    if report.filters:
        grid.explain("filters", "filters: row groups with one.")
    if any(c.distinct is not None for c in report.by_column):
        unit = "stripe or row group" if report.stripes is not None else "row group"
        estimated = any(c.distinct_from == "filter" for c in report.by_column)
        grid.explain("NDV", f"NDV: of the {unit} with most{', ~ estimated from a filter' if estimated else ''}.")
    if any(head.graphic for head in grid.heads):
        grid.explain(_FILLS, f"{_FILLS}: shares of set bits by row group, the highest of several; █ is nearly all.")
    grid.explain(CUT, f"{CUT}: cut; --format json has the value as the file has it.")
    if any(item.bucket is not None for item in report.by_column):
        grid.explain("bucket", "Columns of a bucket are stored together; --pages shows the buckets.")
    if report.filters:
        number = len(report.filters)
        each = "the filter" if number == 1 else f"each of the {number:,} filters"
        grid.explain("", f"--all shows {each}.")


_DETAILS_SHOWN = 60
_DETAIL_WIDTH = 400
"""A file may have thousands of columns and row groups; the JSON report lists all of them."""
_PARTS = re.compile(r"(column|row group) \d+")
"""Matches details of columns and row groups, which the table of columns summarizes."""


def inspect(report: InspectReport, *, every: bool = False) -> Iterator[Block]:
    """Yield the file, then one row per column; if `every` is true, one row per filter.

    Below the table are the reasons for which statistics and filters can't be read or used.
    """
    summed_up = bool(report.by_column) and not every
    yield Pairs(tuple(file_facts(report, summed_up=summed_up)))
    yield Gap()
    if summed_up:
        yield from columns(report)
        if report.summary:
            yield Gap()
            yield from _summaries(report)
        text = _chosen_without(report) if report.filters or report.engine_filters else _without_filters(report)
        if text:
            yield Gap()
            yield line(text)
    elif report.filters:
        yield from _filters(report)
    elif not report.engine_filters:
        yield line(_without_filters(report))
    if report.engine_filters:
        if summed_up or report.filters:
            yield Gap()
        yield from _engine_filters(report.engine_filters)


ENGINE_FILTERS: Final[Columns[EngineFilterFacts]] = [
    (Head("column"), lambda item: Cell(item.column or "-", Style.PLAIN if item.problem is None else Style.BAD)),
    (Head("kind"), lambda item: item.kind),
    figures("size", lambda item: item.length, size),
    figures("bits", lambda item: item.bits, rank=6),
    figures("k", lambda item: item.hash_functions, rank=7),
    figures("rows of bits", lambda item: item.rows, rank=8),
    figures("sized for", lambda item: item.sized_for, rank=3),
    figures("file's rows", lambda item: item.values, rank=4),
    figures("NDV", lambda item: item.ndv_estimate, _estimate, rank=5),
    figures("fill", lambda item: item.fill, rate, rank=2),
    figures("FPP", lambda item: item.fpp, rate),
]
"""What a table says of each filter that an engine keeps."""


def _engine_filters(filters: Sequence[EngineFilterFacts]) -> Iterator[Block]:
    """Yield the filters that engines keep, then where each lies and what it doesn't tell in figures."""
    yield line("Filters that engines keep themselves, for the whole file:", Style.TITLE)
    yield Grid.of(filters, ENGINE_FILTERS)
    places: dict[str, Style] = {}
    for facts in filters:
        bounds = (
            ""
            if facts.low is None or facts.high is None
            else f"; values {value_text(facts.low)} to {value_text(facts.high)}"
        )
        places[f"{facts.kind}: {facts.place}{bounds}"] = Style.DIM
    for facts in filters:
        if facts.problem is not None:
            places[f"{facts.kind}{facts.column and ', '}{facts.column}: {facts.problem}"] = Style.BAD
    yield from map(line, places, places.values())


def _without_filters(report: InspectReport) -> str:
    adding = "" if report.unverified else " `bloom add FILE --columns NAME -o OUT` adds some."
    return (_chosen_without(report) or "No Bloom filters.") + adding


def _filters(report: InspectReport) -> Iterator[Block]:
    yield Grid.of(report.filters, of_filters(report.filters, with_header=len(_headers(report)) > 1))
    broken = [f for f in report.filters if f.problem is not None]
    doubtful = list(untrusted(report))
    if broken or doubtful:
        yield Gap()
        yield from doubtful
        for facts in broken:
            yield line(f"{row_group_text(facts.stripe, facts.row_group)}, {facts.column}: {facts.problem}", Style.BAD)
    if report.columns_without_filters:
        yield Gap()
        yield line(_chosen_without(report))


def _chosen_without(report: InspectReport) -> str:
    """List the chosen columns without filters and, if no chosen column has one, the columns with filters. Empty if
    all chosen columns have filters."""
    if not report.columns_without_filters:
        return ""
    text = f"No Bloom filters for {first_names(report.columns_without_filters)}"
    if report.filters:
        return text + "."
    others = report.other_columns_with_filters
    return text + (f"; columns with filters: {first_names(others)}." if others else " or any other column.")


def file_facts(report: InspectReport, *, summed_up: bool) -> Iterator[tuple[str, Cell]]:
    """Yield names and values of a file; if they are `summed_up` in a table, without those of columns and row
    groups."""
    headers = _headers(report)
    yield "file", Cell(report.path, Style.TITLE)
    yield "size", Cell(exact_size(report.file_bytes))
    groups = plural(report.row_groups, "row group")
    if report.stripes is not None:
        groups += f" of {plural(report.stripes, 'stripe')}"
    yield "rows", Cell(f"{count(report.rows)} in {groups}")
    yield "columns", Cell(count(report.columns))
    yield "created by", Cell(report.created_by or "-")
    details = [(name, value) for name, value in report.details if not (summed_up and _PARTS.fullmatch(name))]
    for name, value in details[:_DETAILS_SHOWN]:
        yield name, Cell(value if len(value) <= _DETAIL_WIDTH else value[: _DETAIL_WIDTH - 1] + "…")
    if len(details) > _DETAILS_SHOWN:
        yield "…", Cell(f"{count(len(details) - _DETAILS_SHOWN)} more lines in the JSON report")
    if report.filters:
        bits = sum(f.bitset_bytes or 0 for f in report.filters)  # without headers, as every size of a filter
        text = f"{count(len(report.filters))}, {size(bits)}"
        # ORC compresses filters, so the uncompressed size of many empty filters may exceed the file's
        ratio = f"({share(bits, report.file_bytes)} of the file)"
        text += f" {ratio}" if report.stripes is None else " of bits"
        if report.unreadable:
            text += f", {count(report.unreadable)} unreadable"
        yield "filters", Cell(text)
    else:
        kept = len(report.engine_filters)
        text = "none of the chosen columns" if report.columns_without_filters else "none"
        yield "filters", Cell(text + (f", besides {count(kept)} that an engine keeps" if kept else ""))
    if len(headers) == 1:
        yield "all filters", Cell(next(iter(headers)))
    yield from traffic_pairs(report)


def _summaries(report: InspectReport) -> Iterator[Block]:
    """Yield one row per column and encoding; below the table, the reasons for which readers can't or must not use
    filters."""

    def name(item: FilterSummary) -> Cell:
        doubtful = item.untrusted is not None or item.problem is not None
        return Cell(item.column, Style.BAD if doubtful else Style.PLAIN)

    columns: Columns[FilterSummary] = [
        (Head("column"), name),
        (Head("type", rank=4), lambda item: type_text(item.physical, item.logical)),
        (Head("encoding", rank=6), lambda item: item.encoding or "-"),
        (Head("filters", figures=True, rank=1), lambda item: count(item.filters)),
        (Head("filter size", figures=True), lambda item: size(item.bitset_bytes)),
        (Head("bits", figures=True, rank=7), lambda item: count(item.bits)),
        (Head("k", figures=True, rank=8), lambda item: count(item.hash_functions)),
        (Head("mean NDV", figures=True, rank=3), lambda item: _estimate(item.ndv_estimate)),
        (Head("mean fill", figures=True, rank=5), lambda item: rate(item.fill)),
        (Head("mean FPP", figures=True), lambda item: rate(item.fpp)),
        (Head("worst FPP", figures=True), lambda item: rate(item.max_fpp)),
        (Head("requested", figures=True, rank=2), lambda item: rate(item.asked_fpp)),
    ]
    yield Grid.of(report.summary, columns)
    for item in report.summary:
        if item.untrusted is not None:
            yield line(f"{item.column}: not trusted: {item.untrusted}", Style.BAD)
        if item.problem is not None:
            yield line(f"{item.column}: {plural(item.unreadable, 'stream')} unreadable: {item.problem}", Style.BAD)
    yield Gap()
    yield line("Means over each column's filters; --all shows each filter.", Style.DIM)


def _headers(report: InspectReport) -> set[str]:
    return {_header(f) for f in report.filters if f.problem is None}


def _header(facts: FilterFacts) -> str:
    functions = "" if facts.hash_functions is None else f" k={facts.hash_functions}"
    return f"{facts.algorithm or '?'}{functions}, {facts.hash or '?'}, {facts.compression or '?'}"


def of_filters(filters: Sequence[FilterFacts], *, with_header: bool) -> Columns[FilterFacts]:
    """What a table says of each filter."""
    stripes = any(f.stripe is not None for f in filters)

    def marked(facts: FilterFacts, text: str) -> Cell:
        return Cell(text, Style.PLAIN if facts.problem is None else Style.BAD)

    def bits_per_value(bits: float | None) -> str:
        return "-" if bits is None else f"{bits:.1f}" if bits < 1e6 else f"{bits:.1e}"

    return [
        figures("stripe", lambda f: f.stripe, number, shown=stripes),
        figures("row group", lambda f: f.row_group, number),
        (Head("column"), lambda f: marked(f, f.column)),
        (Head("type", rank=2), lambda f: type_text(f.physical, f.logical)),
        figures("offset", lambda f: f.offset, number, rank=6),
        figures("size", lambda f: f.bitset_bytes, size),
        figures("blocks", lambda f: f.blocks, rank=5, shown=not stripes),
        (
            Head("header", rank=7, shown=with_header),
            lambda f: marked(f, _header(f) if f.problem is None else "unreadable"),
        ),
        figures("NDV", lambda f: f.ndv_estimate, _estimate, rank=1),
        figures("fill", lambda f: f.fill, rate, rank=3),
        (Head("", graphic=True), lambda f: bar(f.fill)),
        figures("FPP", lambda f: f.fpp, rate),
        figures("bits/value", lambda f: f.bits_per_value, bits_per_value, rank=4),
    ]


def hex_dump(dump: FilterDump) -> Iterator[str]:
    """Yield the bitset as text: comment lines with ``#``, then one block per line, with its eight words in hex.

    The words are numbers (the last digit contains bit 0), not bytes in file order. A filter without blocks is written
    as longs, four per line.
    """
    facts = dump.facts
    location = row_group_text(facts.stripe, facts.row_group)
    yield f"# {Cell(dump.path).text}: {location}, {Cell(facts.column).text}, {_header(facts)}"
    traffic = traffic_text(dump)
    if traffic is not None:
        yield f"# object store: {traffic}"
    if facts.blocks is None:
        yield from _hex_longs(dump.bitset)
        return
    yield f"# header {dump.header.hex()}"
    blocks = len(dump.bitset) // 32
    yield f"# {plural(blocks, 'block')} from byte {facts.offset + len(dump.header)}: index, then words 0 to 7"
    digits = len(str(max(blocks - 1, 0)))
    words = memoryview(dump.bitset)
    for index in range(blocks):
        block = words[32 * index : 32 * index + 32]
        text = " ".join(block[4 * w : 4 * w + 4][::-1].hex() for w in range(8))
        yield f"{index:>{digits}}  {text}"


def _hex_longs(bitset: bytes) -> Iterator[str]:
    bits, longs = len(bitset) * 8, -(-len(bitset) // 8)
    bitset += bytes(8 * longs - len(bitset))
    yield f"# {plural(bits, 'bit')} in {plural(longs, 'long')}: index of the first, then four longs"
    digits = len(str(max(longs - 1, 0)))
    for index in range(0, longs, 4):
        row = bitset[8 * index : 8 * index + 32]
        text = " ".join(row[at : at + 8][::-1].hex() for at in range(0, len(row), 8))
        yield f"{index:>{digits}}  {text}"


def parts(report: InspectReport, *, with_pages: bool, with_indexes: bool, with_schema: bool) -> Iterator[Block]:
    """Yield the requested parts, one below the other."""
    if with_schema:
        yield from schema(report.schema_tree, "column id" if report.stripes is not None else "field id")
    if (with_pages or with_indexes) and report.by_column:
        if with_schema:
            yield Gap()
        (column,) = report.by_column
        yield Pairs(
            (
                ("file", Cell(report.path, Style.TITLE)),
                ("column", Cell(f"{column.column}, {type_text(column.physical, column.logical)}")),
            )
        )
    if with_pages:
        yield Gap()
        yield from pages(report.pages)
    if with_indexes:
        yield Gap()
        yield from index(report.index)
        yield from merged(report.merged_filters)


def pages(facts: Sequence[PageFacts]) -> Iterator[Block]:
    """Yield a row per page, stream or bucket."""
    if not facts:
        yield line("No pages.")
        return
    yield _grid(
        facts,
        [
            (Head("stripe", figures=True), lambda p: number(p.stripe)),
            (Head("row group", figures=True), lambda p: "-" if p.stripe is not None else str(p.row_group)),
            (Head("bucket", figures=True), lambda p: number(p.bucket)),
            (Head("kind"), lambda p: p.kind),
            (Head("offset", figures=True), lambda p: str(p.offset)),
            (Head("header", figures=True, rank=6), lambda p: size(p.header_bytes)),
            (Head("size", figures=True), lambda p: size(p.compressed_bytes)),
            (Head("unpacked", figures=True, rank=2), lambda p: size(p.uncompressed_bytes)),
            (Head("encoding", rank=1), lambda p: p.encoding or "-"),
            (Head("values", figures=True), lambda p: count(p.values)),
            (Head("nulls", figures=True, rank=5), lambda p: count(p.nulls)),
            (Head("rows", figures=True, rank=4), lambda p: count(p.rows)),
            (Head("CRC", rank=7), lambda p: p.crc or "-"),
        ],
    )
    yield from _page_problems(
        (row_group_text(p.stripe, p.row_group) + f", byte {p.offset}", p.problem) for p in facts
    )


def index(entries: Sequence[IndexEntry]) -> Iterator[Block]:
    """Yield a row per entry."""
    if not entries:
        yield line("No index.")
        return
    shown = [e for e in entries if e.problem is None or e.values is not None]
    if shown:
        yield _grid(
            shown,
            [
                (Head("stripe", figures=True), lambda e: number(e.stripe)),
                (Head("row group", figures=True), lambda e: str(e.row_group)),
                (Head("page", figures=True), lambda e: number(e.page)),
                (Head("offset", figures=True), lambda e: number(e.offset)),
                (Head("size with header", figures=True), lambda e: size(e.compressed_bytes)),
                (Head("first row", figures=True, rank=9), lambda e: count(e.first_row)),
                (Head("values", figures=True), lambda e: count(e.values)),
                (Head("nulls", figures=True, rank=5), _nulls),
                (Head("min", rank=3), lambda e: _bound(e.min)),
                (Head("max", rank=3), lambda e: _bound(e.max)),
                (Head("order", rank=8), lambda e: (e.boundary_order or "-").lower()),
                (Head("positions", rank=10), lambda e: " ".join(map(str, e.positions)) or "-"),
            ],
        )
    yield from _page_problems((row_group_text(e.stripe, e.row_group), e.problem) for e in entries)


def merged(filters: Sequence[MergedFilter]) -> Iterator[Block]:
    """Yield a row per stripe and kind of filter."""
    if not filters:
        return
    yield Gap()
    yield line("Filters of each stripe, joined:")
    yield _grid(
        filters,
        [
            (Head("stripe", figures=True), lambda m: str(m.stripe)),
            (Head("encoding", rank=1), lambda m: m.encoding),
            (Head("filters", figures=True), lambda m: count(m.filters)),
            (Head("k", figures=True), lambda m: count(m.hash_functions)),
            (Head("bits", figures=True), lambda m: count(m.bits)),
            (Head("set bits", figures=True), lambda m: count(m.set_bits)),
            (Head("fill", figures=True), lambda m: rate(m.fill)),
            (Head("FPP", figures=True), lambda m: rate(m.fpp)),
        ],
    )
    yield from _page_problems((f"stripe {m.stripe}, {m.encoding}", m.problem) for m in filters)


def schema(nodes: Sequence[SchemaNode], id_name: str) -> Iterator[Block]:
    """Yield a line per element, indented by its depth."""
    if not nodes:
        yield line("No schema.")
    for node in nodes:
        yield line(_declaration(node, id_name), indent=2 * node.depth)


def _declaration(node: SchemaNode, id_name: str) -> str:
    length = "" if node.length is None or node.type != "FIXED_LEN_BYTE_ARRAY" else f"({node.length})"
    parts = [node.repetition, node.type + length, node.name, f"({node.logical})" if node.logical else None]
    if node.id is not None:
        parts.append(f"({id_name} {node.id})")
    parts += [f"{name}={text}" for name, text in node.attributes]
    return " ".join(part for part in parts if part)


def footer(report: InspectReport) -> Iterator[str]:
    """Yield the footer as lines of JSON, ASCII only."""
    yield from json.dumps(report.footer, indent=2).splitlines()


def _grid(items: Sequence[T], columns: Columns[T]) -> Grid:
    """A grid of the columns that have a value in any row. Rows with a problem are marked."""

    def marked(text: Callable[[T], Cell | str]) -> Callable[[T], Cell]:
        return lambda item: Cell(as_cell(text(item)).text, Style.PLAIN if item.problem is None else Style.BAD)

    pairs = [(head._replace(optional=True), marked(text)) for head, text in columns]
    return Grid.of(items, pairs, legend=((CUT, f"{CUT}: cut; --format json has the value as the file has it."),))


def _page_problems(problems: Any) -> Iterator[Block]:
    lines = [line(f"{place}: {problem}", Style.BAD) for place, problem in problems if problem is not None]
    if lines:
        yield Gap()
        yield from lines


def _nulls(entry: IndexEntry) -> str:
    if entry.nulls is not None:
        return count(entry.nulls)
    if entry.only_nulls:
        return "all"
    return "-" if entry.has_nulls is None else "yes" if entry.has_nulls else "no"
