"""Deletion vectors: the row numbers that a blob marks as deleted.

Iceberg and Delta use the same format: the length (big-endian, without the checksum), the bytes D1 D3 39 64, a
64-bit Roaring bitmap in the portable format, and a CRC-32 (big-endian) of magic and bitmap. Sources: the Puffin
specification ("deletion-vector-v1"), Delta's PROTOCOL.md ("Deletion Vector Format"), RoaringFormatSpec.

Row numbers are looked up in the stored form of the bitmap, which is never expanded.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from bloomcli.errors import CorruptFile

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_WITHOUT_RUNS: Final = 12346
_WITH_RUNS: Final = 12347
_NO_OFFSETS: Final = 4
"""Bitmaps with runs and fewer containers than this have no offsets."""
_ARRAY_MOST: Final = 4096
_BITMAP_BYTES: Final = 8192


class Bitmap:
    """A 64-bit Roaring bitmap.

    Args:
        data: the bitmap in the portable format, without trailing bytes.
        path, offset: the file, and the bitmap's offset in it, for errors.

    Raises:
        CorruptFile: the data isn't a valid bitmap.
    """

    def __init__(self, data: bytes, path: str, offset: int = 0) -> None:
        self._data = memoryview(data)
        self._containers: dict[int, Callable[[int], bool]] = {}
        """For each container, by the upper 48 bits of its numbers, a function that looks up the lower 16 bits."""
        self._at = 0
        try:
            (count,) = self._take("<Q")
            for _ in range(count):
                (high,) = self._take("<I")
                self._read(high)
        except (struct.error, ValueError, IndexError):
            raise CorruptFile("the deletion vector is damaged: it ends too early", path=path, offset=offset) from None
        if self._at != len(data):
            raise CorruptFile("the deletion vector is damaged: it is too long", path=path, offset=offset)

    def __contains__(self, number: int) -> bool:
        has = self._containers.get(number >> 16)
        return has is not None and has(number & 0xFFFF)

    def _take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def _bytes(self, count: int) -> memoryview:
        if self._at + count > len(self._data):
            raise ValueError
        self._at += count
        return self._data[self._at - count : self._at]

    def _read(self, high: int) -> None:
        """Read a 32-bit bitmap."""
        (cookie,) = self._take("<I")
        runs = b""
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            runs = bytes(self._bytes((count + 7) // 8))
        elif cookie == _WITHOUT_RUNS:
            (count,) = self._take("<I")
        else:
            raise ValueError
        headers = struct.unpack(f"<{2 * count}H", self._bytes(4 * count))
        if not runs or count >= _NO_OFFSETS:
            self._bytes(4 * count)
        for at in range(count):
            key, cardinality = headers[2 * at], headers[2 * at + 1] + 1
            if runs and runs[at // 8] >> at % 8 & 1:
                has = self._runs()
            elif cardinality <= _ARRAY_MOST:
                has = _of_array(struct.unpack(f"<{cardinality}H", self._bytes(2 * cardinality)))
            else:
                has = _of_bits(self._bytes(_BITMAP_BYTES))
            self._containers[high << 16 | key] = has

    def _runs(self) -> Callable[[int], bool]:
        (count,) = self._take("<H")
        pairs = struct.unpack(f"<{2 * count}H", self._bytes(4 * count))
        starts, lengths = pairs[::2], pairs[1::2]

        def has(low: int) -> bool:
            at = bisect_right(starts, low) - 1
            return at >= 0 and low - starts[at] <= lengths[at]

        return has


def _of_array(numbers: tuple[int, ...]) -> Callable[[int], bool]:
    return frozenset(numbers).__contains__


def _of_bits(bits: memoryview) -> Callable[[int], bool]:
    return lambda low: bool(bits[low >> 3] >> (low & 7) & 1)


def from_blob(blob: bytes, path: str, offset: int) -> Bitmap:
    """Read the bitmap of a blob, and check its length and checksum. Raises CorruptFile."""
    if len(blob) < 12 or int.from_bytes(blob[:4], "big") != len(blob) - 8:
        raise CorruptFile("the deletion vector isn't as long as it says", path=path, offset=offset)
    if zlib.crc32(blob[4:-4]) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFile("the deletion vector's checksum doesn't match", path=path, offset=offset)
    return from_body(blob[4:-4], path, offset + 4)


def from_body(body: bytes, path: str, offset: int = 0) -> Bitmap:
    """Read the bitmap that follows the magic bytes. Raises CorruptFile."""
    if body[:4] != _MAGIC:
        raise CorruptFile("the deletion vector doesn't begin with its magic bytes", path=path, offset=offset)
    return Bitmap(body[4:], path, offset + 4)
