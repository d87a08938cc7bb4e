"""Row-index statistics as bounds that literals compare with."""

from __future__ import annotations

import struct
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from bloomcli.formats.orc.schema import OrcType
from bloomcli.model.file import Column

if TYPE_CHECKING:
    from bloomcli.values.literals import Literal

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG")
_NANOS_PER_MILLI: Final = 1_000_000
_EXACT: Final = Context(prec=100, traps=[InvalidOperation, Inexact])
"""More digits than any decimal has: nothing is rounded."""

Bounds = tuple[bytes | None, bytes | None]
"""(minimum, maximum) as PLAIN bytes of the literal's column; None where they aren't known."""


def bounds(statistics: Any, orc: OrcType) -> Bounds:
    """A row group's bounds of a column. Unknown where the statistics don't hold any, or none that are sound."""
    try:
        return _bounds(statistics, orc)
    except (struct.error, OverflowError, InvalidOperation, Inexact, ValueError, TypeError):
        return None, None


def _bounds(statistics: Any, orc: OrcType) -> Bounds:
    if orc.kind in _INTEGERS and statistics.HasField("int_statistics"):
        found = statistics.int_statistics
        form = "<q" if orc.kind == "LONG" else "<i"
        return _pair(found, lambda v: struct.pack(form, v))
    if orc.kind in {"FLOAT", "DOUBLE"} and statistics.HasField("double_statistics"):
        form = "<f" if orc.kind == "FLOAT" else "<d"
        return _pair(statistics.double_statistics, lambda v: struct.pack(form, v))
    if orc.kind in {"STRING", "CHAR", "VARCHAR"} and statistics.HasField("string_statistics"):
        found = statistics.string_statistics
        low, high = _pair(found, _utf8)
        if low is None and found.HasField("lower_bound"):
            low = _utf8(found.lower_bound)
        if high is None and found.HasField("upper_bound"):
            high = _utf8(found.upper_bound)
        return low, high
    if orc.kind == "DECIMAL" and statistics.HasField("decimal_statistics"):
        return _pair(statistics.decimal_statistics, lambda v: _unscaled(v, orc.scale))
    if orc.kind == "DATE" and statistics.HasField("date_statistics"):
        return _pair(statistics.date_statistics, lambda v: struct.pack("<i", v))
    if orc.kind in {"TIMESTAMP", "TIMESTAMP_INSTANT"} and statistics.HasField("timestamp_statistics"):
        found = statistics.timestamp_statistics
        if found.HasField("minimum_utc") and found.HasField("maximum_utc"):  # the others are local time
            low_nanos = found.minimum_utc * _NANOS_PER_MILLI
            high_nanos = found.maximum_utc * _NANOS_PER_MILLI + _NANOS_PER_MILLI - 1
            return low_nanos.to_bytes(16, "little", signed=True), high_nanos.to_bytes(16, "little", signed=True)
    return None, None


def _utf8(value: str | bytes) -> bytes:
    """A string field's bytes, which protobuf returns unchanged if they aren't UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _pair(found: Any, encode: Any) -> Bounds:
    low = encode(found.minimum) if found.HasField("minimum") else None
    high = encode(found.maximum) if found.HasField("maximum") else None
    return low, high


def _unscaled(text: str, scale: int) -> bytes:
    value = Decimal(text).scaleb(scale, context=_EXACT)
    if value != value.to_integral_value(context=_EXACT):
        raise ValueError("more digits than the column's scale")
    return int(value).to_bytes(33, "big", signed=True)


def skips(statistics: Any, literal: Literal, orc: OrcType, typed: Column) -> bool | None:
    """Whether statistics alone exclude a value; None if that is unknown."""
    from bloomcli.values.literals import excluded_by

    if statistics is None or orc.kind in {"LIST", "MAP", "UNION", "STRUCT"}:
        return None
    if statistics.HasField("number_of_values") and statistics.number_of_values == 0:
        return True
    low, high = bounds(statistics, orc)
    if orc.kind == "CHAR" and low is not None:  # stored padded, compared without
        low = low.rstrip(b" ")
    return excluded_by(literal, low, high, typed)
