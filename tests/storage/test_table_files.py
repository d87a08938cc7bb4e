"""Avro files of tables: each codec is unpacked, and hostile files end in an error before they fill the memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from bloomcli.storage.table_files import read_blocks

pytestmark = pytest.mark.slow  # the quick run leaves out the tests of tables

DAMAGED = (ValueError, OSError, EOFError, LookupError, ArithmeticError, TypeError)
"""The errors that callers take for a damaged file."""
TEXTS = [f"text {number}" for number in range(1000)]


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": raw,
    "snappy": lambda data: pa.Codec("snappy").compress(data, asbytes=True) + struct.pack(">I", zlib.crc32(data)),
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


def long(value: int) -> bytes:
    out, rest = bytearray(), value << 1 ^ value >> 63  # zigzag
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def file(codec: str, *blocks: tuple[int, bytes], schema: bytes = b'"string"') -> bytes:
    """A file of blocks with these counts and packed bytes."""
    header = sized(b"avro.schema") + sized(schema) + sized(b"avro.codec") + sized(codec.encode())
    sync = b"s" * 16
    return b"Obj\x01" + long(2) + header + b"\0" + sync + b"".join(long(n) + sized(b) + sync for n, b in blocks)


def block(texts: list[str]) -> bytes:
    return b"".join(sized(text.encode()) for text in texts)


def rows_of(data: bytes, **limit: int) -> list[object]:
    return [row for rows in read_blocks(data, **limit)[1] for row in rows]


@pytest.mark.parametrize("codec", PACKERS)
def test_files_of_each_codec_have_their_records(codec: str) -> None:
    pack = PACKERS[codec]
    data = file(codec, (600, pack(block(TEXTS[:600]))), (400, pack(block(TEXTS[600:]))))
    assert rows_of(data) == TEXTS
    assert rows_of(file(codec)) == []


@pytest.mark.parametrize("codec", PACKERS)
def test_a_block_that_unpacks_to_too_much_is_an_error(codec: str) -> None:
    packed = PACKERS[codec](block(["x" * 100_000]))
    with pytest.raises(ValueError, match="more than 1 GiB"):
        rows_of(file(codec, (1, packed)), most=99_000)
    with pytest.raises(ValueError, match="more than 1 GiB"):
        rows_of(file(codec, (1, packed), (1, packed)), most=150_000)  # both of them
    assert len(rows_of(file(codec, (1, packed)), most=100_003)) == 1


@pytest.mark.parametrize("codec", PACKERS)
def test_cut_and_flipped_files_are_errors(codec: str) -> None:
    whole = file(codec, (3, PACKERS[codec](block(["abc", "de", "f"] * 1))), (1, PACKERS[codec](block(["last"]))))
    header = len(file(codec))
    for size in range(len(whole)):
        if size in {header, len(file(codec, (3, PACKERS[codec](block(["abc", "de", "f"])))))}:
            continue  # a file of fewer blocks
        with pytest.raises(DAMAGED):
            rows_of(whole[:size])
    for at in range(len(whole)):
        try:
            rows = rows_of(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        except DAMAGED:
            continue
        assert len(rows) <= len(whole)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (file("null", (1 << 40, b"\0")), "more records than its bytes"),
        (file("null", (1 << 40, b""), schema=b'"null"'), "more records than its bytes"),
        (file("null", (-1, b"\0")), "more records than its bytes"),
        (file("null", (1, b"\0"))[:-1] + b"t", "sync marker"),
        (file("lzo", (1, b"\0")), "codec is lzo"),
        (b"Obj\x01" + b"\xff" * 20, ".*"),
        (b"Obj\x01" + long(1 << 50), "^$"),
        (file("null", schema=b'{"type": "record", "name": "r", "fields": [{"name": "a"}]}'), "missing 'type'"),
        (b"PAR1", "magic"),
        (b"", "magic"),
    ],
)
def test_what_is_not_avro_is_an_error(data: bytes, said: str) -> None:
    with pytest.raises(DAMAGED, match=said):
        rows_of(data)
