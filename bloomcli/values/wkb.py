"""The extents and the types of geometries in well-known binary (WKB).

ISO WKB with points, lines, polygons, and collections of them is read. EWKB, curves and surfaces aren't: points don't
bound an arc.

Source: OpenGIS Simple feature access, part 1, section 8.2; the Apache Parquet format, Geospatial.md.
"""

from __future__ import annotations

import math
import struct
from typing import Final

_AXES: Final = ((0, 1), (0, 1, 2), (0, 1, 3), (0, 1, 2, 3))
"""By the thousands of a type: the axes of its coordinates. X, Y, Z and M are numbered from 0."""
_POINT, _POLYGON, _COLLECTION = 1, 3, 7
_HEADER: Final = 5
_FEW: Final = 32
"""Up to so many coordinates, Python is faster than NumPy."""
_LIMITS: Final = (180.0, 90.0, math.inf, math.inf)
"""The greatest longitude and latitude of a geography."""


class Shapes:
    """The least and the greatest coordinates of geometries, without NaN.

    Args:
        geographic: coordinates beyond the canonical ranges are left out.
        seam: X coordinates below it are measured apart, too, for a box that crosses the antimeridian.

    Attributes:
        types: the ISO WKB types of the values.
        unread: the number of values that aren't known WKB.
        lows: the least coordinate of each axis, X, Y, Z and M; infinite without coordinates.
        highs: the greatest ones; negative infinite without coordinates.
        west: the greatest X below `seam`; negative infinite without one.
    """

    def __init__(self, *, geographic: bool, seam: float | None = None) -> None:
        self._limits = _LIMITS if geographic else (math.inf,) * 4
        self.seam = -math.inf if seam is None else seam
        self.types: set[int] = set()
        self.unread = 0
        self.lows = [math.inf] * 4
        self.highs = [-math.inf] * 4
        self.west = -math.inf

    def add(self, value: bytes) -> None:
        """Add a value. One that isn't known WKB is only counted."""
        before = self.lows[:], self.highs[:], self.west
        try:
            self.types.add(self._walk(value))
        except (ValueError, struct.error):
            self.lows, self.highs, self.west = before
            self.unread += 1

    def joined(self, other: Shapes) -> Shapes:
        """The measures of both."""
        shapes = Shapes(geographic=self._limits is _LIMITS, seam=self.seam)
        shapes.types = self.types | other.types
        shapes.unread = self.unread + other.unread
        shapes.lows = list(map(min, self.lows, other.lows))
        shapes.highs = list(map(max, self.highs, other.highs))
        shapes.west = max(self.west, other.west)
        return shapes

    def extent(self, axis: int) -> tuple[float, float] | None:
        """The least and the greatest coordinate of an axis; None without one."""
        low, high = self.lows[axis], self.highs[axis]
        return (low, high) if low <= high else None

    def _walk(self, value: bytes) -> int:
        """Add the coordinates of a geometry and of all that it contains, and return its type. Each round takes
        bytes of the value. Raises ValueError, struct.error."""
        at, pending, outer = 0, 1, 0
        while pending:
            order = {b"\0": ">", b"\1": "<"}.get(value[at : at + 1])
            if order is None:
                raise ValueError("no byte order")
            (code,) = struct.unpack_from(f"{order}I", value, at + 1)
            dimensions, kind = divmod(code, 1000)
            if dimensions >= len(_AXES) or not _POINT <= kind <= _COLLECTION:
                raise ValueError("a type that isn't known")
            at, pending, outer = at + _HEADER, pending - 1, outer or code
            parts = 1
            if kind >= _POLYGON:
                (parts,) = struct.unpack_from(f"{order}I", value, at)
                at += 4
            if kind > _POLYGON:  # each part has a header
                pending += parts
                if pending * _HEADER > len(value) - at:
                    raise ValueError("more geometries than bytes")
                continue
            for _ in range(parts):
                points = 1
                if kind != _POINT:
                    (points,) = struct.unpack_from(f"{order}I", value, at)
                    at += 4
                at = self._add_points(value, at, order, points, _AXES[dimensions])
        if at != len(value):
            raise ValueError("bytes after the geometry")
        return outer

    def _add_points(self, value: bytes, at: int, order: str, points: int, axes: tuple[int, ...]) -> int:
        """Add the coordinates of points, and return where they end. Raises ValueError."""
        count = points * len(axes)
        if count * 8 > len(value) - at:
            raise ValueError("more points than bytes")
        if count > _FEW:
            import numpy as np  # few files have such values

            every = np.frombuffer(value, f"{order}f8", count, at)
            for place, axis in enumerate(axes):
                coordinates = every[place :: len(axes)]
                coordinates = coordinates[np.abs(coordinates) <= self._limits[axis]]  # and not NaN
                west = coordinates[coordinates < self.seam] if axis == 0 else coordinates[:0]
                for some in (coordinates, west):
                    if len(some):
                        self._include(axis, (float(some.min()), float(some.max())))
        elif count:
            few = struct.unpack_from(f"{order}{count}d", value, at)
            for place, axis in enumerate(axes):
                self._include(axis, few[place :: len(axes)])
        return at + count * 8

    def _include(self, axis: int, numbers: tuple[float, ...]) -> None:
        limit = self._limits[axis]
        for number in numbers:
            if abs(number) <= limit:
                self.lows[axis] = min(self.lows[axis], number)
                self.highs[axis] = max(self.highs[axis], number)
                if axis == 0 and self.west < number < self.seam:
                    self.west = number
