"""Text of `inspect --pages`, `--indexes`, `--schema` and `--footer`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bloomcli.report.human import count, rate, size
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Pairs, Style, line
from bloomcli.report.locations import type_text
from bloomcli.report.values import CUT, value

if TYPE_CHECKING:
    from bloomcli.model.inspect import InspectReport
    from bloomcli.model.pages import IndexEntry, MergedFilter, PageFacts
    from bloomcli.model.schema import SchemaNode

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
    yield from _problems((_place(p.stripe, p.row_group) + f", byte {p.offset}", p.problem) for p in found)


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
                ("min", False, lambda e: "-" if e.min is None else value(e.min)),
                ("max", False, lambda e: "-" if e.max is None else value(e.max)),
                ("order", False, lambda e: (e.boundary_order or "-").lower()),
                ("positions", False, lambda e: " ".join(map(str, e.positions)) or "-"),
            ),
        )
    yield from _problems((_place(e.stripe, e.row_group), e.problem) for e in found)


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
    yield from _problems((f"stripe {m.stripe}, {m.encoding}", m.problem) for m in found)


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


def _problems(found: Any) -> Iterator[Block]:
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
