"""Converts row index statistics to bounds that are compared with literals.

A row group's minimum and maximum are also looked up in its filter: if one is missing, the filter is wrong.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

from bloomcli.formats.answer import HashLookup
from bloomcli.formats.orc import hashes
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.values import FLOATS, TEXTS, TIMESTAMPS
from bloomcli.model.file import Column
from bloomcli.rules.writer_table import Part, fault_of
from bloomcli.values.literals import Literal, decode_bound, exclusions

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG")
_NANOS_PER_MILLI: Final = 1_000_000
_BYTE_MAX: Final = 127
EXACT: Final = Context(prec=100, traps=[InvalidOperation, Inexact])
"""More digits than any decimal has: nothing is rounded."""

PARTS: Final = {
    **dict.fromkeys(_INTEGERS, "int_statistics"),
    **dict.fromkeys(FLOATS, "double_statistics"),
    **dict.fromkeys(TEXTS, "string_statistics"),
    **dict.fromkeys(TIMESTAMPS, "timestamp_statistics"),
    "DATE": "date_statistics",
    "DECIMAL": "decimal_statistics",
    "BOOLEAN": "bucket_statistics",
}
"""The field of statistics with the bounds of each kind."""
_BLANK: Final = b" "

Bounds = tuple[bytes | None, bytes | None]
"""(minimum, maximum) as PLAIN bytes of the literal's column; None if unknown."""


def believe(statistics: Iterable[Any], orc: OrcType, created_by: str, part: Part = Part.BOUNDS) -> None:
    """Take out of a column's statistics what contradicts itself, and what the file's writer gets wrong.

    No values and no nulls: Hive's minor compaction writes that for row groups with values (HIVE-20604). Only a value
    or a null in a list has neither, and then reading the row group costs little.
    """
    wrong = any(fault_of(created_by, each, literal_column(orc)) is not None for each in {Part.BOUNDS, part})
    for stats in statistics:
        empty = stats.HasField("number_of_values") and not stats.number_of_values
        if empty and (not stats.has_null or bounds(stats, orc) != (None, None)):
            stats.ClearField("number_of_values")
        if wrong:
            for field in {*PARTS.values(), "binary_statistics"}:
                stats.ClearField(field)


def bounds(statistics: Any, orc: OrcType) -> Bounds:
    """A row group's bounds of a column; None where the statistics have none, or unsound ones."""
    try:
        return _bounds(statistics, orc)
    except (struct.error, OverflowError, InvalidOperation, Inexact, ValueError, TypeError):
        return None, None


def part_of(statistics: Any, orc: OrcType) -> Any | None:
    """The part of statistics that has a column's bounds; None if there is none."""
    name = PARTS.get(orc.kind)
    return getattr(statistics, name) if name is not None and statistics.HasField(name) else None


def _bounds(statistics: Any, orc: OrcType) -> Bounds:
    part = part_of(statistics, orc)
    if part is None or orc.kind == "BOOLEAN":
        return None, None
    if orc.kind in _INTEGERS:
        if orc.kind == "BYTE" and max(part.minimum, part.maximum) > _BYTE_MAX:  # compared unsigned, ORC-1725
            return None, None
        return _pair(part, struct.Struct("<q" if orc.kind == "LONG" else "<i").pack)
    if orc.kind in FLOATS:
        if math.isnan(part.minimum) or math.isnan(part.maximum):  # the other one may leave values out
            return None, None
        return _pair(part, struct.Struct("<f" if orc.kind == "FLOAT" else "<d").pack)
    if orc.kind in TEXTS:
        low, high = _pair(part, utf8)
        if low is None and part.HasField("lower_bound"):
            low = utf8(part.lower_bound)
        if high is None and part.HasField("upper_bound"):
            high = utf8(part.upper_bound)
        return low, high
    if orc.kind == "DECIMAL":
        return _pair(part, lambda v: _unscaled(v, orc.scale))
    if orc.kind == "DATE":
        return _pair(part, struct.Struct("<i").pack)
    if not part.HasField("minimum_utc") or not part.HasField("maximum_utc"):  # the others are local time
        return None, None
    low_nanos = part.minimum_utc * _NANOS_PER_MILLI
    high_nanos = part.maximum_utc * _NANOS_PER_MILLI + _NANOS_PER_MILLI - 1
    return low_nanos.to_bytes(16, "little", signed=True), high_nanos.to_bytes(16, "little", signed=True)


