"""Converts values to text: as `bloom probe` accepts it, for reports, and as SQL engines cast it, for queries."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.model.file import Column
from bloomcli.values import calendar, literals

_NANOS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of each of Arrow's units."""
_PER_UNIT: Final = {"MILLIS": 10**6, "MICROS": 10**3, "NANOS": 1}
"""Nanoseconds of each unit of a column."""


def storage_of(kind: pa.DataType) -> pa.DataType:
    """The storage type of an extension type, the value type of a dictionary; otherwise the type itself."""
    if isinstance(kind, pa.BaseExtensionType):
        return storage_of(kind.storage_type)
    return storage_of(kind.value_type) if pa.types.is_dictionary(kind) else kind


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes that aren't text."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def ticks(value: pa.Scalar) -> int:
    """The integer that represents a date, a time or a timestamp, in the unit of its type."""
    small = pa.types.is_date32(value.type) or pa.types.is_time32(value.type)
    number: int = value.cast(pa.int32() if small else pa.int64()).as_py()
    return number


def text_of(value: pa.Scalar) -> str:
    """Format a value as `bloom probe` accepts it."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        return calendar.format_timestamp(ticks(value) * _NANOS[kind.unit]) + ("Z" if kind.tz is not None else "")
    return f"0x{value.as_py().hex()}" if is_binary(kind) else sql_text(value)


def sql_text(value: pa.Scalar) -> str:
    """Format a value that isn't bytes for `CAST('text' AS type)` in SQL; timestamps without a zone."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        return calendar.format_timestamp(ticks(value) * _NANOS[kind.unit]).replace("T", " ")
    if pa.types.is_date(kind):
        return calendar.format_date(ticks(value.cast(pa.date32())))
    if pa.types.is_time(kind):
        return calendar.format_time(ticks(value) * _NANOS[kind.unit])
    if pa.types.is_decimal(kind):
        return f"{value.as_py():f}"
    if pa.types.is_floating(kind):
        # of a FLOAT, the double with the fewest digits that rounds to it
        return repr(float(pc.cast(value, pa.string() if kind == pa.float32() else pa.float64()).as_py()))
    return str(value.as_py()).lower() if pa.types.is_boolean(kind) else str(value.as_py())


def escaped_literal(text: str) -> str:
    """A string literal of ClickHouse and Spark, which escape with backslashes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted_name(name: str) -> str:
    """A name in SQL between standard quotes, as DuckDB and DataFusion read it."""
    return '"' + name.replace('"', '""') + '"'


def from_text(text: str, column: Column, kind: pa.DataType) -> pa.Scalar | None:
    """Convert a literal of a query to a value; None if the column can't store it.

    Args:
        text: the literal as `bloom probe` accepts it.
        column: the result of `FilterFile.literal_column`.
        kind: the Arrow type of the column.

    Raises:
        LiteralError: the text isn't a value of the column's type.
    """
    literal = literals.parse(text, column)
    if not literal.encodings:
        return None
    if pa.types.is_floating(kind):
        return pa.scalar(float(text), pa.float64()).cast(kind)
    data = literal.encodings[0]
    if is_binary(kind):
        return pa.scalar(data, kind)
    if is_text(kind):
        return pa.scalar(data.decode("utf-8"), kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind)
    if column.physical == "INT96":
        days = int.from_bytes(data[8:], "little", signed=True) - literals.JULIAN_EPOCH
        return _in_unit(int.from_bytes(data[:8], "little") + days * calendar.DAY_NANOS, kind)
    number = int.from_bytes(data, "little", signed=column.signed)
    if pa.types.is_timestamp(kind):
        return _in_unit(number * _PER_UNIT[column.unit or "NANOS"], kind)
    whole = pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
    return pa.scalar(number, whole if pa.types.is_temporal(kind) else kind).cast(kind)


def _in_unit(nanos: int, kind: pa.TimestampType) -> pa.Scalar:
    return pa.scalar(nanos // _NANOS[kind.unit], pa.int64()).cast(kind)
