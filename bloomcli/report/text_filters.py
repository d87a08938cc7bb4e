"""Text reports of ``inspect`` and ``dump``. Every figure comes from the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bloomcli.model.file import SIGNATURE
from bloomcli.model.filter_facts import FilterFacts
from bloomcli.report.bars import bar
from bloomcli.report.human import count, rate, share, size
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Pairs, Style, line
from bloomcli.report.locations import row_group_text, type_text
from bloomcli.report.text_columns import columns
from bloomcli.report.text_traffic import traffic_pairs, traffic_text
from bloomcli.words import exact_size, plural

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump, InspectReport

_DETAILS_SHOWN = 60
_NAMES_SHOWN = 8
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
    else:
        yield line(_without_filters(report))


def _without_filters(report: InspectReport) -> str:
    adding = "" if SIGNATURE in dict(report.details) else " `bloom add FILE --columns NAME -o OUT` adds some."
    return (_chosen_without(report) or "No Bloom filters.") + adding


def _closing(report: InspectReport) -> Iterator[Block]:
    text = _chosen_without(report) if report.filters else _without_filters(report)
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
    text = f"No Bloom filters for {_some(report.columns_without_filters)}"
    if report.filters:
        return text + "."
    others = report.other_columns_with_filters
    return text + (f"; columns with filters: {_some(others)}." if others else " or any other column.")


def _some(names: Sequence[str]) -> str:
    left = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {count(left)} more" if left > 0 else "")


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
        yield "filters", Cell("none of the chosen columns" if report.columns_without_filters else "none")
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
    longs = len(bitset) // 8
    yield f"# {plural(len(bitset) * 8, 'bit')} in {plural(longs, 'long')}: index of the first, then four longs"
    digits = len(str(max(longs - 1, 0)))
    for index in range(0, longs, 4):
        row = bitset[8 * index : 8 * index + 32]
        text = " ".join(row[at : at + 8][::-1].hex() for at in range(0, len(row), 8))
        yield f"{index:>{digits}}  {text}"
