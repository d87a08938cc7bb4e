"""Text reports of `inspect` and `dump`: the columns, filters, pages, indexes, schema and footer of a file.

Every figure comes from the report.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bloomcli.model.file import (
    ColumnSummary,
    EngineFilterFacts,
    FilterFacts,
    IndexEntry,
    MergedFilter,
    PageFacts,
)
from bloomcli.report.human import (
    CUT,
    VALUE_WIDTH,
    column_name,
    count,
    first_names,
    rate,
    row_group_text,
    share,
    size,
    type_text,
    value_text,
)
from bloomcli.report.layout import (
    Block,
    Cell,
    Gap,
    Grid,
    Head,
    Pairs,
    Style,
    bar,
    line,
    sparkline,
    traffic_pairs,
    traffic_text,
)
from bloomcli.words import exact_size, plural

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump, InspectReport
    from bloomcli.model.schema import SchemaNode


_FILLS: Final = "fill"
_OF_LEVELS: Final = ("RLE", "BIT_PACKED")
"""Encodings of Parquet's levels. They are left out if the column has other encodings."""


def columns(report: InspectReport) -> Iterator[Block]:
    """Yield a row per column; below the table, the legend, and the problems of statistics and filters."""
    items = report.by_column
    encodings, sizes, buckets, dictionaries = (
        any(getattr(item, name) not in (None, ()) for item in items)
        for name in ("encodings", "compressed_bytes", "bucket", "dictionary_bytes")
    )
    filters = any(item.row_groups_with_filter for item in items)
    fills = _fills(report)
    grid = Grid(
        (
            Head("column"),
            Head("type", rank=1),
            Head("nulls", figures=True, rank=6),
            Head("min", rank=3, most=VALUE_WIDTH),
            Head("max", rank=3, most=VALUE_WIDTH),
            Head("NDV", figures=True, rank=5),
            *([Head("dictionary", figures=True, rank=9)] * dictionaries),
            *([Head("encodings", rank=10)] * encodings),
            *([Head("bucket", figures=True, rank=8)] * buckets),
            *([Head("size", figures=True, rank=4)] * sizes),
            *([Head("filters", figures=True), Head("filter size", figures=True, rank=7)] * filters),
            *([Head("worst FPP", figures=True, rank=2)] * filters),
            *([Head(_FILLS, graphic=True)] * bool(fills)),
        ),
        complete="--format json",
    )
    for item in items:
        with_filter = f"{count(item.row_groups_with_filter)} of {count(report.row_groups)}"
        grid.add(
            Cell(
                column_name(item),
                Style.BAD if item.untrusted is not None or item.unreadable else Style.PLAIN,
            ),
            item.logical or item.physical,
            count(item.nulls),
            _bound(item.min, item.min_exact),
            _bound(item.max, item.max_exact),
            _distinct(item),
            *([_size(item.dictionary_bytes)] * dictionaries),
            *([_encodings(item)] * encodings),
            *([count(item.bucket)] * buckets),
            *([_size(item.compressed_bytes)] * sizes),
            *([with_filter if item.row_groups_with_filter else Cell("none", Style.DIM)] * filters),
            *([size(item.bitset_bytes) if item.row_groups_with_filter else "-"] * filters),
            *([rate(item.max_fpp)] * filters),
            *([sparkline(fills.get(item.column, ()))] * bool(fills)),
        )
    _explain(report, grid)
    yield grid
    notes = list(_problems(report))
    if notes:
        yield Gap()
        yield from notes


def _fills(report: InspectReport) -> dict[str, list[float]]:
    """The shares of set bits of each column's filters, in the order of the row groups; empty if no column has several
    filters. Columns with the same name are left out."""
    fills: dict[str, list[float]] = {}
    for facts in report.filters:
        if facts.fill is not None:
            fills.setdefault(facts.column, []).append(facts.fill)
    names = Counter(item.column for item in report.by_column)
    fills = {name: found for name, found in fills.items() if names[name] == 1}
    return fills if any(len(found) > 1 for found in fills.values()) else {}


def _bound(text: str | None, exact: bool | None) -> str:
    return "-" if text is None else value_text(text, exact=exact)


def _distinct(item: ColumnSummary) -> str:
    return ("~" if item.distinct_from == "filter" else "") + count(item.distinct)


def _size(number: int | None) -> str:
    return "-" if number is None else size(number)


def _encodings(item: ColumnSummary) -> str:
    of_values = [name for name in item.encodings if name not in _OF_LEVELS]
    return ", ".join(of_values or item.encodings) or "-"


