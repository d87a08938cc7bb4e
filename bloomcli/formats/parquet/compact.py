"""Encodes structures in Thrift's compact protocol. `spec` has the walk over encoded ones.

A field is (wire type, encoded value). A boolean field has its value in the wire type, and no bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bloomcli.formats.parquet.spec import BINARY, BOOLEAN_FALSE, BOOLEAN_TRUE, I32, I64, LIST, STRUCT, varint, zigzag

Field = tuple[int, bytes]
"""A field's wire type and its encoded value."""

_SHORT_LIST: Final = 15


def i32(value: int) -> Field:
    """A field of type i32."""
    return I32, zigzag(value)


def i64(value: int) -> Field:
    """A field of type i64."""
    return I64, zigzag(value)


def truth(value: bool) -> Field:
    """A boolean field."""
    return (BOOLEAN_TRUE if value else BOOLEAN_FALSE), b""


def binary(value: bytes) -> Field:
    """A binary field: length and bytes."""
    return BINARY, varint(len(value)) + value


def structure(fields: Mapping[int, Field]) -> Field:
    """A field that is a structure of these fields, by id."""
    return STRUCT, struct(fields)


def listed(kind: int, items: Iterable[bytes]) -> Field:
    """A field that is a list of encoded values of one wire type."""
    found = list(items)
    return LIST, list_header(kind, len(found)) + b"".join(found)


def struct(fields: Mapping[int, Field], after: int = 0) -> bytes:
    """A structure with these fields, by id, with its end. If other fields are before them, the last one has the id
    `after`."""
    out, previous = bytearray(), after
    for number, (kind, value) in sorted(fields.items()):
        out += bytes([number - previous << 4 | kind]) + value
        previous = number
    return bytes(out) + b"\0"


def list_header(kind: int, size: int) -> bytes:
    """The bytes before a list's elements."""
    return bytes([size << 4 | kind]) if size < _SHORT_LIST else bytes([0xF0 | kind]) + varint(size)
