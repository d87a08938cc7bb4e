"""Converts values on the command line to a column's physical values, and back.

`parse` reads a value by the column's logical type and returns the bytes to hash: PLAIN encoding, as defined in the
Apache Parquet specification (Encodings.md, LogicalTypes.md). A value that the column can't store ("300" in an 8-bit
integer) isn't an error: it is absent, with a reason. Min/max statistics rule out a value by these bytes, too.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, NamedTuple

from bloomcli.errors import LiteralError
from bloomcli.model.file import Column
from bloomcli.values import calendar
from bloomcli.words import counted


def type_name(column: Column) -> str:
    """Return the usual name of a column's type: `type_name` if set, else the logical type, else the physical type."""
    return column.type_name or column.logical or column.physical


def kind_of(column: Column) -> str:
    """Return the logical type's name without its parameters, else the physical type."""
    return (column.logical or column.physical).partition("(")[0]


def parquet_column(column: Column, kind: str, bits: int | None = None) -> Column:
    """The column of another format with the Parquet type that holds the same values.

    `bits`: the width of signed integers, whose `kind` doesn't matter. Other types have the same names as Parquet's
    physical or logical types; those that Parquet doesn't have are byte arrays.
    """
    if bits is not None:
        physical = "INT64" if bits == 64 else "INT32"
        return replace(column, physical=physical, logical=f"INTEGER({bits},signed)", bit_width=bits)
    if kind in {"FLOAT", "DOUBLE", "BOOLEAN"}:
        return replace(column, physical=kind)
    if kind == "DATE":
        return replace(column, physical="INT32", logical="DATE")
    if kind == "DECIMAL":
        return replace(column, physical="INT128", logical=f"DECIMAL({column.precision},{column.scale})")
    return replace(column, physical="BYTE_ARRAY", logical=kind if kind in _NAMED_BYTES else None)


WIDE: Final = Context(prec=4000, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
"""A context that raises an exception for numbers that it can't represent exactly."""


PER_SECOND: Final = {"MILLIS": 10**3, "MICROS": 10**6, "NANOS": 10**9}
JULIAN_EPOCH: Final = 2440588
"""Julian day of 1970-01-01, which INT96 timestamps count from."""
_NAMED_BYTES: Final = ("STRING", "GEOMETRY", "GEOGRAPHY")
_TEXTS: Final = ("STRING", "ENUM", "JSON")
"""Logical types whose values are text."""
_GEOSPATIAL: Final = ("GEOMETRY", "GEOGRAPHY")
_MOST_DIGITS: Final = 4000
"""Digits of a decimal, the precision of `decimals.WIDE`: more than any column can store. A number with more digits is
rejected, never rounded."""
_WHOLE: Final = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]{1,100})\s*")
_UUID: Final = re.compile(r"\s*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*", re.IGNORECASE)
_BYTES: Final = re.compile(r"0[xX](?:[0-9a-fA-F]{2})+")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){4,}")
_BASE64: Final = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9+/=])[A-Za-z0-9+/]{8,}={0,2}")
"""Letters of both cases and digits: words in plain language rarely match."""
_FLOATS: Final = {2: "<e", 4: "<f", 8: "<d"}
_INT: Final = {4: "<i", 8: "<q"}
_TRUTH: Final = {"true": b"\1", "1": b"\1", "false": b"\0", "0": b"\0"}
_INTEGERS: Final = ("INT32", "INT64", "INT128")
"""Little-endian integers. INT128 isn't a type of Parquet: other formats' decimals, and nanoseconds beyond 64 bits."""


class Literal(NamedTuple):
    """A parsed value, ready for lookup."""

    text: str
    encodings: tuple[bytes, ...] = ()
    """The PLAIN bytes to look up; several if the value has several encodings (positive and negative zero), or may
    mean several values (a UUID's text in a binary column)."""
    impossible: str | None = None
    """Why the column can't store the value; the value is then absent."""
    unknowable: str | None = None
    """Why no filter can answer for the value."""
    order_key: Any = None
    """Comparable with the results of `decode_bound`; None if the type has no order."""


class _Impossible(Exception):
    """The column's type can't store the value. Argument: the reason."""


class _Malformed(Exception):
    """The text isn't a value of the column's type. Arguments: a valid example and, if not obvious, the reason."""


