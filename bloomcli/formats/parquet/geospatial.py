"""Compares the bounding box and the types of a column chunk's geometries with its values, and sets them right.

DuckDB skips row groups by them. A box that is too wide loses no row, and one that is absent or has a NaN claims
nothing. The edges of a GEOGRAPHY aren't straight, so that its vertices alone don't prove its box right.

Source: the Apache Parquet format, Geospatial.md; parquet.thrift, GeospatialStatistics and BoundingBox.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Final

from bloomcli.formats.parquet import compact
from bloomcli.formats.parquet.compact import Field
from bloomcli.formats.parquet.spec import DOUBLE, I32, LIST, STRUCT, Struct, zigzag
from bloomcli.model.file import Column
from bloomcli.values.literals import kind_of
from bloomcli.values.wkb import Shapes

GEOSPATIAL: Final = "geospatial_statistics"
_KINDS: Final = ("GEOMETRY", "GEOGRAPHY")
_AXES: Final = ("x", "y", "z", "m")
_X, _Y = 0, 1
_POINTS: Final = (1, 4)
"""Point and MultiPoint, in the last digits of a type: they have no edges."""


class Claims:
    """What the GeospatialStatistics of a chunk state.

    Attributes:
        types: the ISO WKB types; empty if they aren't known.
    """

    def __init__(self, found: Struct, column: Column) -> None:
        self._geographic = kind_of(column) == "GEOGRAPHY"
        self._found = found
        self._box = found.struct("bbox", "BoundingBox")
        self.types = found.integers("geospatial_types", I32) or []

    def bounds(self, axis: int) -> tuple[float, float] | None:
        """The box's minimum and maximum of an axis; None if the box makes no claim about it."""
        if self._box is None or (axis > _Y and None in map(self.bounds, (_X, _Y))):
            return None
        ends = [self._box.real(f"{_AXES[axis]}{end}") for end in ("min", "max")]
        low, high = (math.nan if end is None else end for end in ends)
        return None if math.isnan(low) or math.isnan(high) else (low, high)

    def shapes(self) -> Shapes:
        """What measures the values that are compared with this."""
        x = self.bounds(_X)
        return Shapes(geographic=self._geographic, seam=x[0] if x is not None and x[0] > x[1] else None)

    def contradictions(self) -> Iterator[str]:
        """Yield why the box is impossible. That of no coordinates may be infinite."""
        for name, (low, high) in self._axes():
            if name != _AXES[_X] and low > high and math.isfinite(low - high):
                yield f"{name}min is above {name}max"

    def _axes(self) -> Iterator[tuple[str, tuple[float, float]]]:
        """(name, bounds) of the axes that the box makes a claim about."""
        if None in map(self.bounds, (_X, _Y)):
            return
        for axis, name in enumerate(_AXES):
            bounds = self.bounds(axis)
            if bounds is not None:
                yield name, bounds

    def wrong_in_box(self, shapes: Shapes) -> list[str]:
        """The bounds that leave coordinates out."""
        wrong = []
        for name, (low, high) in self._axes():
            found = shapes.extent(_AXES.index(name))
            if found is None:
                continue
            if name == _AXES[_X] and low > high:  # the box crosses the antimeridian
                if shapes.west > high:
                    wrong.append(
                        f"the box has x from {low} across the antimeridian to {high}, and an x is {shapes.west}"
                    )
                continue
            if found[0] < low:
                wrong.append(f"{name}min is {low}, and a coordinate is {found[0]}")
            if found[1] > high:
                wrong.append(f"{name}max is {high}, and a coordinate is {found[1]}")
        return wrong

    def wrong_in_types(self, shapes: Shapes) -> list[str]:
        """That types of values aren't listed."""
        missing = sorted(shapes.types.difference(self.types)) if self.types else []
        return [f"geospatial_types don't have {', '.join(map(str, missing))}, and values have"] if missing else []

    def mended(self, shapes: Shapes) -> tuple[Field | None, str | None]:
        """The statistics with what is wrong set right, or taken out with a reason if the right values aren't known.
        Returns (the statistics; None if nothing is left, the reason)."""
        fields: dict[int, Field] = {}
        reason = "some values aren't known WKB" if shapes.unread else None
        kept = self._found.raw("geospatial_types")
        if not self.wrong_in_types(shapes):
            fields |= {} if kept is None else {2: (LIST, kept)}
        elif reason is None:
            fields[2] = compact.listed(I32, map(zigzag, sorted(shapes.types)))
        kept = self._found.raw("bbox")
        if not self.wrong_in_box(shapes):
            fields |= {} if kept is None else {1: (STRUCT, kept)}
            return (compact.structure(fields) if fields else None), reason
        if self._geographic and any(code % 1000 not in _POINTS for code in shapes.types):
            reason = reason or "the vertices of a geography don't bound its edges"
        ends = [end for axis in range(len(_AXES)) for end in shapes.extent(axis) or (None, None)]
        if reason is None and None not in ends[:4]:
            box = {n: (DOUBLE, struct.pack("<d", end)) for n, end in enumerate(ends, 1) if end is not None}
            fields[1] = compact.structure(box)
        return (compact.structure(fields) if fields else None), reason


def claims(meta: Struct, column: Column) -> Claims | None:
    """What a chunk's metadata claim about its geometries; None without a claim. Raises CorruptFile."""
    found = meta.struct(GEOSPATIAL, "GeospatialStatistics") if kind_of(column) in _KINDS else None
    return None if found is None else Claims(found, column)
