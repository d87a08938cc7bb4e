"""Converts a column's stored values to Python values without Arrow, with the same results as Arrow.

Source: the types of the Parquet format's LogicalTypes.md, and the results of Arrow's `to_pylist`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from bloomcli.formats.plain_rows import NeedsArrow
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple
from bloomcli.values.column_types import kind_of

if TYPE_CHECKING:
    from decimal import Decimal

_INT, _FLOAT, _BINARY, _UTF8, _BOOL, _DECIMAL, _DATE, _TIME, TIMESTAMP, _FIXED = 2, 3, 4, 5, 6, 7, 8, 9, 10, 15
_LARGE_BINARY, _LARGE_UTF8 = 19, 20
"""Types of Arrow's Schema.fbs."""
_DIGITS: Final = 38
"""The maximum precision of Arrow's 128-bit decimals."""


class ValueConverter(NamedTuple):
    """Converts the stored values of a column to the Python values that Arrow returns."""

    convert: Callable[[bytes], Any]
    """Converts one value; raises ValueError or OverflowError if Arrow has to do it."""
    arrow_types: tuple[int, ...]
    """The types in the file's Arrow schema with which Arrow returns the same values."""

    def value(self, stored: bytes) -> Any:
        """Convert a stored value. Raises NeedsArrow."""
        try:
            return self.convert(stored)
        except (ValueError, OverflowError):
            raise NeedsArrow from None


def _number(form: str) -> Callable[[bytes], Any]:
    """A function that reads numbers; `form` is a format of `struct`."""
    read = struct.Struct(f"<{form}")
    return lambda stored: read.unpack(stored)[0]


def _text(stored: bytes) -> str:
    """Decode a text; invalid UTF-8 is replaced, as in reports."""
    return stored.decode("utf-8", "replace")


def _integer(bits: int, *, signed: bool) -> Callable[[bytes], int]:
    """A function that reads integers and checks their width."""
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)

    def made(stored: bytes) -> int:
        number = int.from_bytes(stored, "little", signed=signed)
        if not low <= number < high:
            raise OverflowError
        return number

    return made


def _decimal(column: Column) -> Callable[[bytes], Decimal]:
    """A function that reads decimals with the column's scale."""
    from decimal import Decimal

    order: Literal["little", "big"] = "little" if column.physical in {"INT32", "INT64"} else "big"

    def made(stored: bytes) -> Decimal:
        unscaled = int.from_bytes(stored, order, signed=True)
        digits = str(abs(unscaled))
        if len(digits) > column.precision:
            raise OverflowError
        return Decimal((int(unscaled < 0), tuple(map(int, digits)), -column.scale))

    return made


def _date(stored: bytes) -> date:
    return _EPOCH.date() + timedelta(days=int.from_bytes(stored, "little", signed=True))


def _timestamp(column: Column) -> Callable[[bytes], datetime]:
    """A function that reads timestamps: instants in UTC, or local date and time."""
    unit, zone = _MICROSECONDS[column.unit or ""], UTC if column.utc else None
    start = _EPOCH.replace(tzinfo=zone)
    return lambda stored: start + timedelta(microseconds=unit * int.from_bytes(stored, "little", signed=True))


def _time(column: Column) -> Callable[[bytes], time]:
    """A function that reads times of day."""
    unit = _MICROSECONDS[column.unit or ""]

    def made(stored: bytes) -> time:
        of_day = timedelta(microseconds=unit * int.from_bytes(stored, "little", signed=True))
        if not timedelta(0) <= of_day < timedelta(days=1):
            raise OverflowError
        return (_EPOCH + of_day).time()

    return made


_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECONDS: Final = {"MILLIS": 1000, "MICROS": 1}
"""Microseconds in the units that Python's times can express."""
_BYTES: Final = ValueConverter(bytes, (_BINARY, _LARGE_BINARY))
_UNCHANGED: Final = {
    ("INT32", None): ValueConverter(_number("i"), (_INT,)),
    ("INT64", None): ValueConverter(_number("q"), (_INT,)),
    ("FLOAT", None): ValueConverter(_number("f"), (_FLOAT,)),
    ("DOUBLE", None): ValueConverter(_number("d"), (_FLOAT,)),
    ("BOOLEAN", None): ValueConverter(_number("?"), (_BOOL,)),
    ("BYTE_ARRAY", None): _BYTES,
    ("BYTE_ARRAY", "STRING"): ValueConverter(_text, (_UTF8, _LARGE_UTF8)),
    ("FIXED_LEN_BYTE_ARRAY", None): ValueConverter(bytes, (_FIXED,)),
    ("INT32", "DATE"): ValueConverter(_date, (_DATE,)),
}


def value_converter(column: Column) -> ValueConverter:
    """The converter of a column's values. Raises NeedsArrow."""
    if column.max_repetition_level or column.max_definition_level > 1:
        raise NeedsArrow
    found = _UNCHANGED.get((column.physical, column.logical))
    if found is not None:
        return found
    kind = kind_of(column)
    if kind == "INTEGER" and column.bit_width:
        return ValueConverter(_integer(column.bit_width, signed=column.signed), (_INT,))
    if kind == "DECIMAL" and column.precision <= _DIGITS:
        return ValueConverter(_decimal(column), (_DECIMAL,))
    if kind == "TIMESTAMP" and column.unit in _MICROSECONDS:
        return ValueConverter(_timestamp(column), (TIMESTAMP,))
    if kind == "TIME" and column.unit in _MICROSECONDS:
        return ValueConverter(_time(column), (_TIME,))
    raise NeedsArrow
