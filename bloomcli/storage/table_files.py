"""Reads the files of a table's metadata: JSON, which may be packed by gzip, and Avro.

fastavro unpacks a block of any size, so blocks of Avro files are unpacked here, up to a limit.
Source: the Avro specification, "Object Container Files" and "Required Codecs", "Optional Codecs".
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from bloomcli import kernels
from bloomcli.errors import BloomError, CorruptFile, needed
from bloomcli.storage.registry import open_source

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MOST: Final = 1 << 30
"""The most bytes of a file's records, and of a JSON file and what it unpacks to."""
_TOO_LARGE: Final = "its records have more than 1 GiB"


def read_object(path: str) -> dict[str, Any]:
    """The object in a file. Raises CorruptFile, UnreadableError."""
    with open_source(path) as source:
        data = source.read_at(0, min(source.size, _MOST))
    try:
        if data[:2] == b"\x1f\x8b":
            unpacked = zlib.decompressobj(wbits=31)
            data = unpacked.decompress(data, _MOST)
            if not unpacked.eof:
                raise ValueError("it is cut off, or unpacks to more than 1 GiB")
        document = json.loads(data)
        if not isinstance(document, dict):
            raise TypeError("it isn't an object")
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise CorruptFile(f"the table's metadata can't be read: {error}", path=path) from None
    return document


def read_blocks(data: bytes, most: int = _MOST) -> tuple[Any, Iterator[list[Any]]]:
    """The schema of a file, as parsed JSON, and the records of each of its blocks.

    Args:
        data: the file.
        most: the most bytes of its records.

    Raises:
        ImportError: fastavro isn't installed.
        ValueError: the file is damaged, has an unknown codec, or its records have more bytes than `most`, or none.
        OSError, EOFError, LookupError, ArithmeticError, TypeError: the file is damaged.
    """
    from fastavro import parse_schema, schemaless_reader
    from fastavro.schema import SchemaParseException

    source = io.BytesIO(data)
    if source.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it doesn't begin with Avro's magic bytes")
    header: Any = schemaless_reader(source, {"type": "map", "values": "bytes"}, None)
    if len(sync := source.read(_SYNC_BYTES)) < _SYNC_BYTES:
        raise ValueError("it is cut off")
    codec = header.get("avro.codec", b"null").decode("ascii", "replace")
    if codec not in _CODECS:
        raise ValueError(f"its codec is {codec}, which bloom doesn't know")
    schema = json.loads(header.get("avro.schema", b""))
    try:
        parsed = parse_schema(schema)
    except SchemaParseException as error:
        raise ValueError(str(error)) from None

    def blocks() -> Iterator[list[Any]]:
        left = most
        while source.tell() < len(data):
            count: Any = schemaless_reader(source, "long", None)
            packed: Any = schemaless_reader(source, "bytes", None)
            if source.read(_SYNC_BYTES) != sync:
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


def records(path: str, what: str, extra: str) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    """The schema and the records of a manifest, or of another Avro file of a table's metadata.

    Args:
        path: the file.
        what, extra: as in `errors.needed`, if fastavro isn't installed.

    Raises:
        CorruptFile: the file is damaged.
        UnreadableError, UnsupportedError: it can't be read.
    """
    with open_source(path) as source:
        data = source.read_at(0, source.size)
    with needed(what, extra), _faults("the manifest", path):
        schema, blocks = read_blocks(data)
        return schema, list(chain.from_iterable(blocks))


def record(data: bytes, schema: dict[str, Any], path: str, what: str, extra: str) -> dict[str, Any]:
    """A record that stands alone, by its schema or the first fields of that. The rest is as in `records`."""
    with needed(what, extra), _faults("a record", path):
        from fastavro import schemaless_reader

        fields: Any = schemaless_reader(io.BytesIO(data), schema, None)
        return dict(fields)


@contextmanager
def _faults(what: str, path: str) -> Iterator[None]:
    """Convert the exceptions of fastavro on damaged bytes to CorruptFile."""
    try:
        yield
    except Exception as error:
        if isinstance(error, BloomError | MemoryError | ImportError):
            raise
        reason = " ".join(str(error).split())[:200] or "it is cut off"
        raise CorruptFile(f"{what} can't be read: {reason}", path=path) from None


def _deflated(packed: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(-15)
    try:
        data = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof and len(data) <= most:
        raise ValueError("a block is cut off")
    return data


def _snappy(packed: bytes, most: int) -> bytes:
    body, checksum = packed[:-4], packed[-4:]
    size, _ = kernels.varint(body, 0)
    if size > most:
        raise ValueError(_TOO_LARGE)
    import pyarrow as pa

    data: bytes = pa.Codec("snappy").decompress(body, size, asbytes=True)
    if struct.pack(">I", zlib.crc32(data)) != checksum:
        raise ValueError("a block's checksum doesn't match")
    return data


def _zstandard(packed: bytes, most: int) -> bytes:
    import pyarrow as pa

    data: bytes = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read(most + 1)
    return data


_CODECS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "null": lambda packed, _: packed,
    "deflate": _deflated,
    "snappy": _snappy,
    "zstandard": _zstandard,
}
"""The codecs of Iceberg's writers. Each unpacks a block; of one that is larger than a limit, only a little more."""
