"""Paimon's types and the hashes of their values in Bloom filters.

Strings and bytes are hashed by XXH64, everything else as a 64-bit integer by Thomas Wang's function, as in ORC: an
integer, a date in days, a time in milliseconds, the bits of a floating-point number (every NaN as one, -0.0 not as
0.0), a timestamp in milliseconds up to a precision of 3, else in microseconds. Nulls aren't inserted. Sources:
Paimon's FastHash, BloomFilter64.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from bloomcli import kernels
from bloomcli.formats.wanted_values import xxh64_of
from bloomcli.model.file import Column
from bloomcli.values.literals import JULIAN_EPOCH, PER_SECOND

_TYPE: Final = re.compile(
    r"(?P<name>[A-Z_]+)(?:\((?P<size>\d{1,10})\))?(?P<local> WITH LOCAL TIME ZONE)?(?: NOT NULL)?"
)
_TEXTS: Final = ("CHAR", "VARCHAR", "STRING", "BINARY", "VARBINARY", "BYTES")
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME", "FLOAT", "DOUBLE")
_TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DEFAULT_PRECISION: Final = 6
_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_NANOS: Final = 86_400 * 10**9
FLOATS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}


class HashedType(NamedTuple):
    """A type whose values a Bloom filter can hold."""

    name: str
    """Without length and precision."""
    per_second: int = 0
    """The unit in which a timestamp is hashed; 0 for other types."""
    local: bool = False
    """Whether a timestamp is an instant."""

    @property
    def is_text(self) -> bool:
        """Whether values are hashed as bytes."""
        return self.name in _TEXTS

    @property
    def hash(self) -> str:
        """The name of the hash."""
        return "xxh64" if self.is_text else "wang64"

    def stored_as(self, column: Column) -> bool:
        """Whether a file's column has the values that are hashed. `column`: as `FilterFile.literal_column`.

        ORC pads a CHAR with blanks, and stores an instant as the wall clock of its writer.
        """
        if self.is_text:
            padded = (column.type_name or "").lower().startswith("char")
            return column.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} and not padded
        if self.per_second:
            return column.physical == "INT96" or (column.unit is not None and column.utc is self.local)
        if self.name in FLOATS or column.physical in FLOATS:
            return column.physical == self.name
        return column.physical in {"INT32", "INT64"} and column.signed


def hashed_type(declared: Any) -> HashedType | None:
    """The type that a schema declares, in the form of JSON; None if no Bloom filter can hold its values."""
    match = _TYPE.fullmatch(declared) if isinstance(declared, str) else None
    if match is None:
        return None
    name = match["name"]
    if name in _TIMESTAMPS:
        precise = int(match["size"] or _DEFAULT_PRECISION) > 3
        local = match["local"] is not None or name == "TIMESTAMP_LTZ"
        return HashedType("TIMESTAMP", 10**6 if precise else 10**3, local)
    return HashedType(name) if name in (*_TEXTS, *_NUMBERS) else None


def hashes_of(values: pa.Array, kind: HashedType) -> bytes:
    """The hashes of a column's values, nulls left out: uint64s in native order.

    Raises:
        pa.ArrowException: the file has the column in another type than the schema.
    """
    values = values.drop_null()
    if kind.is_text:
        return xxh64_of(values.cast(pa.large_binary()))
    out = bytearray(8 * len(values))
    if kind.name == "DOUBLE":
        kernels.orc_hash_double(_bytes_of(_numpy(values.cast(pa.float64()))), 8, 0, len(values), out)
        return bytes(out)
    if kind.name == "FLOAT":
        narrow = _numpy(values.cast(pa.float32())).copy()
        narrow[np.isnan(narrow)] = np.float32(math.nan)
        numbers = narrow.view(np.int32).astype(np.int64)
    elif pa.types.is_timestamp(values.type) or pa.types.is_time(values.type):
        numbers = _numpy(values.cast(pa.int32()) if values.type.bit_width == 32 else values.cast(pa.int64()))
        numbers = _scaled(numbers.astype(np.int64), _UNITS[values.type.unit], kind.per_second or 10**3)
    elif pa.types.is_date(values.type):
        numbers = _numpy(values.cast(pa.date32()).cast(pa.int32())).astype(np.int64)
    else:
        numbers = _numpy(values.cast(pa.int64()))
    kernels.orc_hash_long(_bytes_of(numbers), 8, 0, len(values), out)
    return bytes(out)


def _numpy(values: pa.Array) -> Any:
    return values.to_numpy(zero_copy_only=False)


def _bytes_of(numbers: Any) -> bytes:
    data: bytes = numbers.tobytes()
    return data


def _scaled(numbers: Any, per_second: int, wanted: int) -> Any:
    """Moments in another unit, rounded down, as Java's Timestamp does."""
    return numbers * (wanted // per_second) if wanted >= per_second else numbers // (per_second // wanted)


def literal_hash(encoded: bytes, column: Column, kind: HashedType) -> int | None:
    """The hash of a value to look up; None if it is too large for one.

    Args:
        encoded: its PLAIN bytes.
        column: the type of these bytes, as `FilterFile.literal_column`.
        kind: the type in the table's schema.
    """
    if kind.is_text:
        return kernels.xxh64(encoded)
    if column.physical in FLOATS:
        values = pa.Array.from_buffers(FLOATS[column.physical], 1, [None, pa.py_buffer(encoded)])
        return int.from_bytes(hashes_of(values, kind), sys.byteorder)
    if column.physical == "INT96":
        nanos, days = int.from_bytes(encoded[:8], "little"), int.from_bytes(encoded[8:], "little", signed=True)
        number = _scaled(((days - JULIAN_EPOCH) * _DAY_NANOS) + nanos, PER_SECOND["NANOS"], kind.per_second)
    else:
        number = int.from_bytes(encoded, "little", signed=True)
        if column.unit is not None:
            number = _scaled(number, PER_SECOND[column.unit], kind.per_second or PER_SECOND["MILLIS"])
    out = bytearray(8)
    if not -(1 << 63) <= number < 1 << 63:
        return None
    kernels.orc_hash_long(number.to_bytes(8, "little", signed=True), 8, 0, 1, out)
    return int.from_bytes(out, sys.byteorder)
