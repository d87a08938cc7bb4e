"""Metadata of each column over all files: bounds and bytes of every row group, and the units to draw samples from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bloomcli.advice.coverage import Coverage, Range
from bloomcli.model.advice import ColumnExtents, FileExtents
from bloomcli.model.file import Column
from bloomcli.values.literals import decode_bound

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
    _ranges: list[tuple[Any, Any, int]] = field(default_factory=list)

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
            known = all(lows[g] is not None and highs[g] is not None for g in here)
            self.units[position, number] = Unit(
                row_groups=len(here),
                bytes=sum(file.row_group_bytes[g] for g in here),
                values=sum(column.values[g] for g in here),
                hull=(min(lows[g] for g in here), max(highs[g] for g in here)) if known else (None, None),
            )
            self._ranges += [(lows[g], highs[g], file.row_group_bytes[g]) for g in here]

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
        return Coverage([Range(low, high, 1) for low, high, _ in self._ranges])

    @cached_property
    def by_bytes(self) -> Coverage:
        """Computes the bytes that remain after min/max."""
        return Coverage([Range(*found) for found in self._ranges])


def _keys(bounds: Sequence[bytes | None], typed: Column) -> list[Any]:
    return [None if bound is None else decode_bound(bound, typed) for bound in bounds]


def all_columns(files: Iterable[tuple[int, FileExtents]]) -> dict[str, ColumnMetadata]:
    """The metadata of all columns by their paths, in the order of their first occurrence."""
    found: dict[str, ColumnMetadata] = {}
    for position, file in files:
        for column in file.columns:
            one = found.get(column.column)
            if one is None:
                one = found[column.column] = ColumnMetadata(
                    column=column.column, type=column.type, typed=column.typed
                )
            one.add(position, file, column)
    return found
