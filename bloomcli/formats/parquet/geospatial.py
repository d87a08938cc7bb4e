"""The bounding box and the types of a column chunk's geometries, by which DuckDB skips row groups, set right.

The edges of a GEOGRAPHY aren't straight, so that its vertices alone don't prove its box right.

Source: the Apache Parquet format, Geospatial.md; parquet.thrift, GeospatialStatistics and BoundingBox.
"""

from __future__ import annotations

from typing import Any, Final

from bloomcli.formats.geospatial import BOX, Claims
from bloomcli.formats.parquet.spec import I32, Struct, encoded
from bloomcli.model.file import Column
from bloomcli.values.literals import kind_of
from bloomcli.values.wkb import Shapes

GEOSPATIAL: Final = "geospatial_statistics"
_KINDS: Final = ("GEOMETRY", "GEOGRAPHY")
_POINTS: Final = (1, 4)
"""Point and MultiPoint, in the last digits of a type: they have no edges."""


class ChunkClaims(Claims):
    """What the GeospatialStatistics of a chunk state."""

    def __init__(self, found: Struct, column: Column) -> None:
        self._found = found
        box = found.struct("bbox", "BoundingBox")
        types = found.integers("geospatial_types", I32) or []
        geographic = kind_of(column) == "GEOGRAPHY"
        super().__init__(None if box is None else [box.real(end) for end in BOX], types, geographic=geographic)

    def mended(self, shapes: Shapes) -> tuple[bytes | None, str | None]:
        """The statistics with what is wrong set right, or taken out with a reason if the right values aren't known.
        Returns (the encoded statistics; None if nothing is left, the reason)."""
        types: Any = self._found.raw("geospatial_types")
        box: Any = self._found.raw("bbox")
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


def claims(meta: Struct, column: Column) -> ChunkClaims | None:
    """What a chunk's metadata claim about its geometries; None without a claim. Raises CorruptFile."""
    found = meta.struct(GEOSPATIAL, "GeospatialStatistics") if kind_of(column) in _KINDS else None
    return None if found is None else ChunkClaims(found, column)