def _problems(report: InspectReport) -> Iterator[Block]:
    for item in report.by_column:
        if item.no_bounds is not None:
            yield line(f"{item.column}: min/max not shown: {item.no_bounds}", Style.WARN)
    if report.summary:  # the table of the summary has the problems of filters
        return
    for column, variant, reason in dict.fromkeys(
        (f.column, f.variant, f.untrusted) for f in report.filters if f.untrusted
    ):
        yield line(f"{column}: {variant + ', ' if variant else ''}{reason}", Style.BAD)
    broken: dict[str, list[int]] = {}
    for index, facts in enumerate(report.filters):
        if facts.problem is not None:
            broken.setdefault(facts.column, []).append(index)
    for column, indexes in broken.items():
        first = report.filters[indexes[0]]
        where = f"{row_group_text(first.stripe, first.row_group)}, {column}: {first.problem}"
        more = f" (and {plural(len(indexes) - 1, 'more unreadable filter')} of the column)" if indexes[1:] else ""
        yield line(where + more, Style.BAD)


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
        grid.explain("", f"--all shows {_each(len(report.filters))}.")


def _each(number: int) -> str:
    return "the filter" if number == 1 else f"each of the {number:,} filters"


_DETAILS_SHOWN = 60
_DETAIL_WIDTH = 400
"""A file may have thousands of columns and row groups; the JSON report lists all of them."""
_PARTS = re.compile(r"(column|row group) \d+")
"""Matches details of columns and row groups, which the table of columns summarizes."""


def inspect(report: InspectReport, *, every: bool = False) -> Iterator[Block]:
    """Yield the file, then one row per column; if `every` is true, one row per filter.

    Below the table are the reasons for which statistics and filters can't be read or used.
    """
    headers = {_header(f) for f in report.filters if f.problem is None}
    summed_up = bool(report.by_column) and not every
    yield Pairs(tuple(_file_facts(report, headers, summed_up=summed_up)))
    yield Gap()
    if summed_up:
        yield from columns(report)
        if report.summary:
            yield Gap()
            yield from _summaries(report)
        yield from _closing(report)
    elif report.filters:
        yield from _filters(report, headers)
    elif not report.engine_filters:
        yield line(_without_filters(report))
    if report.engine_filters:
        if summed_up or report.filters:
            yield Gap()
        yield from _engine_filters(report.engine_filters)


def _engine_filters(filters: Sequence[EngineFilterFacts]) -> Iterator[Block]:
    """Yield the filters that engines keep, then where each lies and what it doesn't tell in figures."""
    yield line("Filters that engines keep themselves, for the whole file:", Style.TITLE)
    grid = Grid(
        (
            Head("column"),
            Head("kind"),
            Head("size", figures=True),
            Head("bits", figures=True, rank=6),
            Head("k", figures=True, rank=7),
            Head("rows of bits", figures=True, rank=8),
            Head("sized for", figures=True, rank=3),
            Head("file's rows", figures=True, rank=4),
            Head("NDV", figures=True, rank=5),
            Head("fill", figures=True, rank=2),
            Head("FPP", figures=True),
        )
    )
    for one in filters:
        grid.add(
            Cell(one.column or "-", Style.PLAIN if one.problem is None else Style.BAD),
            one.kind,
            _size(one.length),
            count(one.bits),
            count(one.hash_functions),
            count(one.rows),
            count(one.sized_for),
            count(one.values),
            "-" if one.ndv_estimate is None else "~" + count(one.ndv_estimate),
            rate(one.fill),
            rate(one.fpp),
        )
    yield grid
    places: dict[str, Style] = {}
    for one in filters:
        bounds = (
            "" if one.low is None or one.high is None else f"; values {value_text(one.low)} to {value_text(one.high)}"
        )
        places[f"{one.kind}: {one.place}{bounds}"] = Style.DIM
    for one in filters:
        if one.problem is not None:
            places[f"{one.kind}{one.column and ', '}{one.column}: {one.problem}"] = Style.BAD
    yield from map(line, places, places.values())


def _without_filters(report: InspectReport) -> str:
    adding = "" if report.unverified else " `bloom add FILE --columns NAME -o OUT` adds some."
    return (_chosen_without(report) or "No Bloom filters.") + adding


def _closing(report: InspectReport) -> Iterator[Block]:
    text = _chosen_without(report) if report.filters or report.engine_filters else _without_filters(report)
    if text:
        yield Gap()
        yield line(text)


