"""ORC's compression chunks: every codec in both directions, uncompressed chunks, and the chunks of real writers."""

from __future__ import annotations

import random
import zlib

import pyarrow as pa
import pytest

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc.compression import Codec

CODECS = ("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD", "BROTLI")
COMPRESSED = CODECS[1:]
BLOCK = 1000
DATA = {
    "nothing": b"",
    "one byte": b"x",
    "a block": b"ab" * 500,
    "a block and a byte": b"ab" * 500 + b"c",
    "many blocks": b"words and words " * 700,
    "noise": random.Random(1).randbytes(4321),
    "mixed": random.Random(2).randbytes(1000) + bytes(3000) + random.Random(3).randbytes(500),
}


def codec(name: str, block: int = BLOCK) -> Codec:
    return Codec(name, block, "f")


def chunks(data: bytes) -> list[tuple[bool, bytes]]:
    """(is original, bytes) of each chunk."""
    found = []
    at = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        found.append((bool(head & 1), data[at + 3 : at + 3 + (head >> 1)]))
        at += 3 + (head >> 1)
    assert at == len(data)
    return found


def chunk(data: bytes, *, original: bool = False) -> bytes:
    return (len(data) << 1 | original).to_bytes(3, "little") + data


def packed(name: str, data: bytes) -> bytes:
    """One block by the codec's own library."""
    if name == "ZLIB":
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(data) + packer.flush()
    return bytes(pa.Codec({"LZ4": "lz4_raw"}.get(name, name.lower())).compress(data, asbytes=True))


@pytest.mark.parametrize("name", CODECS)
def test_what_was_compressed_comes_back(name: str) -> None:
    for what, data in DATA.items():
        assert codec(name).decompress(codec(name).compress(data), 0, "f") == data, what


@pytest.mark.parametrize("name", COMPRESSED)
def test_chunks_are_blocks_and_stay_original_where_compressing_gains_nothing(name: str) -> None:
    out = chunks(codec(name).compress(DATA["mixed"]))
    assert len(out) == 5
    for at, (original, data) in enumerate(out):
        block = DATA["mixed"][at * BLOCK : at * BLOCK + BLOCK]
        assert original == (len(packed(name, block)) >= len(block))
        assert original == (at in {0, 4})
        assert len(data) <= len(block)


@pytest.mark.parametrize("name", COMPRESSED)
def test_blocks_by_the_codecs_own_library_are_read(name: str) -> None:
    parts = [b"a" * BLOCK, b"", b"xyz" * 9, random.Random(5).randbytes(BLOCK), bytes(range(256)) * 3]
    stream = b"".join(chunk(packed(name, p)) for p in parts)
    for plain in (b"as it is", b"", bytes(BLOCK)):
        stream += chunk(plain, original=True)
    assert codec(name, 2 * BLOCK).decompress(stream, 0, "f") == b"".join(parts) + b"as it is" + bytes(BLOCK)


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_block_that_is_larger_than_the_block_size_is_refused(name: str) -> None:
    for size in (BLOCK + 1, 200 * BLOCK):
        with pytest.raises(CorruptFile, match="block size") as caught:
            codec(name).decompress(chunk(packed(name, b"a" * size)), 50, "footer")
        assert (caught.value.offset, caught.value.field) == (50, "footer")
    assert codec(name).decompress(chunk(packed(name, b"a" * BLOCK)), 0, "f") == b"a" * BLOCK


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"\x01\x00", "header is cut off"),
        (chunk(b"abc", original=True) + b"\x00\x00", "header is cut off"),
        (b"\x0b\x00\x00abc", "5 bytes runs past its stream, 3 are left"),
        (b"\xff\xff\xff", "8388607 bytes runs past its stream, 0 are left"),
        (chunk(b"\xff" * 40), "chunk"),
        (chunk(b"\xfe\xca" * 9), "chunk"),
    ],
)
def test_chunks_that_contradict_themselves_are_refused(name: str, stream: bytes, message: str) -> None:
    with pytest.raises(CorruptFile, match=message):
        codec(name).decompress(stream, 9, "f")


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_block_that_is_cut_off_is_refused_or_gives_no_more_than_was_there(name: str) -> None:
    data = random.Random(7).randbytes(300) * 3
    whole = packed(name, data)
    for length in range(1, len(whole), 7):
        try:
            found = codec(name).decompress(chunk(whole[:length]), 0, "f")
        except CorruptFile:
            continue
        assert data.startswith(found), length
        assert len(found) < len(data)


@pytest.mark.parametrize("name", CODECS[1:])
def test_a_stream_is_bounded_whatever_it_claims(name: str) -> None:
    stream = chunk(packed(name, bytes(BLOCK))) * 50
    assert len(codec(name).decompress(stream, 0, "f", ceiling=50 * BLOCK)) == 50 * BLOCK
    with pytest.raises(UnsupportedError, match="more than 49999 bytes"):
        codec(name).decompress(stream, 0, "f", ceiling=50 * BLOCK - 1)
