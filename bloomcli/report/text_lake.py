"""Text of `inspect` on many files: the columns over all files, and the files that differ from most files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.lake import ColumnOverFiles
from bloomcli.report.bars import bar
from bloomcli.report.human import count, rate, size
from bloomcli.report.layout import Block, Gap, Grid, Head, Style, line
from bloomcli.words import plural

_Coverage = tuple[tuple[str, str], ...]
"""A file's columns, each with its coverage."""
_DIFFERENT_SHOWN: Final = 50
_WRITERS_SHOWN: Final = 8
_COLUMNS_SHOWN: Final = 8
_WORDS: Final = {
    "all": "has filters",
    "some": "has a filter in some row groups only",
    "none": "has no filter",
}


def lake(report: DatasetReport) -> Iterator[Block]:
    """Yield the columns, the writers, and the files whose columns or filters differ from those of most files."""
    writers: Counter[str] = Counter()
    coverages: Counter[_Coverage] = Counter()
    for row in _read(report.rows):
        writers[row.created_by or "unknown"] += 1
        if row.row_groups:
            coverages[_coverage(row)] += 1
    if not writers:
        return
    yield _grid(report)
    yield Gap()
    yield line("written by: " + _writers(writers))
    yield from _different(report.rows, coverages)
    yield Gap()


def _read(rows: Iterable[FileRow]) -> Iterator[FileRow]:
    return (row for row in rows if row.status is Status.DONE and row.by_column)


def _grid(report: DatasetReport) -> Grid:
    columns = report.by_column
    partly, unreadable = any(c.files_partly for c in columns), any(c.unreadable for c in columns)
    grid = Grid(
        (
            Head("column"),
            Head("type", rank=3),
            Head("files", figures=True, rank=5),
            Head("with filter", figures=True),
            *([Head("partly", figures=True)] * partly),
            Head("without", figures=True),
            Head("", graphic=True),
            Head("filters", figures=True, rank=4),
            *([Head("unreadable", figures=True)] * unreadable),
            Head("filter size", figures=True, rank=2),
            Head("worst FPP", figures=True, rank=1),
        ),
        complete="--format json",
    )
    for column in columns:
        grid.add(
            column.column,
            " or ".join(column.types),
            count(column.files),
            count(column.files_with_filter),
            *([count(column.files_partly)] * partly),
            count(column.files_without_filter),
            bar(column.files_with_filter / files) if (files := _files(column)) else "",
            count(column.filters),
            *([count(column.unreadable)] * unreadable),
            size(column.bitset_bytes),
            rate(column.max_fpp),
        )
    return grid


def _files(column: ColumnOverFiles) -> int:
    """The number of files that have rows of the column."""
    return column.files_with_filter + column.files_partly + column.files_without_filter


def _writers(found: Counter[str]) -> str:
    shown = [f"{writer} ({plural(files, 'file')})" for writer, files in found.most_common(_WRITERS_SHOWN)]
    left = len(found) - len(shown)
    return ", ".join(shown) + (f" and {plural(left, 'other')}" if left else "")


def _different(rows: Iterable[FileRow], coverages: Counter[_Coverage]) -> Iterator[Block]:
    full = coverages.total()
    if full < 2:  # one file can't differ from the others
        return
    ((usual, files),) = coverages.most_common(1)
    different = full - files
    if not different:
        without = all(coverage in {"none", "empty"} for _, coverage in usual)
        have = "None of the {} has a filter." if without else "All {} have filters of the same columns."
        yield line(have.format(plural(full, "file")))
        return
    yield Gap()
    if files == 1:
        yield line("No two files have filters of the same columns.", Style.WARN)
        return
    verb = "differs" if different == 1 else "differ"
    yield line(f"{plural(different, 'file')} {verb} from the {count(files)} that are alike:", Style.WARN)
    others = (row for row in _read(rows) if row.row_groups and _coverage(row) != usual)
    for row in islice(others, _DIFFERENT_SHOWN):
        yield line(f"{row.path}: {_difference(dict(_coverage(row)), dict(usual))}", indent=2)
    left = different - _DIFFERENT_SHOWN
    if left > 0:
        yield line(f"... and {plural(left, 'more file')}: --all or --format csv lists every file", indent=2)


def _coverage(row: FileRow) -> _Coverage:
    return tuple(sorted((column.column, column.coverage) for column in row.by_column))


def _difference(found: dict[str, str], usual: dict[str, str]) -> str:
    """Describe the differences between a file and most files."""
    parts: dict[str, list[str]] = {}
    for column in dict.fromkeys((*usual, *found)):
        if column not in found:
            parts.setdefault("has no column", []).append(column)
        elif column not in usual:
            parts.setdefault("also has column", []).append(column)
        elif found[column] != usual[column]:
            parts.setdefault(f"{_WORDS.get(found[column], found[column])} for", []).append(column)
    return "; ".join(f"{what} {_some(columns)}" for what, columns in parts.items())


def _some(columns: Sequence[str]) -> str:
    left = len(columns) - _COLUMNS_SHOWN
    return ", ".join(columns[:_COLUMNS_SHOWN]) + (f" and {count(left)} more" if left > 0 else "")
