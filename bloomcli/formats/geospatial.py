"""Compares a bounding box and types of geometries, as metadata state them, with the values.

A box that is too wide loses no row, and one that is absent or has a NaN claims nothing.

Source: the Apache Parquet format, Geospatial.md; the Apache ORC specification (ORC v2), Geometry and Geography types,
which has taken the same rules over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.values.wkb import Shapes

BOX: Final = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
"""The fields of a box, in both formats."""
_AXES: Final = ("x", "y", "z", "m")
_X, _Y = 0, 1


class Claims:
    """What metadata state about geometries.

    Args:
        box: the bounds in the order of `BOX`, None for each that is absent; None without a box.
        types: the ISO WKB types; empty if they aren't known.
        geographic: whether they are geographies.
    """

    def __init__(self, box: Sequence[float | None] | None, types: Sequence[int], *, geographic: bool) -> None:
        self._box, self.types, self.geographic = box, types, geographic

    def bounds(self, axis: int) -> tuple[float, float] | None:
        """The box's minimum and maximum of an axis; None if the box makes no claim about it."""
        if self._box is None or (axis > _Y and None in map(self.bounds, (_X, _Y))):
            return None
        low, high = (math.nan if end is None else end for end in self._box[2 * axis : 2 * axis + 2])
        return None if math.isnan(low) or math.isnan(high) else (low, high)

    def shapes(self) -> Shapes:
        """What measures the values that are compared with this."""
        x = self.bounds(_X)
        return Shapes(geographic=self.geographic, seam=x[0] if x is not None and x[0] > x[1] else None)

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
            extent = shapes.extent(_AXES.index(name))
            if extent is None:
                continue
            if name == _AXES[_X] and low > high:  # the box crosses the antimeridian
                if low == shapes.seam and shapes.west > high:
                    wrong.append(
                        f"the box has x from {low} across the antimeridian to {high}, and an x is {shapes.west}"
                    )
                continue
            if extent[0] < low:
                wrong.append(f"{name}min is {low}, and a coordinate is {extent[0]}")
            if extent[1] > high:
                wrong.append(f"{name}max is {high}, and a coordinate is {extent[1]}")
        return wrong

    def wrong_in_types(self, shapes: Shapes) -> list[str]:
        """That types of values aren't listed."""
        missing = sorted(shapes.types.difference(self.types)) if self.types else []
        return [f"geospatial_types don't have {', '.join(map(str, missing))}, and values have"] if missing else []
