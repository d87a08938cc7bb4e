"""Judges a chunk's statistics: which of them contradict each other, and which bounds its filter must have.

Nothing is skipped by metadata that contradict other metadata of the same chunk. A chunk's minimum and maximum are
looked up in its filter: if one is missing, the filter is wrong, and the check is free.

The bounding box and the types of a chunk's geometries, by which DuckDB skips row groups, are set right here too. The
edges of a GEOGRAPHY aren't straight, so that its vertices alone don't prove its box right.

Source: the Apache Parquet format, Geospatial.md; parquet.thrift, Statistics, GeospatialStatistics and BoundingBox.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomcli import kernels
from bloomcli.formats.answer import HashLookup
from bloomcli.formats.geospatial import BOX, Claims
from bloomcli.formats.parquet.spec import I32, Struct, encoded
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.values.literals import decode_bound, kind_of
from bloomcli.values.wkb import Shapes

_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_FLOATS: Final = ("FLOAT", "DOUBLE")
_BYTES: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


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


def non_null_values(chunk: ColumnChunk) -> int:
    """The number of non-null leaf values; all values if the statistics have no null count."""
    return max(chunk.num_values - (chunk.null_count or 0), 0)


def width_of(column: Column) -> int | None:
    """Bytes of a value of a fixed-width column; None for BYTE_ARRAY."""
    return column.type_length if column.physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(column.physical)


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
        return (0 if logical in _MANY_FORMS else _OF_WIDTH), width_of(column) or 0
    width = None if physical == "INT96" else width_of(column)
    return NO_VALUES if width is None else (_FLOAT_KINDS.get(physical, _OF_WIDTH), width)


GEOSPATIAL: Final = "geospatial_statistics"
_SHAPES: Final = ("GEOMETRY", "GEOGRAPHY")
_POINTS: Final = (1, 4)
"""Point and MultiPoint, in the last digits of a type: they have no edges."""


class ChunkClaims(Claims):
    """What the GeospatialStatistics of a chunk state."""

    def __init__(self, struct: Struct, column: Column) -> None:
        self._struct = struct
        box = struct.struct("bbox", "BoundingBox")
        types = struct.integers("geospatial_types", I32) or []
        geographic = kind_of(column) == "GEOGRAPHY"
        super().__init__(None if box is None else [box.real(end) for end in BOX], types, geographic=geographic)

    def mended(self, shapes: Shapes) -> tuple[bytes | None, str | None]:
        """The statistics with what is wrong set right, or taken out with a reason if the right values aren't known.
        Returns (the encoded statistics; None if nothing is left, the reason)."""
        types: Any = self._struct.raw("geospatial_types")
        box: Any = self._struct.raw("bbox")
        reason = "some values aren't known WKB" if shapes.unread else None
        if self.wrong_in_types(shapes):
            types = sorted(shapes.types) if reason is None else None
        if self.wrong_in_box(shapes):
            if self.geographic and any(code % 1000 not in _POINTS for code in shapes.types):
                reason = reason or "the vertices of a geography don't bound its edges"
            ends = [end for axis in range(len(BOX) // 2) for end in shapes.extent(axis) or (None, None)]
            box = dict(zip(BOX, ends, strict=True)) if reason is None and None not in ends[:4] else None
        if box is None and types is None:
            return None, reason
        return encoded("GeospatialStatistics", {"bbox": box, "geospatial_types": types}), reason


def geospatial_claims(meta: Struct, column: Column) -> ChunkClaims | None:
    """What a chunk's metadata claim about its geometries; None without a claim. Raises CorruptFile."""
    struct = meta.struct(GEOSPATIAL, "GeospatialStatistics") if kind_of(column) in _SHAPES else None
    return None if struct is None else ChunkClaims(struct, column)
