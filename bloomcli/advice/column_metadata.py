"""Metadata of each column over all files: bounds and bytes of every row group, the units to draw samples from, and
how much remains for a value after min/max statistics."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli.advice.statistics import Floats
from bloomcli.model.advice import ColumnExtents, FileExtents
from bloomcli.model.file import Column
from bloomcli.values.literals import decode_bound


class Range(NamedTuple):
    """One row group: its comparable bounds, and its weight (1, or its bytes)."""

    low: Any
    high: Any
    weight: float


class Coverage:
    """The weight of the row groups whose range contains a value.

    Args:
        ranges: the ranges of row groups that have values. Bounds of None, and a lower bound above the upper one,
            exclude no value.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        bounded_ranges = [r for r in ranges if r.low is not None and r.high is not None and r.low <= r.high]
        self.total = sum(r.weight for r in ranges)
        self.always = self.total - sum(r.weight for r in bounded_ranges)
        """The weight of the row groups that exclude no value."""
        by_low, by_high = sorted(bounded_ranges, key=lambda r: r.low), sorted(bounded_ranges, key=lambda r: r.high)
        self._lows, self._highs = [r.low for r in by_low], [r.high for r in by_high]
        self._below = [0.0, *accumulate(r.weight for r in by_low)]
        self._above = [0.0, *accumulate(r.weight for r in by_high)]
        self._ends = sorted({*self._lows, *self._highs})

    def at(self, key: Any) -> float:
        """The weight of the row groups that may have a value; the total if the value is None."""
        if key is None:
            return self.total
        begun = self._below[bisect_right(self._lows, key)]
        return self.always + begun - self._above[bisect_left(self._highs, key)]

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The lowest and the highest bound; None without bounds."""
        return (self._ends[0], self._ends[-1]) if self._ends else None

    def extremes(self, hulls: Sequence[tuple[Any, Any]]) -> tuple[Floats, Floats]:
        """For each range of values, the lowest and the highest weight of a value in it. Bounds of None stand for all
        values."""
        count = len(self._ends)
        if not count:
            full = np.full(len(hulls), self.total)
            return full, full.copy()
        profile = np.empty(2 * count - 1)  # at each end, and between neighbouring ends
        profile[::2] = [self.at(end) for end in self._ends]
        profile[1::2] = [
            self.always + self._below[bisect_right(self._lows, end)] - self._above[bisect_right(self._highs, end)]
            for end in self._ends[:-1]
        ]
        spots = [self._spots(low, high) for low, high in hulls]
        first = np.array([a for a, _ in spots], np.intp)
        last = np.array([max(a, b) for a, b in spots], np.intp)
        return _over_ranges(profile, first, last, np.minimum), _over_ranges(profile, first, last, np.maximum)

    def _spots(self, low: Any, high: Any) -> tuple[int, int]:
        if low is None or high is None:
            return 0, 2 * len(self._ends) - 2
        return 2 * bisect_left(self._ends, low), 2 * (bisect_right(self._ends, high) - 1)


def _over_ranges(profile: Floats, first: NDArray[np.intp], last: NDArray[np.intp], function: Any) -> Floats:
    """The extreme of each range of positions, by a sparse table: each range is covered by two overlapping ranges
    whose length is a power of two."""
    extremes: Floats = np.empty(len(first))
    lengths = last - first + 1
    powers = np.frexp(lengths)[1] - 1
    level = profile
    for power in range(int(powers.max(initial=0)) + 1):
        here = powers == power
        extremes[here] = function(level[first[here]], level[last[here] - (1 << power) + 1])
        step = 1 << power
        if len(level) <= step:
            break
        level = function(level[:-step], level[step:])
    return extremes


UnitKey = tuple[int, int]
"""The position of the file, and the number of the unit in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of one column: a row group, in ORC a stripe."""

    row_groups: int
    bytes: int
    """The compressed bytes of its row groups, with all columns."""
    values: int
    hull: tuple[Any, Any]
    """The comparable bounds of all its values; None for unknown ones."""


@dataclass(kw_only=True)
class ColumnMetadata:
    """The metadata of one column, summed over all files that have it."""

    column: str
    type: str
    typed: Column
    """The column of the first file."""
    unfilterable: str | None = None
    loses_rows: bool = False
    files: int = 0
    rows: int = 0
    row_groups: int = 0
    bytes: int = 0
    nulls: int | None = 0
    dictionary: int = 0
    filters: int = 0
    without_filter: int = 0
    filter_bytes: int = 0
    properties: frozenset[str] = frozenset()
    units: dict[UnitKey, Unit] = field(default_factory=dict)
    """The units that have values."""
    _ranges: list[Range] = field(default_factory=list)

    def add(self, position: int, file: FileExtents, column: ColumnExtents) -> None:
        """Add a file's column."""
        self.unfilterable = self.unfilterable or column.unfilterable
        self.loses_rows = self.loses_rows or column.loses_rows
        self.files += 1
        self.rows += file.rows
        self.row_groups += len(column.values)
        self.bytes += column.chunk_bytes
        self.nulls = None if self.nulls is None or column.nulls is None else self.nulls + column.nulls
        self.dictionary += column.dictionary
        self.filters += column.filters
        self.without_filter += column.without_filter
        self.filter_bytes += column.filter_bytes
        self.properties |= column.properties
        same = column.typed == self.typed  # bounds of another type can't be compared: they exclude nothing
        lows: list[Any] = _keys(column.lows, column.typed) if same else [None] * len(column.lows)
        highs: list[Any] = _keys(column.highs, column.typed) if same else [None] * len(column.highs)
        first = 0
        for number, count in enumerate(file.units):
            here = [g for g in range(first, first + count) if not column.empty[g]]
            first += count
            if not here:
                continue
            has_bounds = all(lows[g] is not None and highs[g] is not None and lows[g] <= highs[g] for g in here)
            self.units[position, number] = Unit(
                row_groups=len(here),
                bytes=sum(file.row_group_bytes[g] for g in here),
                values=sum(column.values[g] for g in here),
                hull=(min(lows[g] for g in here), max(highs[g] for g in here)) if has_bounds else (None, None),
            )
            self._ranges += [Range(lows[g], highs[g], file.row_group_bytes[g]) for g in here]

    @property
    def values(self) -> int:
        """The number of values that aren't null, at most."""
        return sum(unit.values for unit in self.units.values())

    @property
    def single(self) -> bool:
        """Whether every unit is a single row group."""
        return all(unit.row_groups == 1 for unit in self.units.values())

    @property
    def one_value_per_row_group(self) -> bool:
        """Whether minimum and maximum are the same value in every row group with values."""
        return bool(self._ranges) and all(low is not None and low == high for low, high, _ in self._ranges)

    @cached_property
    def by_number(self) -> Coverage:
        """Computes the row groups that remain after min/max."""
        return Coverage([r._replace(weight=1) for r in self._ranges])

    @cached_property
    def by_bytes(self) -> Coverage:
        """Computes the bytes that remain after min/max."""
        return Coverage(self._ranges)


def _keys(bounds: Sequence[bytes | None], typed: Column) -> list[Any]:
    return [None if bound is None else decode_bound(bound, typed) for bound in bounds]


def all_columns(files: Iterable[tuple[int, FileExtents]]) -> dict[str, ColumnMetadata]:
    """The metadata of all columns by their paths, in the order of their first occurrence."""
    columns: dict[str, ColumnMetadata] = {}
    for position, file in files:
        for column in file.columns:
            metadata = columns.get(column.column)
            if metadata is None:
                metadata = columns[column.column] = ColumnMetadata(
                    column=column.column, type=column.type, typed=column.typed
                )
            metadata.add(position, file, column)
    return columns
