"""Values as keys that compare with those of a table's metadata (`bloomcli.model.table_statistics`).

A file and its table may store a column differently: a decimal as integer or bytes, a timestamp in milliseconds or
nanoseconds, a column that was widened since. Keys of all these forms compare with each other.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

from bloomcli.model.file import Column
from bloomcli.model.table_statistics import Key, Kind
from bloomcli.values import calendar
from bloomcli.values.literals import JULIAN_EPOCH, PER_SECOND, WIDE, decode_bound, kind_of

_NUMBERS: Final = ("INTEGER", "INT32", "INT64", "FLOAT", "DOUBLE", "DECIMAL", "FLOAT16")
_KINDS: Final = {
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIME": Kind.TIME,
    "INT96": Kind.INSTANT,
    **dict.fromkeys(_NUMBERS, Kind.NUMBER),
}
_STRINGS: Final = (Kind.TEXT, Kind.BYTES)
_TIMES: Final = (Kind.TIMESTAMP, Kind.INSTANT)


def kind_of_column(column: Column) -> Kind | None:
    """The kind of a column's keys; None if its values don't compare with a table's."""
    name = kind_of(column)
    if name == "TIMESTAMP":
        return Kind.TIMESTAMP if column.utc is False else Kind.INSTANT
    if name in _KINDS:
        return _KINDS[name]
    return Kind.BYTES if column.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} else None


def comparable(of_file: Kind | None, of_table: Kind) -> bool:
    """Whether keys of a file's column compare with those of the table's. A date may have become a timestamp."""
    if of_table in _STRINGS:
        return of_file in _STRINGS
    return of_file is of_table or (of_file is Kind.DATE and of_table in _TIMES)


def key_of(encoded: bytes, column: Column) -> Key | None:
    """The key of a PLAIN value of a column; None for NaN, and for bytes that aren't a value of the type."""
    name = kind_of(column)
    if name == "BOOLEAN":
        return encoded[0] if len(encoded) == 1 else None
    if name == "INT96":
        if len(encoded) != 12:
            return None
        of_day, day = struct.unpack("<qi", encoded)
        return int((day - JULIAN_EPOCH) * calendar.DAY_NANOS + of_day)
    key = decode_bound(encoded, column)
    if key is None or isinstance(key, bytes | float):
        return key
    number = int(key)
    if name == "DECIMAL":
        return Decimal(number).scaleb(-column.scale, context=WIDE)
    if name == "DATE":
        return number * calendar.DAY_NANOS
    if name in {"TIME", "TIMESTAMP"}:
        return number * (10**9 // PER_SECOND[column.unit or "NANOS"])
    return number


def parse_key(text: str, kind: Kind, *, float_bytes: int | None = None) -> Key | None:
    """The key of a value's text as tables' JSON has it; None for NaN.

    Args:
        text: the value; bytes in hexadecimal digits.
        kind: its kind.
        float_bytes: 4 or 8 for a floating-point number, whose text is rounded to it; None for an exact one.

    Raises:
        ValueError, ArithmeticError: the text isn't a value of this kind.
    """
    match kind:
        case Kind.BOOLEAN:
            return ("false", "true").index(text.lower())
        case Kind.DATE:
            return calendar.parse_date(text) * calendar.DAY_NANOS
        case Kind.TIME:
            return calendar.parse_time(text)
        case Kind.TIMESTAMP | Kind.INSTANT:
            moment, ahead = calendar.split_zone(text)
            return calendar.parse_timestamp(moment) - (ahead or 0)
        case Kind.TEXT:
            return text.encode("utf-8", "surrogatepass")
        case Kind.BYTES:
            return bytes.fromhex(text)
    if float_bytes is None:
        number = WIDE.create_decimal(text)
        if not number.is_finite():
            raise ValueError("not a number")
        return number
    value = float(text)
    if float_bytes == 4 and math.isfinite(value):
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    return None if math.isnan(value) else value


def text_of(key: Key, kind: Kind | None) -> str:
    """A key as text, as `bloom probe` takes values."""
    match key, kind:
        case bytes(), Kind.TEXT:
            return repr(key.decode("utf-8", "backslashreplace"))
        case bytes(), _:
            return f"0x{key.hex()}"
        case int(), Kind.BOOLEAN:
            return "true" if key else "false"
        case int(), Kind.DATE:
            return calendar.format_date(key // calendar.DAY_NANOS)
        case int(), Kind.TIME if 0 <= key < calendar.DAY_NANOS:
            return calendar.format_time(key)
        case int(), Kind.TIMESTAMP:
            return calendar.format_timestamp(key)
        case int(), Kind.INSTANT:
            return f"{calendar.format_timestamp(key)}Z"
        case Decimal(), _:
            return f"{key:f}"
    return str(key)
