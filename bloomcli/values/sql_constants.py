"""Converts SQL constants to values that `bloom probe` accepts: dates, decimals, binary, casts of texts, ..."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.expressions import DataType

from bloomcli.values import calendar

MOST_VALUE_CHARACTERS: Final = 4096
"""The length of the longest value that is kept: bounds the memory for the values of a column."""


class Value(NamedTuple):
    """A value of a statement."""

    text: str
    kind: str
    """``text``, ``number``, ``boolean``, ``bytes`` (as 0x...), ``time`` (also dates), ``uuid``."""


Values = tuple[Value | None, ...]
"""The value of a constant. None stands for one that isn't in the statement: a parameter, the result of a function.
NULL has no value."""

_Conversion = Callable[[Value, int | None], Value | None]
"""Converts a value, given the number of digits after the decimal point, as a cast does; None if the result isn't
known."""

_FUNCTIONS: Final[dict[str, object]] = {
    "todate": DataType.Type.DATE,
    "todate32": DataType.Type.DATE,
    "todatetime": DataType.Type.TIMESTAMP,
    "todatetime64": DataType.Type.TIMESTAMP,
    "touuid": DataType.Type.UUID,
    "tostring": DataType.Type.TEXT,
    **{f"to{sign}int{bits}": DataType.Type.BIGINT for sign in ("", "u") for bits in (8, 16, 32, 64, 128, 256)},
}
"""Functions of ClickHouse that convert a value to a type, like casts."""

_NOT_CONSTANT: Final = (
    exp.Column,
    exp.Query,
    exp.Star,
    exp.AggFunc,
    exp.Window,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.Identifier,
)
_TIMESTAMPS: Final = {
    kind for kind in DataType.TEMPORAL_TYPES if kind.name.startswith(("TIMESTAMP", "DATETIME", "SMALLDATETIME"))
}
_DECIMALS: Final = {
    DataType.Type.DECIMAL,
    DataType.Type.DECIMAL32,
    DataType.Type.DECIMAL64,
    DataType.Type.DECIMAL128,
    DataType.Type.DECIMAL256,
    DataType.Type.BIGDECIMAL,
}
_BINARY: Final = {DataType.Type.BINARY, DataType.Type.VARBINARY, DataType.Type.BLOB}


def constant(node: exp.Expr) -> Values | None:
    """The value of an expression; None if it depends on a row or on a query."""
    if isinstance(node, exp.Literal):
        return (_within_limit(Value(str(node.this), "text" if node.is_string else "number")),)
    match node:
        case exp.HexString():
            return (_from_hex(str(node.this), integer=bool(node.args.get("is_integer"))),)
        case exp.Paren():
            return constant(node.this)
        case exp.Null():
            return ()
        case exp.Boolean():
            return (Value("true" if node.this else "false", "boolean"),)
        case exp.National() | exp.RawString():
            return (Value(str(node.this), "text"),)
        case exp.Placeholder() | exp.Parameter() | exp.SessionParameter():
            return (None,)
        case exp.Neg():
            return _map(constant(node.this), _negated)
    converted = _converted(node)
    if converted is not None:
        inner, to = converted
        return _map(constant(inner), to)
    return None if any(isinstance(part, _NOT_CONSTANT) for part in node.walk()) else (None,)


def _converted(node: exp.Expr) -> tuple[exp.Expr, _Conversion] | None:
    """The operand and the conversion of a cast, or of a function that works like a cast; None for others."""
    match node:
        case exp.Cast() if not node.args.get("format"):
            return node.this, _cast(node.to)
        case exp.Unhex():
            return node.this, lambda value, _: _from_hex(value.text, integer=False)
        case exp.TsOrDsToDate() | exp.Date() | exp.Timestamp() | exp.TsOrDsToTimestamp():
            if {name for name, value in node.args.items() if value not in (None, False, [])} <= {"this", "safe"}:
                dates = isinstance(node, exp.TsOrDsToDate | exp.Date)
                return node.this, _CASTS[DataType.Type.DATE if dates else DataType.Type.TIMESTAMP]
        case exp.Anonymous() if len(node.expressions) == 1:
            target = _FUNCTIONS.get(str(node.this).lower())
            if target is not None:
                return node.expressions[0], _CASTS[target]
        case exp.Anonymous() if str(node.this).lower() == "todatetime64" and len(node.expressions) == 2:
            return node.expressions[0], _with_scale(_to_timestamp, node.expressions[1])
    return None


def _cast(to: DataType) -> _Conversion:
    sizes = [param.this for param in to.expressions if isinstance(param, exp.DataTypeParam)]
    if to.this in _DECIMALS and sizes:
        return _with_scale(_to_number, sizes[1] if len(sizes) > 1 else None)
    if to.this in _TIMESTAMPS and sizes:
        return _with_scale(_to_timestamp, sizes[0])
    return _CASTS.get(to.this, lambda value, digits: None)  # noqa: ARG005  the result isn't known


def _with_scale(conversion: _Conversion, scale: exp.Expr | None) -> _Conversion:
    """The conversion with the number of digits after the decimal point in the statement, or 0 without it."""
    values = None if scale is None else constant(scale)
    digits = values[0].text if values is not None and len(values) == 1 and values[0] is not None else ""
    places = int(digits) if digits.isdigit() and len(digits) < 4 else 0
    return lambda value, _: conversion(value, places)


def _map(values: Values | None, conversion: _Conversion) -> Values | None:
    if values is None:
        return None
    return tuple(None if value is None else _convert(conversion, value) for value in values)


def _convert(conversion: _Conversion, value: Value) -> Value | None:
    try:
        return conversion(value, None)
    except (ValueError, OverflowError):  # the engine's cast fails or results in NULL
        return None


def _within_limit(value: Value) -> Value | None:
    if value.kind == "number":
        value = Value(value.text.replace("_", ""), "number")
    return value if len(value.text) <= MOST_VALUE_CHARACTERS else None


def _negated(value: Value, _: int | None = None) -> Value | None:
    if value.kind != "number":
        return None
    return Value(value.text[1:] if value.text.startswith("-") else f"-{value.text}", "number")


def _from_hex(text: str, *, integer: bool) -> Value | None:
    try:
        data = bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")
    except ValueError:
        return None
    if integer:
        return Value(str(int.from_bytes(data, "big")), "number")
    return _within_limit(Value(f"0x{data.hex()}", "bytes"))


def _to_text(value: Value, _: int | None) -> Value | None:
    """Convert to text. The result for numbers and dates isn't known: engines format them differently."""
    return Value(value.text, "text") if value.kind in {"text", "uuid"} else None


