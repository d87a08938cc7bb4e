"""Compares neighbouring rows of a row group in the order that its `sorting_columns` state.

The order is lexicographic: a column counts only between rows that are equal in all columns before it. Zeros of both
signs are equal, and NaN has no place in the order. The columns are decoded together, some rows at a time.

Source: the Apache Parquet format, parquet.thrift, SortingColumn and ColumnOrder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.measured import order_of
from bloomcli.formats.parquet.pages import chunk_range
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.values.keys import key_of
from bloomcli.values.literals import decode_bound
from bloomcli.words import counted

_AS_NUMBERS: Final = (kernels.DECIMAL, kernels.INT96)
"""The orders of bytes in which Arrow doesn't compare them; FLOAT16 is the third."""


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


def compared(filters: Filters, first: ColumnChunk, stop: Stop) -> ComparedRows:
    """Compare a row group's rows by all its sorting columns.

    Args:
        filters: the file's filters.
        first: the chunk of the first sorting column.
        stop: ends the comparison.

    Raises:
        CorruptFile: the footer can't be walked. Damaged pages only end the comparison by their column.
        Stopped: soon after `stop` is set.
    """
    rows = filters.footer.row_group(first.row_group).rows
    columns, wrong, unknown = _readable(filters, first, rows)
    filters.source.will_read(chunk_range(one.chunk) for one in columns)
    done = 0
    while columns and done < rows:
        stop.check()
        for number, one in enumerate(columns):
            why = one.fill()
            if why is not None:
                unknown, columns = _not_compared(one.chunk.column, why), columns[:number]
                break
        count = min((len(one.values) for one in columns), default=0)
        equal: Any = None
        for number, one in enumerate(columns):
            fault, same = one.compare(count, equal)
            if fault is not None:
                before = ", ".join(other.chunk.column.path for other in columns[:number])
                whose = f"the rows with equal values in {before}" if number else "the rows"
                wrong, columns = f"{whose} {fault}", columns[:number]
                break
            equal = same
        done += count
    return ComparedRows(len(columns), wrong, unknown)


def _readable(filters: Filters, first: ColumnChunk, rows: int) -> tuple[list[_Walked], str | None, str | None]:
    """The sorting columns up to the first by which rows can't be compared, and why that one is wrong or unknown."""
    footer = filters.footer
    found: list[_Walked] = []
    for by in sorting_columns(footer, first.row_group):
        if by.column is None or not 0 <= by.column < len(footer.columns):
            there = counted(len(footer.columns), "column")
            return found, f"the rows can't be sorted by column {by.column}: the file has {there}", None
        column = footer.columns[by.column]
        why: str | None = None
        if column.max_repetition_level:
            why = "the format defines no order of lists"
        elif order_of(column, footer.order(column)) == kernels.NO_ORDER:
            why = "its type has no defined order"
        elif len(found) == parquet_limits.SORTED_BY_MOST:
            why = f"rows are compared by at most {parquet_limits.SORTED_BY_MOST} columns"
        else:
            (key,) = footer.chunk_keys_in(first.row_group, {by.column})
            try:
                found.append(_Walked(filters, footer.chunk(key) if found else first, by, rows))
            except (CorruptFile, UnsupportedError) as error:
                why = error.reason
        if why is not None:
            return found, None, _not_compared(column, why)
    return found, None, None


def _not_compared(column: Column, why: str) -> str:
    return f"the order of the rows isn't compared from the sorting column {column.path} on: {why}"


class _Walked:
    """A sorting column whose values are decoded some at a time.

    Attributes:
        values: those that are decoded and weren't compared.
    """

    def __init__(self, filters: Filters, chunk: ColumnChunk, by: SortingColumn, rows: int) -> None:
        from bloomcli.formats.parquet.page_decoder import ChosenPages, decoded  # it imports pyarrow

        self.chunk, self._by = chunk, by
        self._parts = decoded(filters.source, filters.footer.start, [ChosenPages(chunk, rows, None)])
        self.values: Any = ()
        self._last: Any = None
        """The value of the row before those."""
        self._order = order_of(chunk.column, filters.footer.order(chunk.column))

    def fill(self) -> str | None:
        """Decode more values if none is left. Returns why there are none."""
        try:
            while not len(self.values):
                part = next(self._parts, None)
                if part is None:
                    return "it has fewer values than the row group has rows"
                self.values = part.values
        except (CorruptFile, UnsupportedError) as error:
            return error.reason
        return None

    def compare(self, count: int, equal: Any) -> tuple[str | None, Any]:
        """Compare each of the next values with the one before it.

        Args:
            count: their number.
            equal: for each, whether the rows are equal in the columns before this one; None for the first column.

        Returns:
            What is wrong with the order of the rows, and for each whether it is equal in this column, too.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        part, self.values = self.values[:count], self.values[count:]
        every = self._comparable(part if self._last is None else pa.concat_arrays([self._last, part]))
        self._last = part[-1:]
        above, below = every[:-1], every[1:]
        wrong = pc.fill_null((pc.less if self._by.falling else pc.greater)(above, below), False)
        same = pc.fill_null(pc.equal(above, below), False)
        misplaced = None
        if every.null_count:
            nulls = above.is_null(), below.is_null()
            misplaced = pc.and_not(*(reversed(nulls) if self._by.nulls_first else nulls))
            same = pc.or_(same, pc.and_(*nulls))
        path = self.chunk.column.path
        for mask, what in (
            (wrong, f"aren't in the {self._by.order} order of {path}"),
            (misplaced, f"with nulls in {path} aren't {'first' if self._by.nulls_first else 'last'}"),
        ):
            if mask is not None and pc.any(mask if equal is None else pc.and_(mask, equal)).as_py():
                return what, None
        return None, same if equal is None else pc.and_(same, equal)

    def _comparable(self, values: Any) -> Any:
        """The values as numbers or bytes that Arrow compares in the column's order."""
        import pyarrow as pa

        column = self.chunk.column
        if self._order == kernels.UNSIGNED:
            return values.view(pa.uint32() if column.physical == "INT32" else pa.uint64())
        is_half = self._order == kernels.FLOATING and column.physical == "FIXED_LEN_BYTE_ARRAY"
        if not is_half and self._order not in _AS_NUMBERS:
            return values
        key = key_of if self._order == kernels.INT96 else decode_bound
        encoded = values.dictionary_encode()
        keys = [key(value, column) for value in encoded.dictionary.to_pylist()]
        places = {found: float(at) for at, found in enumerate(sorted({one for one in keys if one is not None}))}
        return pa.array([places.get(one, math.nan) for one in keys], pa.float64()).take(encoded.indices)
