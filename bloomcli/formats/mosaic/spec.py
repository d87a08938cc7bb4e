"""Mosaic's constants, and a cursor that reads its metadata: varints, big-endian numbers, counts.

    buckets of row group 0 | its filters | buckets of row group 1 | ... | schema block | row-group index | footer

Source: the released implementation (Apache Paimon Mosaic 0.2.0) and, for version 2, its draft pull
request 47, which was closed unmerged. Varints are unsigned LEB128 of at most 32 bits, lengths are in bytes.
"""

from __future__ import annotations

from typing import Final

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.words import are, counted

MAGIC: Final = b"MOSA"
FOOTER_BYTES: Final = 32
VERSION_AT: Final = 25
"""The position of the version byte in the footer."""

RELEASED: Final = 1
"""The version of released readers and writers."""
DRAFT: Final = 2
"""The version with filters."""

COMPRESSIONS: Final = {0: "NONE", 1: "ZSTD"}

TYPES: Final = {
    0: "BOOLEAN",
    1: "INT8",
    2: "INT16",
    3: "INT32",
    4: "INT64",
    5: "FLOAT",
    6: "DOUBLE",
    7: "DATE",
    8: "CHAR",
    9: "VARCHAR",
    10: "STRING",
    11: "BINARY",
    12: "VARBINARY",
    13: "BYTES",
    14: "DECIMAL",
    15: "TIME",
    16: "TIMESTAMP",
    17: "TIMESTAMP_LTZ",
    18: "LIST",
    19: "MAP",
}
"""Type bytes of the schema block."""

HINT_DAMAGED: Final = "the file is damaged; get it from its source again"

_VARINT_BYTES: Final = 5
_U32: Final = 0xFFFFFFFF
_LONG_BYTES: Final = 10
_U64: Final = (1 << 64) - 1


class Cursor:
    """Reads metadata from left to right. Raises CorruptFile, with the offset, at the end of the data.

    `base` is the offset of the data in the file or, with `packed`, of their compressed form.
    """

    __slots__ = ("_base", "_packed", "_parts", "data", "field", "path", "pos")

    def __init__(self, data: bytes, *, base: int, path: str, field: str, packed: bool = False) -> None:
        self.data = data
        self.pos = 0
        self.field = field
        self.path = path
        self._base = base
        self._packed = packed
        self._parts = 0

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return len(self.data) - self.pos

    def fault(self, reason: str, pos: int | None = None) -> CorruptFile:
        """Return an error about the byte at `pos`, or at the current position."""
        at = self._base if self._packed else self._base + (self.pos if pos is None else pos)
        return CorruptFile(reason, path=self.path, offset=at, field=self.field, hint=HINT_DAMAGED)

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        if count > self.remaining:
            raise self.fault(
                f"{what}: {counted(count, 'byte')} {are(count)} claimed, {self.remaining} {are(self.remaining)} left"
            )
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def byte(self, what: str) -> int:
        """One byte."""
        return self.take(1, what)[0]

    def u64(self, what: str) -> int:
        """Eight bytes, big-endian."""
        return int.from_bytes(self.take(8, what), "big")

    def varint(self, what: str) -> int:
        """An unsigned varint of 32 bits."""
        return self._leb128(what, _VARINT_BYTES, _U32)

    def zigzag(self, what: str) -> int:
        """A signed varint of 64 bits."""
        value = self._leb128(what, _LONG_BYTES, _U64)
        return value >> 1 ^ -(value & 1)

    def _leb128(self, what: str, most: int, ceiling: int) -> int:
        start = self.pos
        value = 0
        for index in range(most):
            if start + index >= len(self.data):
                raise self.fault(f"{what}: a varint doesn't end", start)
            byte = self.data[start + index]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if value > ceiling:
                    raise self.fault(f"{what}: a varint of more than {ceiling.bit_length()} bits", start)
                self.pos = start + index + 1
                return value
        raise self.fault(f"{what}: a varint of more than {most} bytes", start)

    def count(self, what: str, least: int) -> int:
        """Read a number of items of at least `least` bytes each. Raises CorruptFile if they don't fit."""
        start = self.pos
        value = self.varint(what)
        if value * least > self.remaining:
            raise self.fault(
                f"{what}: {value} {are(value)} claimed, {counted(self.remaining, 'byte')} {are(self.remaining)} left",
                start,
            )
        return value

    def parts(self, what: str, least: int) -> int:
        """Read a number of parts of the metadata. Raises as `count` and `add_parts`."""
        value = self.count(what, least)
        self.add_parts(value)
        return value

    def add_parts(self, count: int) -> None:
        """Count parts, of which objects will be made. Raises UnsupportedError beyond `limits.PARTS_MAX`."""
        self._parts += count
        if self._parts > mosaic_limits.PARTS_MAX:
            raise UnsupportedError(
                f"metadata of more than {mosaic_limits.PARTS_MAX} parts",
                path=self.path,
                offset=self._base if self._packed else self._base + self.pos,
                field=self.field,
                hint=f"bloom reads up to {mosaic_limits.PARTS_MAX}; write files with fewer columns or row groups",
            )