def _to_number(value: Value, scale: int | None) -> Value | None:
    """Convert to a number with at most `scale` digits after the decimal point. Engines round others differently."""
    from decimal import Decimal, InvalidOperation

    if value.kind not in {"text", "number"}:
        return None
    try:
        number = Decimal(value.text.strip())
    except InvalidOperation:
        return None
    if not number.is_finite() or "_" in value.text:
        return None
    _, digits, exponent = number.as_tuple()
    if scale is not None and -int(exponent) > scale and any(digits[int(exponent) + scale :]):
        return None
    return Value(value.text.strip(), "number")


def _to_integer(value: Value, _: int | None) -> Value | None:
    return _to_number(value, 0)


def _to_date(value: Value, _: int | None) -> Value | None:
    if value.kind not in {"text", "time"}:
        return None
    rest, zone = calendar.split_zone(value.text.strip())
    if zone is not None:
        return None
    return Value(calendar.format_date(calendar.parse_timestamp(rest) // calendar.DAY_NANOS), "time")


def _to_timestamp(value: Value, scale: int | None) -> Value | None:
    if value.kind not in {"text", "time"}:
        return None
    rest, _ = calendar.split_zone(value.text.strip())
    if scale is not None and calendar.parse_timestamp(rest) % 10 ** (9 - min(scale, 9)):
        return None
    calendar.parse_timestamp(rest)
    return Value(value.text.strip(), "time")


def _to_time(value: Value, _: int | None) -> Value | None:
    if value.kind not in {"text", "time"}:
        return None
    calendar.parse_time(calendar.split_zone(value.text.strip())[0])
    return Value(value.text.strip(), "time")


def _to_uuid(value: Value, _: int | None) -> Value | None:
    return Value(str(uuid.UUID(value.text.strip())), "uuid") if value.kind in {"text", "uuid"} else None


def _to_binary(value: Value, _: int | None) -> Value | None:
    """Convert a text to its bytes in UTF-8. In some engines a backslash begins an escape, so the result isn't
    known."""
    if value.kind == "bytes":
        return value
    if value.kind != "text" or "\\" in value.text:
        return None
    return _within_limit(Value(f"0x{value.text.encode('utf-8', 'surrogateescape').hex()}", "bytes"))


_CASTS: Final[dict[object, _Conversion]] = {
    **dict.fromkeys(DataType.TEXT_TYPES, _to_text),
    **dict.fromkeys(DataType.INTEGER_TYPES, _to_integer),
    **dict.fromkeys(_TIMESTAMPS, _to_timestamp),
    **dict.fromkeys(_BINARY, _to_binary),
    **dict.fromkeys(_DECIMALS, _to_integer),  # the default precision and scale differ between engines
    DataType.Type.DOUBLE: lambda value, _: _to_number(value, None),
    DataType.Type.FLOAT: _to_integer,
    DataType.Type.DATE: _to_date,
    DataType.Type.DATE32: _to_date,
    DataType.Type.TIME: _to_time,
    DataType.Type.UUID: _to_uuid,
}
"""The conversion for each target type of a cast. It returns None if engines convert differently."""
