"""Decodes a whole Thrift structure to JSON objects: known fields by name, unknown ones by number.

parquet.thrift has the names and types. thriftpy2 drops fields that aren't in it, so the bytes are decoded here.
Binary values become ``{"hex": "..."}``, and strings text; a string that isn't UTF-8 becomes hex too.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any, Final

from bloomcli import kernels
from bloomcli.formats.base import Tree, binary
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location
from bloomcli.words import counted

_BOOLEANS: Final = (spec.BOOLEAN_TRUE, spec.BOOLEAN_FALSE)
_INTEGERS: Final = (4, 5, 6)
_KINDS: Final = {"bool": _BOOLEANS, "i8": (3,), "i16": (4,), "i32": (5,), "i64": (6,), "double": (7,), "binary": (8,)}
"""The wire types of the IDL's base types."""

_TEXTS: Final = {"name", "created_by", "path_in_schema", "key", "value", "file_path", "crs"}
"""The fields that are strings in the specification; others of type binary are bytes."""


def decode(name: str, data: bytes, location: Location) -> dict[str, Tree]:
    """Decode the structure `name` at the start of `data`.

    Raises:
        CorruptFile: the bytes aren't such a structure.
        UnsupportedError: it has too many parts for memory.
    """
    try:
        kernels.compact_struct(data, 0, parquet_limits.THRIFT_MAX_DEPTH)  # checks every length and the nesting
    except kernels.CompactError as error:
        raise location.fault(error.reason, error.offset) from None
    return _Reader(data, location).struct(name)


class _Reader:
    """Decodes bytes whose lengths, types and nesting were checked."""

    def __init__(self, data: bytes, location: Location) -> None:
        self._data = data
        self._location = location
        self._at = 0
        self._parts = 0

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > parquet_limits.DUMP_MAX_PARTS:
            raise self._location.unsupported(
                f"metadata of more than {parquet_limits.DUMP_MAX_PARTS} parts",
                "`bloom inspect` without --footer sums them up",
            )

    def _varint(self) -> int:
        value, self._at = kernels.varint(self._data, self._at)
        return value

    def _integer(self) -> int:
        raw = self._varint()
        return raw >> 1 ^ -(raw & 1)

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def struct(self, name: str | None) -> dict[str, Tree]:
        """Decode a structure of this name in the IDL; None: of an unknown field."""
        fields = {} if name is None else _fields(name)
        found: dict[str, Tree] = {}
        number = 0
        while True:
            head = self._data[self._at]
            self._at += 1
            kind, delta = head & 0x0F, head >> 4
            if not kind:
                return found
            number = number + delta if delta else self._integer()
            self._count(1)
            field, wanted = fields.get(number, ("", None))
            if wanted is None or not _fits(kind, wanted):
                field, wanted = str(number), None
            if kind in _BOOLEANS:
                found[field] = kind == spec.BOOLEAN_TRUE
            else:
                found[field] = self._value(kind, wanted, text=field in _TEXTS)

    def _value(self, kind: int, wanted: str | None, *, text: bool = False) -> Tree:
        """Decode a value. `wanted`: its type in the IDL, which fits; None for unknown values."""
        if kind in _INTEGERS:
            value = self._integer()
            return spec.enum_name(wanted, value) if wanted in spec.ENUMS else value
        match kind:
            case 1 | 2:  # of a list
                return self._take(1)[0] == spec.BOOLEAN_TRUE
            case 3:
                return int.from_bytes(self._take(1), "little", signed=True)
            case 7:
                (number,) = struct.unpack("<d", self._take(8))
                return number if math.isfinite(number) else str(number)
            case 8:
                return binary(self._take(self._varint()), text=text)
            case 9 | 10:
                return self._list(None if wanted is None else wanted[len("list<") : -1], text=text)
            case 11:
                return self._map()
            case 12:
                return self.struct(wanted)
        return binary(self._take(16), text=False)

    def _list(self, wanted: str | None, *, text: bool) -> list[Tree]:
        head = self._data[self._at]
        self._at += 1
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self._varint()
        self._count(size)
        element = wanted if wanted is not None and size and _fits(kind, wanted) else None
        return [self._value(kind, element, text=text) for _ in range(size)]

    def _map(self) -> list[Tree]:
        size = self._varint()
        if not size:
            return []
        kinds = self._take(1)[0]
        self._count(2 * size)
        return [{"key": self._value(kinds >> 4, None), "value": self._value(kinds & 0x0F, None)} for _ in range(size)]


@cache
def _fields(name: str) -> dict[int, tuple[str, str]]:
    """The fields of a structure of the IDL: (name, type) by id."""
    return {number: (field, kind) for field, (number, kind) in spec.FIELDS[name].items()}


def _fits(kind: int, wanted: str) -> bool:
    """Whether a wire type encodes a type of the IDL. A field of another type is treated as unknown."""
    if wanted in _KINDS:
        return kind in _KINDS[wanted]
    return kind == (spec.I32 if wanted in spec.ENUMS else spec.STRUCT if wanted in spec.FIELDS else spec.LIST)


def footer_tree(footer: Any) -> dict[str, Tree]:
    """Decode the whole footer of an open file. Raises CorruptFile, UnsupportedError."""
    if len(footer.raw) > parquet_limits.DUMP_MAX_BYTES:
        raise footer.location.unsupported(
            f"a footer of {counted(len(footer.raw), 'byte')}; at most {parquet_limits.DUMP_MAX_BYTES} are written",
            "`bloom inspect` without --footer sums it up",
        )
    return {
        "offset": footer.start,
        "length": len(footer.raw),
        "magic": spec.MAGIC.decode(),
        "FileMetaData": decode("FileMetaData", footer.raw, footer.location),
    }
