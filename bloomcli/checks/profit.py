"""Finds filters that save readers of one file nothing: min/max statistics or the dictionary exclude the same row
groups.

Constant values and dictionaries make a row group's filter useless, whatever other files have. That a file is sorted
doesn't: the ranges of other files may overlap its own. That finding's hint is `bloom advise`, which alone decides
over all files that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from bloomcli.checks.group_ranges import finding_of
from bloomcli.formats.base import FilterBounds, FilterFile
from bloomcli.hints import Command, Hint, removing
from bloomcli.model.file import Column, Severity
from bloomcli.model.validate import Finding
from bloomcli.rules.readers import reader
from bloomcli.values.literals import decode_bound
from bloomcli.words import counted

_MEASURES: Final = " says whether to remove them; name all files that a query reads together"
_ENOUGH: Final = 3
"""The minimum number of row groups with disjoint ranges that indicates a sorted column; fewer may be chance."""


def profit(file: FilterFile, columns: set[int] | None, readers: Sequence[str]) -> Iterator[Finding]:
    """Yield one finding per column and reason, from metadata alone.

    Args:
        file: an open file.
        columns: ordinals of the columns to check; None for all.
        readers: the engines that read the file.
    """
    filtered = file.filtered_columns()
    dictionary = bool(readers) and all(reader(name).dictionary for name in readers)
    for column in file.columns:
        if column.index in filtered and (columns is None or column.index in columns):
            spreads = list(file.filter_bounds(column))
            if spreads:
                yield from _of_column(file, column, spreads, dictionary=dictionary)


def _of_column(
    file: FilterFile, column: Column, spreads: list[FilterBounds], *, dictionary: bool
) -> Iterator[Finding]:
    ranges = _ranges(spreads, file.literal_column(column))
    units = [(spread.stripe, spread.row_group) for spread in spreads]
    saves = removing(column.path, after=" saves its bytes")
    if ranges and all(low == high for low, high in ranges):
        message = f"{_each(len(ranges), 'row group')} with a filter holds one value: min/max says as much"
        yield finding_of("profit-constant", message, column, units, saves, Severity.NOTE)
    elif len(ranges) >= _ENOUGH and all(lower[1] < upper[0] for lower, upper in pairwise(sorted(ranges))):
        message = (
            f"the min/max ranges of the {len(ranges)} row groups with a filter don't overlap:"
            " they leave one row group of this file for any value"
        )
        measuring = Hint(Command("advise", columns=(column.path,)), _MEASURES)
        yield finding_of("profit-sorted", message, column, units, measuring, Severity.NOTE)
    if dictionary and all(s.only_dictionary for s in spreads):
        message = (
            f"{_each(len(spreads), 'column chunk')} with a filter is dictionary-encoded throughout,"
            " and the readers named look values up in the dictionary"
        )
        yield finding_of("profit-dictionary", message, column, units, saves, Severity.NOTE)


def _each(number: int, singular: str) -> str:
    """``the row group``, ``each of the 2 row groups``."""
    return f"the {singular}" if number == 1 else f"each of the {counted(number, singular)}"


def _ranges(spreads: Sequence[FilterBounds], typed: Column) -> list[tuple[Any, Any]]:
    """Comparable bounds of every row group; empty if any of them is unknown."""
    ranges = []
    for spread in spreads:
        low = None if spread.low is None else decode_bound(spread.low, typed)
        high = None if spread.high is None else decode_bound(spread.high, typed)
        if low is None or high is None:
            return []
        ranges.append((low, high))
    return ranges
