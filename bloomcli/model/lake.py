"""Totals of the columns of many files. Sizes are bytes, rates are probabilities in [0, 1]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFilters:
    """One column of one file, and its filters."""

    column: str
    type: str
    """The logical type, or the physical one if there is none."""
    row_groups_with_filter: int
    row_groups_without_filter: int
    filters: int
    """Filters that can be read."""
    unreadable: int
    bitset_bytes: int
    max_fpp: float | None = None
    """The highest measured false-positive rate."""

    @property
    def coverage(self) -> str:
        """``all``, ``some`` or ``none`` of the row groups have a filter; ``empty`` without row groups."""
        if self.row_groups_with_filter:
            return "some" if self.row_groups_without_filter else "all"
        return "none" if self.row_groups_without_filter else "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOverFiles:
    """Totals of one column over all files."""

    column: str
    types: tuple[str, ...]
    """More than one if the files differ."""
    files: int
    """Files that have the column."""
    files_with_filter: int
    """Files in which every row group has a filter of the column."""
    files_partly: int
    """Files in which some row groups have a filter and some don't."""
    files_without_filter: int
    """Files with row groups and without a filter of the column."""
    filters: int
    unreadable: int
    bitset_bytes: int
    max_fpp: float | None = None
    """The highest measured false-positive rate."""


class ColumnSums:
    """Running totals of the columns of many files."""

    def __init__(self) -> None:
        self._found: dict[str, _Sum] = {}

    def add(self, columns: Iterable[ColumnFilters]) -> None:
        """Add a file's columns."""
        for column in columns:
            if column.column not in self._found:
                self._found[column.column] = _Sum()
            self._found[column.column].add(column)

    @property
    def columns(self) -> tuple[ColumnOverFiles, ...]:
        """The totals of each column, in the order in which columns first appeared."""
        return tuple(found.over_files(name) for name, found in self._found.items())


class _Sum:
    """Running totals of one column."""

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.coverage: Counter[str] = Counter()
        self.filters = self.unreadable = self.bitset_bytes = 0
        self.max_fpp: float | None = None

    def add(self, column: ColumnFilters) -> None:
        self.types[column.type] = None
        self.coverage[column.coverage] += 1
        self.filters += column.filters
        self.unreadable += column.unreadable
        self.bitset_bytes += column.bitset_bytes
        if column.max_fpp is not None:
            self.max_fpp = column.max_fpp if self.max_fpp is None else max(self.max_fpp, column.max_fpp)

    def over_files(self, name: str) -> ColumnOverFiles:
        return ColumnOverFiles(
            column=name,
            types=tuple(self.types),
            files=self.coverage.total(),
            files_with_filter=self.coverage["all"],
            files_partly=self.coverage["some"],
            files_without_filter=self.coverage["none"],
            filters=self.filters,
            unreadable=self.unreadable,
            bitset_bytes=self.bitset_bytes,
            max_fpp=self.max_fpp,
        )
