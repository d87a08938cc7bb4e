"""The columns of many files, summed up. Sizes are bytes, rates are probabilities in [0, 1]."""

from __future__ import annotations

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
    """One column over all files."""

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


def over_files(files: Iterable[Iterable[ColumnFilters]]) -> tuple[ColumnOverFiles, ...]:
    """Sum up the columns of files, in the order in which columns first appear."""
    found: dict[str, list[ColumnFilters]] = {}
    for columns in files:
        for column in columns:
            found.setdefault(column.column, []).append(column)
    return tuple(_sum(name, columns) for name, columns in found.items())


def _sum(name: str, columns: list[ColumnFilters]) -> ColumnOverFiles:
    coverage = [column.coverage for column in columns]
    return ColumnOverFiles(
        column=name,
        types=tuple(dict.fromkeys(column.type for column in columns)),
        files=len(columns),
        files_with_filter=coverage.count("all"),
        files_partly=coverage.count("some"),
        files_without_filter=coverage.count("none"),
        filters=sum(column.filters for column in columns),
        unreadable=sum(column.unreadable for column in columns),
        bitset_bytes=sum(column.bitset_bytes for column in columns),
        max_fpp=max((column.max_fpp for column in columns if column.max_fpp is not None), default=None),
    )