def parse(text: str, column: Column, *, path: str | None = None) -> Literal:
    """Parse `text` as a value of `column`.

    If a table has widened the column since the file was written (`Column.wide`), the text is a value of the wider
    type, and the file may only have it in the narrower type if the two are equal.

    Raises:
        LiteralError: the text isn't a value of the column's type.
    """
    if column.physical == "BOOLEAN":
        encoding = _TRUTH.get(text.strip().lower())
        encodings = () if encoding is None else (encoding,)
        return Literal(text=text, encodings=encodings, unknowable="BOOLEAN columns have no meaningful filter")
    kind = kind_of(column)
    narrow = None if column.wide is None else _NARROW.get((column.wide, kind))
    number = _uuid_bytes(text) if is_binary(column) else None
    if number is not None and column.type_length == len(number):
        return Literal(text=text, encodings=(number,), order_key=decode_bound(number, column))
    if number is not None and column.type_length is None:  # values may be UUIDs or their texts
        return Literal(text=text, encodings=(text.encode(), number))
    try:
        in_file = text if narrow is None else narrow(text, column)
        if column.physical in {"FLOAT", "DOUBLE"} or kind == "FLOAT16":
            return _float(in_file, column)._replace(text=text)
        encoded = _PARSERS.get(kind, _plain)(in_file, column)
    except _Impossible as reason:
        return Literal(text=text, impossible=str(reason))
    except _Malformed as error:
        example, *why = error.args
        named = type_name(column) if narrow is None else column.wide
        raise LiteralError(
            ": ".join((f"{text!r} is not a value of column {column.path}, {named}", *why)),
            text=text,
            path=path,
            hint=f"write it like {example}",
        ) from None
    return Literal(text=text, encodings=(encoded,), order_key=decode_bound(encoded, column))


def not_boolean(literal: Literal, column: Column, path: str) -> LiteralError:
    """The error about a literal of a BOOLEAN column without encodings, where the values are needed."""
    return LiteralError(
        f"{literal.text!r} is not a value of column {column.path}, BOOLEAN",
        text=literal.text,
        path=path,
        hint="write it like true or false",
    )


def _integer(text: str, column: Column) -> bytes:
    match = _WHOLE.fullmatch(text)
    if match is not None:  # the usual case, which doesn't need `decimal`
        value = int(match[2], 16 if match[2][:2] in {"0x", "0X"} else 10) * (-1 if match[1] == "-" else 1)
    else:
        number = _decimal_text(text, column, "42")
        if number != number.to_integral_value(context=WIDE):
            raise _Impossible(f"{type_name(column)} holds whole numbers, not {text}")
        if number.adjusted() > WIDE.prec:
            raise _too_far(text, column)
        value = int(number)
    width = 4 if column.physical == "INT32" else 8
    bits = column.bit_width or width * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if column.signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise _Impossible(f"{type_name(column)} holds {low} to {high}, not {text.strip()}")
    return (value & (1 << width * 8) - 1).to_bytes(width, "little")


def _decimal_text(text: str, column: Column, example: str) -> Decimal:
    try:
        number = WIDE.create_decimal(text.strip())
    except InvalidOperation:
        raise _Malformed(example) from None
    except Inexact:
        raise _Impossible(f"{type_name(column)} can't hold so many digits") from None
    if not number.is_finite() or "_" in text:
        raise _Malformed(example)
    return number or Decimal(0)  # 0E+999 is zero


def _decimal(text: str, column: Column) -> bytes:
    number = _decimal_text(text, column, "12.34")
    if abs(number.adjusted()) + column.scale > WIDE.prec:
        raise _too_far(text, column)
    scaled = number.scaleb(column.scale, context=WIDE)
    if scaled != scaled.to_integral_value(context=WIDE):
        raise _too_far(text, column)
    unscaled = int(scaled)
    fixed = _fixed_width(column)
    # values of Parquet's fixed widths can have more digits than the column's type says: pandas wrote such files
    exact = not fixed or column.physical == "INT128"
    if exact and column.precision and len(str(abs(unscaled))) > column.precision:
        raise _Impossible(f"{type_name(column)} has {counted(column.precision, 'digit')}, too few for {text}")
    # the shortest two's complement form
    width = fixed or (unscaled.bit_length() if unscaled >= 0 else (-unscaled - 1).bit_length()) // 8 + 1
    try:
        return unscaled.to_bytes(width, "little" if column.physical in _INTEGERS else "big", signed=True)
    except OverflowError:
        raise _Impossible(f"{type_name(column)} in {counted(width, 'byte')} can't hold {text}") from None


def _number(text: str) -> float:
    try:
        value = float(text)
        if "_" in text:
            raise ValueError
    except ValueError:
        raise _Malformed("1.5") from None
    return value