def _filters(report: InspectReport, headers: set[str]) -> Iterator[Block]:
    yield _filter_grid(report.filters, with_header=len(headers) > 1)
    broken = [f for f in report.filters if f.problem is not None]
    doubtful = dict.fromkeys((f.column, f.variant, f.untrusted) for f in report.filters if f.untrusted)
    if broken or doubtful:
        yield Gap()
        for column, variant, reason in doubtful:
            yield line(f"{column}: {variant + ', ' if variant else ''}{reason}", Style.BAD)
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


def _file_facts(report: InspectReport, headers: set[str], *, summed_up: bool) -> Iterator[tuple[str, Cell]]:
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
    grid = Grid(
        (
            Head("column"),
            Head("type", rank=4),
            Head("encoding", rank=6),
            Head("filters", figures=True, rank=1),
            Head("filter size", figures=True),
            Head("bits", figures=True, rank=7),
            Head("k", figures=True, rank=8),
            Head("mean NDV", figures=True, rank=3),
            Head("mean fill", figures=True, rank=5),
            Head("mean FPP", figures=True),
            Head("worst FPP", figures=True),
            Head("requested", figures=True, rank=2),
        )
    )
    for item in report.summary:
        doubtful = item.untrusted is not None or item.problem is not None
        grid.add(
            Cell(item.column, Style.BAD if doubtful else Style.PLAIN),
            type_text(item.physical, item.logical),
            item.encoding or "-",
            count(item.filters),
            size(item.bitset_bytes),
            count(item.bits),
            count(item.hash_functions),
            "-" if item.ndv_estimate is None else "~" + count(item.ndv_estimate),
            rate(item.fill),
            rate(item.fpp),
            rate(item.max_fpp),
            rate(item.asked_fpp),
        )
    yield grid
    for item in report.summary:
        if item.untrusted is not None:
            yield line(f"{item.column}: not trusted: {item.untrusted}", Style.BAD)
        if item.problem is not None:
            yield line(f"{item.column}: {plural(item.unreadable, 'stream')} unreadable: {item.problem}", Style.BAD)
    yield Gap()
    yield line("Means over each column's filters; --all shows each filter.", Style.DIM)


def _header(facts: FilterFacts) -> str:
    functions = "" if facts.hash_functions is None else f" k={facts.hash_functions}"
    return f"{facts.algorithm or '?'}{functions}, {facts.hash or '?'}, {facts.compression or '?'}"


def _filter_grid(filters: Iterable[FilterFacts], *, with_header: bool) -> Grid:
    filters = tuple(filters)
    stripes = any(f.stripe is not None for f in filters)
    grid = Grid(
        (
            *([Head("stripe", figures=True)] if stripes else []),
            Head("row group", figures=True),
            Head("column"),
            Head("type", rank=2),
            Head("offset", figures=True, rank=6),
            Head("size", figures=True),
            *([] if stripes else [Head("blocks", figures=True, rank=5)]),
            *([Head("header", rank=7)] if with_header else []),
            Head("NDV", figures=True, rank=1),
            Head("fill", figures=True, rank=3),
            Head("", graphic=True),
            Head("FPP", figures=True),
            Head("bits/value", figures=True, rank=4),
        )
    )
    for facts in filters:
        bits = facts.bits_per_value
        if facts.problem is None:
            header = Cell(_header(facts))
            column = Cell(facts.column)
        else:
            header = Cell("unreadable", Style.BAD)
            column = Cell(facts.column, Style.BAD)
        grid.add(
            *([str(facts.stripe)] if stripes else []),
            str(facts.row_group),
            column,
            type_text(facts.physical, facts.logical),
            str(facts.offset),
            "-" if facts.bitset_bytes is None else size(facts.bitset_bytes),
            *([] if stripes else [count(facts.blocks)]),
            *([header] if with_header else []),
            "-" if facts.ndv_estimate is None else "~" + count(facts.ndv_estimate),
            rate(facts.fill),
            bar(facts.fill),
            rate(facts.fpp),
            "-" if bits is None else f"{bits:.1f}" if bits < 1e6 else f"{bits:.1e}",
        )
    return grid


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


_LEFT_OUT = (
    ("encoding",),
    ("unpacked",),
    ("min", "max"),
    ("rows",),
    ("nulls",),
    ("header",),
    ("CRC",),
    ("order",),
    ("first row",),
    ("positions",),
)
"""Columns that narrow terminals leave out, the last ones first."""


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