def utf8(value: str | bytes) -> bytes:
    """A string field's bytes, which protobuf returns unchanged if they aren't UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _pair(part: Any, encode: Any) -> Bounds:
    low = encode(part.minimum) if part.HasField("minimum") else None
    high = encode(part.maximum) if part.HasField("maximum") else None
    return low, high


def _unscaled(text: str, scale: int) -> bytes:
    value = Decimal(text).scaleb(scale, context=EXACT)
    if value != value.to_integral_value(context=EXACT):
        raise ValueError("more digits than the column's scale")
    return int(value).to_bytes(16, "little", signed=True)


def has_values(statistics: Any | None) -> bool:
    """Whether there may be values by the statistics, if there are any."""
    return statistics is None or not statistics.HasField("number_of_values") or bool(statistics.number_of_values)


def skips(statistics: Any | None, ends: Bounds, literals: Sequence[Literal], typed: Column) -> Sequence[bool | None]:
    """For each value, whether statistics with these `comparable_bounds` exclude it; None if that is unknown."""
    return exclusions(literals, *ends, typed) if has_values(statistics) else [True] * len(literals)


def comparable_bounds(statistics: Any, orc: OrcType) -> Bounds:
    """A row group's bounds for comparison with values. Those of a CHAR are `unpadded`. A lowest timestamp before
    1970 is a millisecond earlier, because ORC C++ rounds towards zero, and with it the highest is at least the end of
    the first second of 1970, which ORC stores like the second before it. Texts are cut at a zero byte, because ORC
    C++ compares them up to it, and then by their lengths."""
    low, high = bounds(statistics, orc)
    if orc.kind in TEXTS:
        low = None if low is None else _up_to_zero(low, b"\0")
        high = None if high is None else _up_to_zero(high, b"\1")  # above all texts with the zero byte there
    if orc.kind == "CHAR":
        low, high = unpadded(low, high)
    if orc.kind in TIMESTAMPS and low is not None:
        lowest = int.from_bytes(low, "little", signed=True)
        if lowest <= 0:
            low = (lowest - _NANOS_PER_MILLI).to_bytes(16, "little", signed=True)
            second = 1000 * _NANOS_PER_MILLI
            if high is not None and -second <= int.from_bytes(high, "little", signed=True) < second:
                high = second.to_bytes(16, "little", signed=True)
    return low, high


def unpadded(low: bytes | None, high: bytes | None) -> Bounds:
    """Bounds of a CHAR's values without their blanks, from bounds of the values with or without them.

    A value without its blanks comes after one with them, if the latter continues with a byte below the blank: so the
    minimum ends before the first such byte, and the maximum is above all its continuations by blanks and such bytes.
    """
    if low is not None:
        end = next((at for at, byte in enumerate(low) if byte < _BLANK[0]), len(low))
        low = low[:end].rstrip(_BLANK)
    return low, None if high is None else high.rstrip(_BLANK) + b"!"


def _up_to_zero(text: bytes, end: bytes) -> bytes:
    """A text up to its first zero byte, followed by `end`; a text without a zero byte unchanged."""
    before, zero, _ = text.partition(b"\0")
    return before + end if zero else text


_NOT_VALUES: Final = (*TIMESTAMPS, "LIST", "MAP", "UNION")
"""Bounds of timestamps are rounded to milliseconds; filters of compound columns hold lengths."""


def missing_bounds(stats: Any, orc: OrcType, typed: Column, bits: HashLookup) -> Iterator[tuple[str, bytes]]:
    """Yield each bound that is a value but isn't in the filter: ("minimum" or "maximum", its PLAIN bytes in `typed`).

    Source: the Apache ORC specification, StringStatistics: long bounds are shortened, in lower_bound and upper_bound,
    and aren't values of the column.
    """
    if stats is None or orc.kind in _NOT_VALUES or orc.kind not in hashes.HASHABLE or orc.fault is not None:
        return
    low, high = bounds(stats, orc)
    if orc.kind in TEXTS:
        part = stats.string_statistics
        low = low if part.HasField("minimum") else None
        high = high if part.HasField("maximum") else None
    for which, bound in (("minimum", low), ("maximum", high)):
        if bound is None or (orc.kind in FLOATS and not decode_bound(bound, typed)):
            continue  # a zero has either sign
        if not bits.check(hashes.encoded_hash(bound, orc, typed)):
            yield which, bound
