"""Schema columns of every type, for tests of values."""

from __future__ import annotations

from typing import Any

from bloomcli.model.file import Column


def column(physical: str, logical: str | None = None, **rest: Any) -> Column:
    """A leaf column named ``c``."""
    return Column(path="c", index=0, physical=physical, logical=logical, **rest)


def integer(bits: int, *, signed: bool = True) -> Column:
    """An INTEGER column."""
    logical = f"INTEGER({bits},{'signed' if signed else 'unsigned'})"
    return column("INT64" if bits == 64 else "INT32", logical, bit_width=bits, signed=signed)


def decimal(physical: str, precision: int, scale: int, length: int | None = None) -> Column:
    """A DECIMAL column."""
    logical = f"DECIMAL({precision},{scale})"
    return column(physical, logical, precision=precision, scale=scale, type_length=length)


def time(unit: str, *, utc: bool = True) -> Column:
    """A TIME column."""
    physical = "INT32" if unit == "MILLIS" else "INT64"
    return column(physical, f"TIME({unit},{'UTC' if utc else 'local'})", unit=unit, utc=utc)


def timestamp(unit: str, *, utc: bool = True) -> Column:
    """A TIMESTAMP column."""
    return column("INT64", f"TIMESTAMP({unit},{'UTC' if utc else 'local'})", unit=unit, utc=utc)


DATE = column("INT32", "DATE")
STRING = column("BYTE_ARRAY", "STRING")
BINARY = column("BYTE_ARRAY")
UUID = column("FIXED_LEN_BYTE_ARRAY", "UUID", type_length=16)
FLOAT16 = column("FIXED_LEN_BYTE_ARRAY", "FLOAT16", type_length=2)
INTERVAL = column("FIXED_LEN_BYTE_ARRAY", "INTERVAL", type_length=12)
FLOAT = column("FLOAT")
DOUBLE = column("DOUBLE")
INT96 = column("INT96")
BOOLEAN = column("BOOLEAN")

EVERY = [
    column("INT32"),
    column("INT64"),
    *(integer(bits, signed=signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    decimal("INT32", 9, 2),
    decimal("INT64", 18, 0),
    decimal("FIXED_LEN_BYTE_ARRAY", 20, 4, 9),
    decimal("BYTE_ARRAY", 38, 10),
    *(time(unit) for unit in ("MILLIS", "MICROS", "NANOS")),
    *(timestamp(unit, utc=utc) for unit in ("MILLIS", "MICROS", "NANOS") for utc in (True, False)),
    DATE,
    STRING,
    column("BYTE_ARRAY", "ENUM"),
    column("BYTE_ARRAY", "JSON"),
    column("BYTE_ARRAY", "BSON"),
    BINARY,
    column("FIXED_LEN_BYTE_ARRAY", type_length=5),
    UUID,
    FLOAT16,
    INTERVAL,
    FLOAT,
    DOUBLE,
    INT96,
    BOOLEAN,
]
"""A column of each type."""


def label(of: Column) -> str:
    """A test id."""
    return f"{of.physical}-{of.logical}" if of.logical else of.physical
