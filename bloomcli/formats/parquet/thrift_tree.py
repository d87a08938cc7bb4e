"""Decodes a whole Thrift structure to JSON objects: known fields by name, unknown ones by number.

thriftpy2 provides the names and types, from parquet.thrift. It drops fields that it doesn't know, so the bytes are
decoded here. Binary values become ``{"hex": "..."}``, and strings text; a string that isn't UTF-8 becomes hex too.
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

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_INTEGERS: Final = (4, 5, 6)

_TEXTS: Final = {"name", "created_by", "path_in_schema", "key", "value", "file_path", "crs"}
"""The fields that are strings in the specification; others of type binary are bytes."""

_NOTHING: Final[dict[int, Any]] = {}


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
    return _Reader(data, location).struct(getattr(spec.structures(), name).thrift_spec)


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

    def struct(self, fields: dict[int, Any]) -> dict[str, Tree]:
        """Decode a structure. `fields`: thriftpy2's description of its known fields."""
        tree: dict[str, Tree] = {}
        number = 0
        while True:
            head = self._data[self._at]
            self._at += 1
            kind, delta = head & 0x0F, head >> 4
            if not kind:
                return tree
            number = number + delta if delta else self._integer()
            self._count(1)
            field = fields.get(number)
            if field is None or not _fits(kind, field[0]):
                value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, None)
                tree[str(number)] = value
            else:
                described = (field[0], field[2]) if len(field) > 3 else field[0]
                text = field[1] in _TEXTS
                value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, described, text=text)
                tree[str(field[1])] = value

    def _value(self, kind: int, described: Any, *, text: bool = False) -> Tree:
        detail = described[1] if isinstance(described, tuple) else None
        if kind in _INTEGERS:
            value = self._integer()
            return value if detail is None else spec.enum_name(detail.__name__, value)
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
                return self._list(detail, text=text)
            case 11:
                return self._map()
            case 12:
                return self.struct(_NOTHING if detail is None else detail.thrift_spec)
        return binary(self._take(16), text=False)

    def _list(self, element: Any, *, text: bool) -> list[Tree]:
        head = self._data[self._at]
        self._at += 1
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self._varint()
        self._count(size)
        wanted = element[0] if isinstance(element, tuple) else element
        described = element if wanted is not None and size and _fits(kind, wanted) else None
        return [self._value(kind, described, text=text) for _ in range(size)]

    def _map(self) -> list[Tree]:
        size = self._varint()
        if not size:
            return []
        kinds = self._take(1)[0]
        self._count(2 * size)
        return [{"key": self._value(kinds >> 4, None), "value": self._value(kinds & 0x0F, None)} for _ in range(size)]


@cache
def _fits(kind: int, wanted: int) -> bool:
    """Whether a wire type encodes thriftpy2's type. A field of another type is treated as unknown."""
    from thriftpy2.thrift import TType

    kinds = {
        TType.BOOL: (_TRUE, _FALSE),
        TType.BYTE: (_BYTE,),
        TType.I16: (4,),
        TType.I32: (5,),
        TType.I64: (6,),
        TType.DOUBLE: (_DOUBLE,),
        TType.STRING: (_BINARY,),
        TType.BINARY: (_BINARY,),
        TType.LIST: (_LIST,),
        TType.SET: (_SET,),
        TType.MAP: (_MAP,),
        TType.STRUCT: (_STRUCT,),
    }
    return kind in kinds.get(wanted, ())


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
