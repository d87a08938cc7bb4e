"""Converts Arrow values to the forms that `find` compares, for formats whose values a library decodes to Arrow."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

DECIMAL_BYTES: Final = 16


def decimal_form(unscaled: int) -> bytes:
    """A decimal as Arrow stores it: its unscaled value in 16 bytes, little-endian two's complement."""
    return unscaled.to_bytes(DECIMAL_BYTES, "little", signed=True)


def forms_of(values: pa.Array) -> pa.Array:
    """Convert integers, dates and times to integers of their width, decimals to `decimal_form`, booleans to 0 and 1,
    strings and binaries to large binaries. Floating point stays unchanged."""
    kind = values.type
    types = pa.types
    if types.is_floating(kind):
        return values
    if types.is_boolean(kind):
        return values.cast(pa.uint8())
    if types.is_integer(kind):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    if types.is_decimal(kind):
        validity, data = values.cast(pa.decimal128(38, kind.scale)).buffers()
        found = pa.Array.from_buffers(pa.binary(DECIMAL_BYTES), len(values), [validity, data], offset=values.offset)
        return found.cast(pa.large_binary())
    if types.is_date32(kind) or types.is_time32(kind):
        return values.view(pa.int32())
    if types.is_timestamp(kind) or types.is_time64(kind) or types.is_date64(kind):
        return values.view(pa.int64())
    if types.is_fixed_size_binary(kind) or types.is_binary(kind) or types.is_string(kind):
        return values.cast(pa.large_binary())
    return values.view(pa.large_binary())
