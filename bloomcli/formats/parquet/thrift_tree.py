"""Decodes a whole Thrift structure to JSON objects: known fields by name, unknown ones by number.

Binary values become ``{"hex": "..."}``, and strings text; a string that isn't UTF-8 becomes hex too.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any, Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.base import Tree, binary
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location
from bloomcli.words import counted

_TRUE, _FALSE = 1, 2
_INTEGERS: Final = (4, 5, 6)
_BOOLEANS: Final = (_TRUE, _FALSE)

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
            raise UnsupportedError(
                f"metadata of more than {parquet_limits.DUMP_MAX_PARTS} parts",
                path=self._location.path,
                offset=self._location.base,
                field=self._location.field or None,
                hint="`bloom inspect` without --footer sums them up",
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
        """Decode a structure of this name; None for a structure that the IDL doesn't have."""
        fields = {} if name is None else _by_id(name)
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
            field, known = fields.get(number, ("", None))
            if known is None or not _fits(kind, known):
                field, known = str(number), None
            found[field] = kind == _TRUE if kind in _BOOLEANS else self._value(kind, known, text=field in _TEXTS)

    def _value(self, kind: int, known: str | None, *, text: bool = False) -> Tree:
        """A value of a wire type. `known`: its type in the IDL, if the IDL has one that fits."""
        if kind in _INTEGERS:
            value = self._integer()
            return spec.enum_name(known, value) if known is not None and known in spec.ENUMS else value
        match kind:
            case 1 | 2:  # of a list
                return self._take(1)[0] == _TRUE
            case 3:
                return int.from_bytes(self._take(1), "little", signed=True)
            case 7:
                (number,) = struct.unpack("<d", self._take(8))
                return number if math.isfinite(number) else str(number)
            case 8:
                return binary(self._take(self._varint()), text=text)
            case 9 | 10:
                return self._list(None if known is None else spec.element_of(known), text=text)
            case 11:
                return self._map()
            case 12:
                return self.struct(known)
        return binary(self._take(16), text=False)

    def _list(self, element: str | None, *, text: bool) -> list[Tree]:
        head = self._data[self._at]
        self._at += 1
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self._varint()
        self._count(size)
        known = element if element is not None and _fits(kind, element) else None
        return [self._value(kind, known, text=text) for _ in range(size)]

    def _map(self) -> list[Tree]:
        size = self._varint()
        if not size:
            return []
        kinds = self._take(1)[0]
        self._count(2 * size)
        return [{"key": self._value(kinds >> 4, None), "value": self._value(kinds & 0x0F, None)} for _ in range(size)]


@cache
def _by_id(name: str) -> dict[int, tuple[str, str]]:
    """The name and the type of each field of a structure, by its id."""
    return {number: (field, kind) for field, (number, kind) in spec.FIELDS[name].items()}


def _fits(kind: int, known: str) -> bool:
    """Whether a wire type encodes a type of the IDL. A field of another type is treated as unknown."""
    return kind in _BOOLEANS if known == "bool" else kind == spec.wire_type(known)


def footer_tree(footer: Any) -> dict[str, Tree]:
    """Decode the whole footer of an open file. Raises CorruptFile, UnsupportedError."""
    if len(footer.raw) > parquet_limits.DUMP_MAX_BYTES:
        raise UnsupportedError(
            f"a footer of {counted(len(footer.raw), 'byte')}; at most {parquet_limits.DUMP_MAX_BYTES} are written",
            path=footer.path,
            offset=footer.start,
            hint="`bloom inspect` without --footer sums it up",
        )
    return {
        "offset": footer.start,
        "length": len(footer.raw),
        "magic": spec.MAGIC.decode(),
        "FileMetaData": decode("FileMetaData", footer.raw, footer.location),
    }
