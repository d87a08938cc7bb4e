"""Judges a chunk's statistics: which of them contradict each other, and which bounds its filter must have.

Nothing is skipped by metadata that contradict other metadata of the same chunk. A chunk's minimum and maximum are
looked up in its filter: if one is missing, the filter is wrong, and the check is free.

Source: the Apache Parquet format, parquet.thrift, Statistics and ColumnIndex; PageIndex.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from bloomcli import kernels
from bloomcli.formats.dictionary import HashLookup
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.values.literals import decode_bound, kind_of

_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_FLOATS: Final = ("FLOAT", "DOUBLE")
_BYTES: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_ASCENDING: Final = "ASCENDING"
_DESCENDING: Final = "DESCENDING"


def in_counts(values: int | None, nulls: int | None, *, bounds: bool) -> str | None:
    """Why a null count of the statistics is wrong; None if it can be right.

    Args:
        values: the number of values, nulls included.
        nulls: the null count.
        bounds: the statistics have a minimum or a maximum.
    """
    if nulls is None or values is None:
        return None
    if not 0 <= nulls <= values:
        return "the null count isn't between 0 and the number of values"
    if bounds and nulls == values:
        return "the statistics have only nulls, and a minimum or a maximum"
    return None


def has_floats(column: Column) -> bool:
    """Whether the column's values can be NaN."""
    return column.physical in _FLOATS or kind_of(column) == "FLOAT16"


def has_cut_bounds(column: Column) -> bool:
    """Whether writers cut off long minima and maxima of the column."""
    return column.physical in _BYTES and kind_of(column) not in {"DECIMAL", "FLOAT16"}


def upper_bound(bound: bytes | None, column: Column, exact: bool | None = None) -> bytes | None:
    """A maximum if it can be one; None for bytes that writers have written in place of one.

    Writers that can't increment a shortened maximum of 0xFF write it as it is, and others write the empty text for
    a maximum that is too long. `exact`: whether the maximum is a value, if the metadata say so.
    """
    if bound is None or exact is True or not has_cut_bounds(column):
        return bound
    return bound if bound.strip(b"\xff") else None


def has_nan(low: bytes | None, high: bytes | None, column: Column) -> bool:
    """Whether a bound is NaN: then the other one may leave values out (PARQUET-1246)."""
    return has_floats(column) and any(
        bound is not None and decode_bound(bound, column) is None for bound in (low, high)
    )


class PageBounds:
    """The facts of a column index about the pages of a chunk, checked against each other and the row group.

    Args:
        index: the decoded ColumnIndex.
        rows: the rows of each page.
        chunk: the metadata of the chunk.
        ordered: the bounds can be trusted.

    Attributes:
        problem: why the index isn't used; None if nothing contradicts it.
        only_nulls: for each page, whether it has only nulls.
        bounds: (minimum, maximum) of each page, as `decode_bound` returns them; None if unknown.
    """

    def __init__(self, index: dict[str, Any], rows: Sequence[int], chunk: ColumnChunk, *, ordered: bool) -> None:
        self.only_nulls: Sequence[bool] = index.get("null_pages", ())
        self._counts: Sequence[int] | None = index.get("null_counts")
        lows, highs = index.get("min_values", ()), index.get("max_values", ())
        self.bounds: Sequence[tuple[Any, Any]] = ()
        if not len(rows) == len(self.only_nulls) == len(lows) == len(highs):
            self.problem: str | None = "the column index and the offset index have different numbers of pages"
            return
        stored = [(_stored(low), _stored(high)) for low, high in zip(lows, highs, strict=True)]
        self.problem = self._in_counts(rows, chunk) or self._without_bounds(stored, chunk.column)
        self.bounds = [(None, None)] * len(rows)
        if self.problem is None and ordered:
            self.bounds = [
                (None, None) if null else _decoded(low, high, chunk.column)
                for null, (low, high) in zip(self.only_nulls, stored, strict=True)
            ]
            self.problem = self._in_bounds(index.get("boundary_order"), stored, chunk)

    def _in_counts(self, rows: Sequence[int], chunk: ColumnChunk) -> str | None:
        flat = chunk.column.max_repetition_level == 0
        if self._counts is None:
            if chunk.null_count == 0 and any(self.only_nulls):
                return "a page has only nulls, and the row group none"
            return None
        if len(self._counts) != len(rows):
            return "the null counts have another number than the pages"
        for null, count, values in zip(self.only_nulls, self._counts, rows, strict=True):
            if count < 0 or (flat and count > values):
                return "a page has more nulls than rows, or fewer than none"
            if null and not count and values:
                return "a page has only nulls, and its null count is 0"
            if flat and values and null != (count == values):
                return "a page has as many nulls as rows if, and only if, it has only nulls"
        if chunk.null_count is not None and sum(self._counts) != chunk.null_count:
            return "the pages have another number of nulls than the row group"
        return None

    def _without_bounds(self, stored: Sequence[tuple[bytes, bytes]], column: Column) -> str | None:
        """A page that doesn't have only nulls must have bounds; in a BYTE_ARRAY they can be the empty text."""
        if column.physical != "BYTE_ARRAY" and not all(
            null or any(bounds) for null, bounds in zip(self.only_nulls, stored, strict=True)
        ):
            return "a page has neither bounds nor only nulls"
        return None

    def _in_bounds(self, order: str | None, stored: Sequence[tuple[bytes, bytes]], chunk: ColumnChunk) -> str | None:
        known = [pair for pair, null in zip(self.bounds, self.only_nulls, strict=True) if not null]
        if any(low is not None and high is not None and low > high for low, high in known):
            return "a page's minimum is above its maximum"
        for ends in zip(*known, strict=True):
            if (order == _ASCENDING and _falls(ends)) or (order == _DESCENDING and _falls(reversed(ends))):
                return "the pages' bounds don't have the order that the index states"
        if not known or chunk.encrypted:
            return None
        written = [pair for pair, null in zip(stored, self.only_nulls, strict=True) if not null]
        fixed = all(_is_whole(bound, chunk.column) for pair in written for bound in pair)
        low, high = _decoded(chunk.min_value, chunk.max_value, chunk.column)
        lows, highs = ([bound for bound in ends if bound is not None] for ends in zip(*known, strict=True))
        if low is not None and len(lows) == len(known) and chunk.min_exact is not False:
            least = min(lows)
            if least > low or (fixed and least != low):
                return "the pages' minima don't reach the row group's minimum"
        if high is not None and len(highs) == len(known):
            most = max(highs)
            if (chunk.max_exact is not False and most < high) or (fixed and most != high):
                return "the pages' maxima don't reach the row group's maximum"
            if not fixed and most != high and chunk.max_value is not None and _begins(chunk.max_value, most):
                return "the pages' maxima don't reach the row group's maximum"
        return None