def _float(text: str, column: Column) -> Literal:
    value = _number(text)
    if math.isnan(value):
        return Literal(text=text, unknowable="NaN has many bit patterns, and each hashes differently")
    form = _FLOATS[{"FLOAT": 4, "DOUBLE": 8}.get(column.physical, 2)]
    try:
        encoded = struct.pack(form, value)
    except OverflowError:
        raise _too_far(text, column) from None
    (held,) = struct.unpack(form, encoded)
    if math.isinf(value) and "inf" not in text.lower():
        raise _too_far(text, column)
    if held == 0:  # or the value rounds to a zero of its sign: the column may contain either zero
        return Literal(text=text, encodings=(struct.pack(form, 0.0), struct.pack(form, -0.0)), order_key=0.0)
    return Literal(text=text, encodings=(encoded,), order_key=held)


def _date(text: str, column: Column) -> bytes:
    try:
        day = calendar.parse_date(text.strip())
    except ValueError:
        raise _Malformed("2024-02-29") from None
    except OverflowError:
        raise _too_far(text, column) from None
    if not -(1 << 31) <= day < 1 << 31:
        raise _too_far(text, column)
    return struct.pack("<i", day)


def _too_far(text: str, column: Column) -> _Impossible:
    return _Impossible(f"{type_name(column)} can't hold {text}")


def _to_unit(nanos: int, column: Column, text: str) -> int:
    step = 10**9 // PER_SECOND[column.unit or "NANOS"]
    if nanos % step:
        raise _Impossible(f"{type_name(column)} can't hold {text}: its unit is too coarse")
    return nanos // step


def _without_zone(text: str, column: Column, example: str) -> tuple[str, int]:
    """Return the text without its zone, and the zone's offset from UTC in nanoseconds."""
    rest, ahead = calendar.split_zone(text.strip())
    if ahead is not None and column.utc is False:
        raise _Malformed(
            f"{example}, without a zone",
            "the column holds wall-clock time of an unknown zone, so a time with a zone can't be converted",
        )
    return rest, ahead or 0


def _time(text: str, column: Column) -> bytes:
    example = "13:45:30.250" + ("" if column.utc is False else "Z")
    try:
        rest, ahead = _without_zone(text, column, example)
        nanos = (calendar.parse_time(rest) - ahead) % calendar.DAY_NANOS
    except ValueError:
        raise _Malformed(example) from None
    return struct.pack(_INT[4 if column.physical == "INT32" else 8], _to_unit(nanos, column, text))


def _epoch_nanos(text: str, column: Column) -> int:
    """Return nanoseconds since 1970-01-01 00:00, in UTC or local time, depending on the column."""
    example = "2024-02-29T13:45:30.250" + ("" if column.utc is False else "Z")
    try:
        rest, ahead = _without_zone(text, column, example)
        return calendar.parse_timestamp(rest) - ahead
    except ValueError:
        raise _Malformed(example) from None
    except OverflowError:
        raise _too_far(text, column) from None


def _timestamp(text: str, column: Column) -> bytes:
    value = _to_unit(_epoch_nanos(text, column), column, text)
    try:
        return value.to_bytes(_fixed_width(column) or 8, "little", signed=True)
    except OverflowError:
        raise _too_far(text, column) from None


def _int96(text: str, column: Column) -> bytes:
    """Encode nanoseconds of the day (i64 LE) and Julian day (i32 LE) in UTC, as Spark, Hive and Impala do."""
    if text[:2].lower() == "0x":
        return _hex(text, column, 12)
    day, of_day = divmod(_epoch_nanos(text, column), calendar.DAY_NANOS)
    if not -(1 << 31) <= day + JULIAN_EPOCH < 1 << 31:
        raise _too_far(text, column)
    return struct.pack("<qi", of_day, day + JULIAN_EPOCH)


def _hex(text: str, column: Column, length: int | None) -> bytes:
    try:
        value = bytes.fromhex(text[2:])
    except ValueError:
        raise _Malformed("0x" + "0f" * min(length or 4, 16)) from None
    if length is not None and len(value) != length:
        raise _Impossible(f"{type_name(column)} holds {counted(length, 'byte')}, not {len(value)}")
    return value


def _uuid(text: str, column: Column) -> bytes:
    if text[:2].lower() == "0x":
        return _hex(text, column, column.type_length)
    try:
        return uuid.UUID(text.strip()).bytes
    except ValueError:
        raise _Malformed("123e4567-e89b-12d3-a456-426614174000") from None


def _only_hex(text: str, column: Column) -> bytes:
    if text[:2].lower() == "0x":
        return _hex(text, column, column.type_length)
    if kind_of(column) == "INTERVAL":
        raise _Malformed("0x, then 24 hexadecimal digits: months, days, milliseconds, each u32 little-endian")
    raise _Malformed("0x, then the hexadecimal digits of its well-known binary (WKB)")


