"""Converts row group statistics to bounds that are compared with literals."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from bloomcli import kernels
from bloomcli.formats.mosaic.footer import RowGroup
from bloomcli.formats.mosaic.schema import WIDTHS, MosaicColumn, literal_column
from bloomcli.model.file import Column
from bloomcli.values.literals import Literal, decode_bound, exclusions

_NANOS_PER_MILLI = 1_000_000


def bound_hashes(group: RowGroup, column: MosaicColumn) -> list[int]:
    """The hashes of a row group's own minimum and maximum, if these are exact. If the filter doesn't have one, filter
    or statistics are wrong. Zeros and NaNs are left out, because they have several encodings."""
    stats = group.statistics.get(column.index)
    if stats is None or stats.nulls >= group.rows:
        return []
    text, width = column.family == "STRING", WIDTHS.get(column.family)
    ends = [bound for bound in (stats.minimum, stats.maximum) if bound is not None]
    forms = ends if text else [bound[::-1] for bound in ends if len(bound) == width]
    exact = column.family not in {"FLOAT", "DOUBLE"}
    return [kernels.xxh64(form) for form in forms if exact or decode_bound(form, literal_column(column))]


def plain(bound: bytes | None, column: MosaicColumn) -> bytes | None:
    """A bound as PLAIN bytes of the literal's column; None if it is unknown or has no such bytes."""
    if bound is None:
        return None
    kind = column.family
    if kind in {"STRING", "BYTES"}:
        return bound
    if kind == "DECIMAL":
        number = int.from_bytes(bound, "big", signed=True)
        return number.to_bytes(16, "little", signed=True) if number.bit_length() < 128 else None
    if kind in {"INT8", "INT16"}:  # literals are 32 bits wide
        return struct.pack("<i", int.from_bytes(bound, "big", signed=True))
    if column.width == 12:
        millis, nanos = struct.unpack(">qi", bound)
        total = millis * _NANOS_PER_MILLI + nanos
        return struct.pack("<q", total) if -(1 << 63) <= total < 1 << 63 else None
    return bound[::-1] if column.width in {4, 8} else None


def bounds(group: RowGroup, column: MosaicColumn) -> tuple[bytes | None, bytes | None]:
    """The minimum and the maximum of a column in a row group, in the form of `plain`."""
    stats = group.statistics.get(column.index)
    return (None, None) if stats is None else (plain(stats.minimum, column), plain(stats.maximum, column))


def skips(group: RowGroup, literals: Sequence[Literal], column: MosaicColumn, typed: Column) -> Sequence[bool | None]:
    """For each value, whether statistics alone exclude it; None if unknown."""
    stats = group.statistics.get(column.index)
    if stats is None or column.family == "BOOLEAN":
        return [None] * len(literals)
    if stats.nulls >= group.rows:
        return [True] * len(literals)
    return exclusions(literals, *bounds(group, column), typed)
