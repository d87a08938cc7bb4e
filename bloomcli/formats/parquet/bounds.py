"""Looks up a chunk's minimum and maximum in its filter. If one is missing, the filter is wrong: the check is free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli import kernels
from bloomcli.formats.dictionary import HashLookup
from bloomcli.model.file import Column, ColumnChunk

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