def _text(text: str, column: Column) -> bytes:
    try:
        value = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can express, is no character
        raise _Malformed("text") from None
    if column.type_length is not None and len(value) != column.type_length:
        size = counted(len(value), "byte")
        raise _Impossible(f"{type_name(column)} of {counted(column.type_length, 'byte')} can't hold {size}")
    return value


def is_binary(column: Column) -> bool:
    """Whether a column's values are bytes of no known meaning."""
    return column.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} and kind_of(column) not in _PARSERS


def _uuid_bytes(text: str) -> bytes | None:
    """The 16 bytes of a UUID in its usual form, with dashes; None for another text."""
    return uuid.UUID(text.strip()).bytes if _UUID.fullmatch(text) else None


def how_looked_up(text: str, column: Column) -> str | None:
    """A sentence on what was looked up for a value of a binary column that looks like the text of a UUID, hexadecimal
    digits, an IP address or base64, and for a value of a text column that looks like bytes; None for other values,
    and for columns of another type."""
    if text[:2].lower() == "0x":
        spelled = kind_of(column) in _TEXTS and _BYTES.fullmatch(text) is not None
        return f"{text} was looked up as text, not as the bytes that it spells" if spelled else None
    if not is_binary(column):
        return None
    number = _uuid_bytes(text)
    if number is not None and column.type_length in {None, len(number)}:
        also = " and as text" if column.type_length is None else ""
        return f"{text} was looked up as the 16 bytes of the UUID, 0x{number.hex()},{also}".rstrip(",")
    meant = number or _spelled_bytes(text.strip())
    if meant is None:
        return None
    return f"{text} was looked up as text; 0x{meant.hex()} looks up the bytes that it may stand for"


def _spelled_bytes(text: str) -> bytes | None:
    """The bytes that a text may stand for: an IP address, hexadecimal digits or base64; None for another text."""
    import base64
    import ipaddress

    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if _BASE64.fullmatch(text) and len(text) % 4 == 0:
        return base64.b64decode(text)
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return None


def _plain(text: str, column: Column) -> bytes:
    if column.physical in {"INT32", "INT64"}:
        return _integer(text, column)
    if column.physical == "INT96":
        return _int96(text, column)
    if text[:2].lower() == "0x":
        return _hex(text, column, column.type_length)
    return _text(text, column)


_PARSERS: Final[dict[str, Callable[[str, Column], bytes]]] = {
    "INTEGER": _integer,
    "DECIMAL": _decimal,
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "UUID": _uuid,
    **dict.fromkeys(("INTERVAL", *_GEOSPATIAL), _only_hex),
    **dict.fromkeys(_TEXTS, _text),
}


def _float_of_double(text: str, column: Column) -> str:
    """A double as the text of an equal float."""
    value = _number(text)
    try:
        (held,) = struct.unpack(_FLOATS[4], struct.pack(_FLOATS[4], value))
    except OverflowError:
        held = None
    if held != value and not math.isnan(value):
        raise _too_far(text, column)
    return text


def _integer_of_double(text: str, column: Column) -> str:
    """A double as the text of an equal integer."""
    value = _number(text)
    if not value.is_integer():  # NaN and infinities aren't
        raise _Impossible(f"{type_name(column)} holds whole numbers, not {text}")
    if abs(value) > 1 << 63:
        raise _too_far(text, column)
    return str(int(value))


def _date_of_timestamp(text: str, column: Column) -> str:
    """A timestamp without a zone as the text of the date at whose midnight it is."""
    day, of_day = divmod(_epoch_nanos(text, replace(column, utc=False)), calendar.DAY_NANOS)
    if of_day:
        raise _Impossible(f"{type_name(column)} holds days, not {text}")
    return calendar.format_date(day)


_NARROW: Final[dict[tuple[str, str], Callable[[str, Column], str]]] = {
    ("DOUBLE", "FLOAT"): _float_of_double,
    ("DOUBLE", "INTEGER"): _integer_of_double,
    ("DOUBLE", "INT32"): _integer_of_double,
    ("DOUBLE", "INT64"): _integer_of_double,
    ("TIMESTAMP", "DATE"): _date_of_timestamp,
}
"""Conversions of a text of a table's type, for `Column.wide` and the kind of the file's column."""


def _fixed_width(column: Column) -> int | None:
    widths = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "INT96": 12, "INT128": 16}
    return widths.get(column.physical, column.type_length)