def _decoded(low: bytes | None, high: bytes | None, column: Column) -> tuple[Any, Any]:
    """Bounds that compare; (None, None) for NaN."""
    if has_nan(low, high, column):
        return None, None
    high = upper_bound(high, column)
    return (
        None if low is None else decode_bound(low, column),
        None if high is None else decode_bound(high, column),
    )


def _stored(bound: dict[str, str]) -> bytes:
    """The bytes of a decoded binary; none for a value of another type."""
    return bytes.fromhex(bound.get("hex", ""))


def _falls(bounds: Iterable[Any]) -> bool:
    """Whether a known bound is below an earlier one."""
    return any(after < before for before, after in pairwise(bound for bound in bounds if bound is not None))


def _begins(bound: bytes, shorter: Any) -> bool:
    """Whether a bound is a text that begins with a shorter one."""
    return isinstance(shorter, bytes) and len(shorter) < len(bound) and bound.startswith(shorter)


def _is_whole(bound: bytes, column: Column) -> bool:
    """Whether the bound of a page has the width of its type: then it isn't shortened."""
    width = column.type_length if column.physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(column.physical)
    return len(bound) == width


MOST: Final = 2
"""The maximum number of hashes that `lost` looks up."""
_IF_EXACT: Final = 1
_OF_WIDTH: Final = 2
_FLOAT_KINDS: Final = {"FLOAT": 3, "DOUBLE": 4}
NO_VALUES: Final = (0, 0)
"""The result of `kind_of_bounds` for bounds that are never values for certain."""
_MANY_FORMS: Final = ("FLOAT16", "INTERVAL")
"""A FLOAT16 can be a zero of either sign or NaN; DuckDB inserts the normal form of an interval."""


def lost(chunk: ColumnChunk, bits: HashLookup) -> Iterator[tuple[str, bytes]]:
    """Yield ("minimum" or "maximum", PLAIN bytes) for each value of the chunk that its filter lacks."""
    return ((which, bound) for which, bound in certain(chunk) if not bits.check(kernels.xxh64(bound)))


def hashes(chunk: ColumnChunk) -> list[int]:
    """The hashes that `lost` looks up."""
    return [kernels.xxh64(bound) for _, bound in certain(chunk)]


def certain(chunk: ColumnChunk) -> Iterator[tuple[str, bytes]]:
    """Yield ("minimum" or "maximum", PLAIN bytes) for each bound that is a value of the chunk.

    Source: the Apache Parquet format, parquet.thrift, Statistics. Writers may shorten the bounds of byte arrays;
    is_max_value_exact and is_min_value_exact report it.
    """
    kind, width = kind_of_bounds(chunk.column)
    for which, bound, exact in (
        ("minimum", chunk.min_value, chunk.min_exact),
        ("maximum", chunk.max_value, chunk.max_exact),
    ):
        if bound is not None and kernels.is_certain(bound, exact, kind, width):
            yield which, bound


def kind_of_bounds(column: Column) -> tuple[int, int]:
    """Which of a column's bounds are values, and their size in bytes, for `kernels.is_certain`."""
    physical, logical = column.physical, column.logical
    if physical == "BYTE_ARRAY":
        return (0 if (logical or "").startswith("DECIMAL") else _IF_EXACT), 0
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return (0 if logical in _MANY_FORMS else _OF_WIDTH), column.type_length or 0
    width = _WIDTHS.get(physical)
    return NO_VALUES if width is None else (_FLOAT_KINDS.get(physical, _OF_WIDTH), width)
