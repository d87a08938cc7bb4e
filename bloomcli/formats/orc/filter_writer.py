"""Writes a filter stream: encodes and compresses each row group's filter as soon as it is built.

    BloomFilterIndex { BloomFilter { numHashFunctions, bitset (longs) | utf8bitset (the same longs, LE) } ... }

Source: orc_proto.proto. protobuf's classes would hold every filter of the stripe in memory twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.orc.compression import Codec, Packer
from bloomcli.formats.orc.filter_header import UTF8

_ENTRY: Final = b"\x0a"
"""BloomFilterIndex.bloomFilter, a message."""
_FUNCTIONS: Final = b"\x08"
"""BloomFilter.numHashFunctions."""
_LONG: Final = 0x11
"""BloomFilter.bitset, one of its longs."""
_UTF8_BITS: Final = b"\x1a"
"""BloomFilter.utf8bitset."""
_LONGS_AT_A_TIME: Final = 8192
_FRAME: Final = 32
"""Maximum bytes of an entry without its bits."""


def most_bytes(filters: int, bits: int) -> int:
    """Maximum uncompressed bytes of a BLOOM_FILTER_UTF8 stream of `filters` filters, each of `bits` bits."""
    return filters * (bits // 8 + _FRAME)


class NewStream(NamedTuple):
    """A new filter stream, compressed."""

    kind: str
    column: int
    packed: Sequence[bytes]
    checksum: int
    """A checksum of its uncompressed bytes (see `compression.Packer`)."""

    @property
    def length(self) -> int:
        """Bytes on disk."""
        return sum(map(len, self.packed))


class FilterStream:
    """Writes one filter stream, row group by row group."""

    def __init__(self, kind: str, column: int, codec: Codec) -> None:
        self._kind = kind
        self._column = column
        self._packer = Packer(codec)

    def add(self, bits: KirschMitzenmacherFilter) -> None:
        """Append the next row group's filter."""
        size = len(bits.bitset)
        head = _FUNCTIONS + _varint(bits.k)
        if self._kind == UTF8:
            head += _UTF8_BITS + _varint(size)
            self._packer.write(_ENTRY + _varint(len(head) + size) + head)
            self._packer.write(bits.bitset)
            return
        self._packer.write(_ENTRY + _varint(len(head) + size // 8 * 9) + head)
        view = memoryview(bits.bitset)
        for at in range(0, size, _LONGS_AT_A_TIME * 8):
            part = bytes(view[at : at + _LONGS_AT_A_TIME * 8])
            longs = bytearray([_LONG]) * (len(part) // 8 * 9)
            for byte in range(8):
                longs[byte + 1 :: 9] = part[byte::8]
            self._packer.write(longs)

    def finish(self) -> NewStream:
        """The stream, after every filter is added."""
        packed = self._packer.finish()
        return NewStream(self._kind, self._column, packed, self._packer.checksum)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
