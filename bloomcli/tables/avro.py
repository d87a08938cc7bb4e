"""Reads Avro files with fastavro, which unpacks a block of any size: the blocks are unpacked here, up to a limit.

Source: the Avro specification, "Object Container Files" and "Required Codecs", "Optional Codecs".
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MOST: Final = 1 << 30
"""The most bytes of a file's records."""
_TOO_LARGE: Final = "its records have more than 1 GiB"


def read_blocks(data: bytes, most: int = _MOST) -> tuple[Any, Iterator[list[Any]]]:
    """The schema of a file, as parsed JSON, and the records of each of its blocks.

    Args:
        data: the file.
        most: the most bytes of its records.

    Raises:
        ImportError: fastavro isn't installed.
        ValueError: the file is damaged, has an unknown codec, or its records have more bytes than `most`, or none.
        Others of the codecs and of fastavro: the file is damaged.
    """
    from fastavro import parse_schema, schemaless_reader

    source = _Bytes(data)
    if source.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it doesn't begin with Avro's magic bytes")
    header: dict[bytes, bytes] = {}
    while count := source.number():
        if count < 0:
            source.number()  # the bytes of these entries
        for _ in range(abs(count)):
            name = source.take(source.number())
            header[name] = source.take(source.number())
    sync = source.take(_SYNC_BYTES)
    codec = header.get(b"avro.codec", b"null").decode("ascii", "replace")
    if codec not in _CODECS:
        raise ValueError(f"its codec is {codec}, which bloom doesn't know")
    schema = json.loads(header.get(b"avro.schema", b""))
    parsed = parse_schema(schema)

    def blocks() -> Iterator[list[Any]]:
        left = most
        while source.left:
            count, packed = source.number(), source.take(source.number())
            if source.take(_SYNC_BYTES) != sync:
                raise ValueError("a block doesn't end with the file's sync marker")
            block = _CODECS[codec](packed, left)
            left -= len(block)
            if left < 0:
                raise ValueError(_TOO_LARGE)
            if not 0 <= count <= len(block):
                raise ValueError("a block has more records than its bytes can have")
            records = io.BytesIO(block)
            yield [schemaless_reader(records, parsed, None) for _ in range(count)]

    return schema, blocks()


class _Bytes:
    """The bytes of a file, from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise ValueError("it is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        """The next long, in zigzag encoding."""
        found = shift = 0
        while True:
            (byte,) = self.take(1)
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            if shift > 63:
                raise ValueError("a number has more than 64 bits")


def _whole(unpacker: Any, packed: bytes, most: int) -> bytes:
    found: bytes = unpacker.decompress(packed, most + 1)
    if not unpacker.eof and len(found) <= most:
        raise ValueError("a block is cut off")
    return found


def _snappy(packed: bytes, most: int) -> bytes:
    body, checksum = packed[:-4], packed[-4:]
    size = shift = 0
    for byte in body[:5]:  # the size in plain varint encoding
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > most:
        raise ValueError(_TOO_LARGE)
    found: bytes = pa.Codec("snappy").decompress(body, size, asbytes=True)
    if struct.pack(">I", zlib.crc32(found)) != checksum:
        raise ValueError("a block's checksum doesn't match")
    return found


def _zstandard(packed: bytes, most: int) -> bytes:
    return pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read(most + 1)  # type: ignore[no-any-return]


_CODECS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "null": lambda packed, _: packed,
    "deflate": lambda packed, most: _whole(zlib.decompressobj(-15), packed, most),
    "bzip2": lambda packed, most: _whole(bz2.BZ2Decompressor(), packed, most),
    "xz": lambda packed, most: _whole(lzma.LZMADecompressor(), packed, most),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
"""Each unpacks a block; of one that has more bytes than a limit, only some more than these."""
