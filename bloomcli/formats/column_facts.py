"""The metadata's facts about a column, and merging the bounds of its parts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import gt
from typing import Any, Final, NamedTuple

from bloomcli.model.file import Column
from bloomcli.values.literals import decode_bound, kind_of

MISORDERED: Final = "the statistics are wrong: a minimum is above its maximum"
UNORDERED: Final = "the statistics have bounds that aren't values of the type"

_ORDERLESS: Final = ("BOOLEAN", "INTERVAL", "INT96", "UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY")
"""Kinds without an order, or with bounds that `probe` doesn't accept as values."""

_TEXTS: Final = ("BYTE_ARRAY", "STRING", "ENUM", "JSON")
"""Kinds whose keys are their bytes."""
_CODES: Final = {("INT32", True): "i", ("INT32", False): "I", ("INT64", True): "q", ("INT64", False): "Q"}
_WIDTHS: Final = {"INT32": 4, "INT64": 8}


class Bounds(NamedTuple):
    """Bounds of a column over all units, as PLAIN bytes of `literal_column`; or why there are none."""

    low: bytes | None = None
    high: bytes | None = None
    low_exact: bool | None = None
    high_exact: bool | None = None
    problem: str | None = None


NO_BOUNDS: Final = Bounds()


class ColumnFacts(NamedTuple):
    """The metadata's facts about a column. What is None isn't known."""

    column: Column
    typed: Column
    """The column with the type by which `literals` reads and renders its values."""
    encodings: tuple[str, ...] = ()
    compression: tuple[str, ...] = ()
    values: int | None = None
    nulls: int | None = None
    compressed_bytes: int | None = None
    uncompressed_bytes: int | None = None
    dictionary_bytes: int | None = None
    distinct: int | None = None
    distinct_from: str | None = None
    bounds: Bounds = NO_BOUNDS
    bucket: int | None = None


def merged_bounds(
    lows: Sequence[bytes | None],
    highs: Sequence[bytes | None],
    typed: Column,
    exact: tuple[Sequence[bool | None], Sequence[bool | None]] | None = None,
) -> Bounds:
    """Merge the bounds of several units. A bound is unknown if a unit doesn't have it.

    Args:
        lows, highs: PLAIN bytes of `typed`, one for each unit with values.
        exact: whether each bound is a value of the column, by the statistics.
    """
    low_keys, high_keys = _keys(lows, typed), _keys(highs, typed)
    if low_keys is not None and high_keys is not None and any(map(gt, low_keys, high_keys)):
        return Bounds(problem=MISORDERED)
    problem = None
    for values, keys in ((lows, low_keys), (highs, high_keys)):
        if keys is None and values and None not in values and kind_of(typed) not in _ORDERLESS:
            problem = UNORDERED
    low = low_keys.index(min(low_keys)) if low_keys else None
    high = high_keys.index(max(high_keys)) if high_keys else None
    return Bounds(
        None if low is None else lows[low],
        None if high is None else highs[high],
        None if low is None or exact is None else exact[0][low],
        None if high is None or exact is None else exact[1][high],
        problem,
    )


def _keys(values: Sequence[bytes | None], typed: Column) -> Sequence[Any] | None:
    """Comparable keys of bounds; None if one is missing or isn't a value of the type."""
    if None in values:
        return None
    if typed.physical in _WIDTHS:
        packed = b"".join(values)  # type: ignore[arg-type]  # none is None
        width = _WIDTHS[typed.physical]
        if all(len(v) == width for v in values if v is not None):
            code = _CODES[typed.physical, typed.signed]
            return struct.unpack(f"<{len(values)}{code}", packed)
        return None
    if typed.physical == "BYTE_ARRAY" and kind_of(typed) in _TEXTS:
        return values
    keys = [decode_bound(v, typed) for v in values if v is not None]
    return None if None in keys else keys