def decode_bound(encoded: bytes, column: Column) -> Any:
    """Decode a PLAIN value to a key that compares in the column's order.

    Keys compare only with keys of the same column. None if the type has no defined order (INT96, INTERVAL, ...), the
    bytes aren't a value of the type, or the value is NaN.
    """
    kind = kind_of(column)
    width = _fixed_width(column)
    if kind in {"INTERVAL", "INT96", "UNKNOWN", "VARIANT", *_GEOSPATIAL}:
        return None
    if column.physical in _INTEGERS:
        return int.from_bytes(encoded, "little", signed=column.signed) if len(encoded) == width else None
    if column.physical in {"FLOAT", "DOUBLE"} or kind == "FLOAT16":
        if len(encoded) != width or width not in _FLOATS:
            return None
        (value,) = struct.unpack(_FLOATS[width], encoded)
        return None if math.isnan(value) else value
    if kind == "DECIMAL":
        return int.from_bytes(encoded, "big", signed=True) if encoded else None
    if column.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}:
        return encoded
    return None


def render(encoded: bytes, column: Column) -> str:
    """Format a PLAIN value as text that `parse` parses to the same value. Never raises: falls back to 0x..."""
    try:
        return _render(encoded, column)
    except (ValueError, ArithmeticError, struct.error):
        return "0x" + encoded.hex()


def bound_text(bound: bytes | None, column: Column) -> str | None:
    """A bound in statistics as text; None without one, and for bytes that aren't a value of the column's type."""
    return None if bound is None or decode_bound(bound, column) is None else render(bound, column)


def _decimal_form(unscaled: int, scale: int) -> str:
    """The digits of a decimal, without an exponent. Raises ValueError for a number that `parse` wouldn't accept."""
    if abs(scale) > _MOST_DIGITS:
        raise ValueError("too many digits")
    digits = str(abs(unscaled)) + "0" * (-scale if unscaled else 0)
    if len(digits) > _MOST_DIGITS:
        raise ValueError("too many digits")
    if scale > 0:
        digits = digits.rjust(scale + 1, "0")
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{digits}" if unscaled < 0 else digits


def _render(encoded: bytes, column: Column) -> str:
    kind = kind_of(column)
    key = decode_bound(encoded, column)
    if kind == "DECIMAL" and key is not None:
        return _decimal_form(key, column.scale)
    if kind in {"DATE", "TIME", "TIMESTAMP"} and key is None:
        raise ValueError("not as wide as the type")
    if kind == "DATE":
        return calendar.format_date(key)
    if kind == "TIME":
        return calendar.format_time(key * (10**9 // PER_SECOND[column.unit or "NANOS"]))
    if kind == "TIMESTAMP":
        return calendar.format_timestamp(key * (10**9 // PER_SECOND[column.unit or "NANOS"])) + (
            "" if column.utc is False else "Z"
        )
    if kind == "INT96":
        of_day, day = struct.unpack("<qi", encoded)
        if not 0 <= of_day < calendar.DAY_NANOS:
            raise ValueError("not the canonical form")
        return calendar.format_timestamp((day - JULIAN_EPOCH) * calendar.DAY_NANOS + of_day) + "Z"
    if kind == "UUID":
        return str(uuid.UUID(bytes=encoded))
    if kind in _TEXTS:
        return encoded.decode("utf-8", "surrogateescape")
    if isinstance(key, int | float):
        return repr(key)
    if column.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} and kind not in _IN_HEX:
        text = encoded.decode("utf-8")
        if text.isprintable() and text[:2].lower() != "0x":
            return text
    raise ValueError("no text form")


_IN_HEX: Final = ("INTERVAL", "FLOAT16", "DECIMAL", *_GEOSPATIAL)


def exclusions(
    literals: Sequence[Literal], min_value: bytes | None, max_value: bytes | None, column: Column
) -> list[bool | None]:
    """For each value, return whether min/max statistics alone rule it out; None if they can't decide.

    Truncated bounds are still bounds. Positive and negative zero compare equal, so a bound of either doesn't rule out
    the other. A minimum above the maximum shows that the statistics are wrong: they can't decide.
    """
    low = None if min_value is None else decode_bound(min_value, column)
    high = None if max_value is None else decode_bound(max_value, column)
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        return [None] * len(literals)
    return [_excluded(literal, low, high) for literal in literals]


def _excluded(literal: Literal, low: Any, high: Any) -> bool | None:
    if literal.impossible is not None:
        return True
    if literal.unknowable is not None or literal.order_key is None:
        return None
    return bool((low is not None and literal.order_key < low) or (high is not None and literal.order_key > high))