def pages(found: Sequence[PageFacts]) -> Iterator[Block]:
    """Yield a row per page, stream or bucket."""
    if not found:
        yield line("No pages.")
        return
    yield _grid(
        found,
        (
            ("stripe", True, lambda p: _number(p.stripe)),
            ("row group", True, lambda p: "-" if p.stripe is not None else str(p.row_group)),
            ("bucket", True, lambda p: _number(p.bucket)),
            ("kind", False, lambda p: p.kind),
            ("offset", True, lambda p: str(p.offset)),
            ("header", True, lambda p: _bytes(p.header_bytes)),
            ("size", True, lambda p: _bytes(p.compressed_bytes)),
            ("unpacked", True, lambda p: _bytes(p.uncompressed_bytes)),
            ("encoding", False, lambda p: p.encoding or "-"),
            ("values", True, lambda p: count(p.values)),
            ("nulls", True, lambda p: count(p.nulls)),
            ("rows", True, lambda p: count(p.rows)),
            ("CRC", False, lambda p: p.crc or "-"),
        ),
    )
    yield from _page_problems((_place(p.stripe, p.row_group) + f", byte {p.offset}", p.problem) for p in found)


def index(found: Sequence[IndexEntry]) -> Iterator[Block]:
    """Yield a row per entry."""
    if not found:
        yield line("No index.")
        return
    shown = [e for e in found if e.problem is None or e.values is not None]
    if shown:
        yield _grid(
            shown,
            (
                ("stripe", True, lambda e: _number(e.stripe)),
                ("row group", True, lambda e: str(e.row_group)),
                ("page", True, lambda e: _number(e.page)),
                ("offset", True, lambda e: _number(e.offset)),
                ("size with header", True, lambda e: _bytes(e.compressed_bytes)),
                ("first row", True, lambda e: count(e.first_row)),
                ("values", True, lambda e: count(e.values)),
                ("nulls", True, _nulls),
                ("min", False, lambda e: "-" if e.min is None else value_text(e.min)),
                ("max", False, lambda e: "-" if e.max is None else value_text(e.max)),
                ("order", False, lambda e: (e.boundary_order or "-").lower()),
                ("positions", False, lambda e: " ".join(map(str, e.positions)) or "-"),
            ),
        )
    yield from _page_problems((_place(e.stripe, e.row_group), e.problem) for e in found)


def merged(found: Sequence[MergedFilter]) -> Iterator[Block]:
    """Yield a row per stripe and kind of filter."""
    if not found:
        return
    yield Gap()
    yield line("Filters of each stripe, joined:")
    yield _grid(
        found,
        (
            ("stripe", True, lambda m: str(m.stripe)),
            ("encoding", False, lambda m: m.encoding),
            ("filters", True, lambda m: count(m.filters)),
            ("k", True, lambda m: count(m.hash_functions)),
            ("bits", True, lambda m: count(m.bits)),
            ("set bits", True, lambda m: count(m.set_bits)),
            ("fill", True, lambda m: rate(m.fill)),
            ("FPP", True, lambda m: rate(m.fpp)),
        ),
    )
    yield from _page_problems((f"stripe {m.stripe}, {m.encoding}", m.problem) for m in found)


def schema(found: Sequence[SchemaNode], id_name: str) -> Iterator[Block]:
    """Yield a line per element, indented by its depth."""
    if not found:
        yield line("No schema.")
    for node in found:
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


def _grid(items: Sequence[Any], columns: Sequence[tuple[str, bool, Any]]) -> Grid:
    """A grid of the columns that have a value in any row."""
    cells = [(title, figures, [text(item) for item in items]) for title, figures, text in columns]
    kept = [column for column in cells if any(text != "-" for text in column[2])]
    ranks = {title: rank for rank, titles in enumerate(_LEFT_OUT, 1) for title in titles}
    grid = Grid(
        tuple(Head(title, figures=figures, rank=ranks.get(title, 0)) for title, figures, _ in kept),
        legend=((CUT, f"{CUT}: cut; --format json has the value as the file has it."),),
    )
    for item, row in zip(items, zip(*(texts for _, _, texts in kept), strict=True), strict=True):
        style = Style.BAD if item.problem is not None else Style.PLAIN
        grid.add(*(Cell(text, style) for text in row))
    return grid


def _page_problems(found: Any) -> Iterator[Block]:
    lines = [line(f"{place}: {problem}", Style.BAD) for place, problem in found if problem is not None]
    if lines:
        yield Gap()
        yield from lines


def _place(stripe: int | None, row_group: int) -> str:
    return f"row group {row_group}" if stripe is None else f"stripe {stripe}, row group {row_group}"


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _bytes(number: int | None) -> str:
    return "-" if number is None else size(number)


def _nulls(entry: IndexEntry) -> str:
    if entry.nulls is not None:
        return count(entry.nulls)
    if entry.only_nulls:
        return "all"
    return "-" if entry.has_nulls is None else "yes" if entry.has_nulls else "no"
