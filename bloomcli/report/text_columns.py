"""The table of a file's columns that `inspect` prints, one row per column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bloomcli.report.bars import sparkline
from bloomcli.report.human import count, rate, size
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Style, line
from bloomcli.report.locations import row_group_text
from bloomcli.report.values import CUT, VALUE_WIDTH, value
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.model.columns import ColumnSummary
    from bloomcli.model.inspect import InspectReport

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
            Cell(item.column, Style.BAD if item.untrusted is not None or item.unreadable else Style.PLAIN),
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
    return "-" if text is None else value(text, exact=exact)


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
