"""Compares neighbouring rows of a row group in the order that its `sorting_columns` state.

The order is lexicographic: a column counts only between rows that are equal in all columns before it. Zeros of both
signs are equal, and NaN has no place in the order. Each row is compared with the one before it while a column is
measured, so that no column is decoded twice.

Source: the Apache Parquet format, parquet.thrift, SortingColumn and ColumnOrder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.measured import Measure, measured, order_of
from bloomcli.formats.parquet.pages import chunk_range
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.file import ColumnChunk
from bloomcli.words import counted


class SortingColumn(NamedTuple):
    """A column by which the rows of a row group are said to be sorted."""

    column: int | None
    """The leaf column's ordinal, unchecked; None if the field is missing."""
    falling: bool
    nulls_first: bool
    encoded: bytes
    """The structure as it is in the footer."""

    @property
    def order(self) -> str:
        """The order's name."""
        return "descending" if self.falling else "ascending"


class ComparedRows(NamedTuple):
    """What the comparison of a row group's rows showed."""

    proven: int
    """The number of sorting columns, from the first on, in whose order all rows are."""
    wrong: str | None
    """Why the rows aren't in the order of more columns; None if no row contradicts it."""
    unknown: str | None
    """Why the rows aren't compared by all columns; None if they are."""


def sorting_columns(footer: Footer, row_group: int) -> Sequence[SortingColumn]:
    """The columns in a row group's `sorting_columns`, one more than are compared at most. Raises CorruptFile."""
    group = footer.group_struct(row_group)
    starts = group.list_starts("sorting_columns")[: parquet_limits.SORTED_BY_MOST + 2]
    where = group.location.at("sorting_columns")
    found = []
    for start, end in pairwise(starts):
        one = Struct("SortingColumn", footer.raw, start, where)
        flags = bool(one.truth("descending")), bool(one.truth("nulls_first"))
        found.append(SortingColumn(one.integer("column_idx"), *flags, footer.raw[start:end]))
    return found


def compared(filters: Filters, first: ColumnChunk, known: Mapping[int, kernels.Bounds], stop: Stop) -> ComparedRows:
    """Compare a row group's rows by all its sorting columns.

    Args:
        filters: the file's filters.
        first: the chunk of the first sorting column.
        known: the order of rows in columns that are measured. The others are decoded.
        stop: ends the decoding.

    Raises:
        CorruptFile: the footer can't be walked. Damaged pages only end the comparison by their column.
        Stopped: soon after `stop` is set.
    """
    footer = filters.footer
    by, wrong, unknown = sorting_columns(footer, first.row_group), None, None
    columns: list[kernels.Bounds] = []
    for one in by:
        if one.column is None or not 0 <= one.column < len(footer.columns):
            there = counted(len(footer.columns), "column")
            wrong = f"the rows can't be sorted by column {one.column}: the file has {there}"
            break
        try:
            columns.append(_order_in(filters, first.row_group, one.column, known, len(columns), stop))
        except (CorruptFile, UnsupportedError) as error:
            path = footer.columns[one.column].path
            unknown = f"the order of the rows isn't compared from the sorting column {path} on: {error.reason}"
            break
    used = by[: len(columns)]
    proven, fault = kernels.compared_rows(
        columns,
        [one.falling for one in used],
        [one.nulls_first for one in used],
        footer.row_group(first.row_group).rows,
    )
    if fault:
        *equal, path = [footer.columns[one.column or 0].path for one in by[: proven + 1]]
        whose, which = f"the rows with equal values in {', '.join(equal)}" if equal else "the rows", used[proven]
        if fault == kernels.ROWS_OUT_OF_ORDER:
            wrong = f"{whose} aren't in the {which.order} order of {path}"
        else:
            wrong = f"{whose} with nulls in {path} aren't {'first' if which.nulls_first else 'last'}"
    return ComparedRows(proven, wrong, unknown)


def _order_in(
    filters: Filters, row_group: int, column: int, known: Mapping[int, kernels.Bounds], before: int, stop: Stop
) -> kernels.Bounds:
    """The order of a row group's rows in a column, the sorting column after `before` others. Raises CorruptFile;
    UnsupportedError if there is none."""
    footer = filters.footer
    one, rows = footer.columns[column], footer.row_group(row_group).rows
    why = None
    if one.max_repetition_level:
        why = "the format defines no order of lists"
    elif order_of(one, footer.order(one)) == kernels.NO_ORDER:
        why = "its type has no defined order"
    elif before == parquet_limits.SORTED_BY_MOST:
        why = f"rows are compared by at most {before} columns"
    elif rows > parquet_limits.ORDERED_ROWS_MOST:
        why = f"row groups of at most {parquet_limits.ORDERED_ROWS_MOST} rows are compared"
    if why is None:
        found = known.get(column)
        if found is None:
            (key,) = footer.chunk_keys({column}, row_group)
            chunk = footer.chunk(key)
            filters.source.will_read([chunk_range(chunk)])
            found = measured(filters, chunk, Measure(chunk, footer.order(one), tracked=True), stop).order
        if found is not None and found.rows >= rows and not found.unknown:
            return found
        why = "it has fewer values than the row group has rows"
        if found is None or found.unknown:
            why = "a value is too long to be compared"
    raise UnsupportedError(why, path=filters.source.path)
