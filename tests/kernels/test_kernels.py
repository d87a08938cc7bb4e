"""Hashing, split-block filters and CRC-32C in the compiled module, against other implementations."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
import xxhash
from support import reference
from support.reference import packed, unpacked

from bloomcli import kernels

DATA = random.Random(1).randbytes(4096)
SOURCE = random.Random(2)
HASHES = [SOURCE.getrandbits(64) for _ in range(500)]
HUGE = (1 << 63) - 1


@pytest.mark.parametrize("start", [0, 1, 3])
def test_xxh64_of_every_length_is_what_the_xxhash_package_gives(start: int) -> None:
    for length in range(201):
        value = DATA[start : start + length]
        assert kernels.xxh64(value) == xxhash.xxh64_intdigest(value, seed=0), length


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, lambda data: memoryview(pa.py_buffer(data)).cast("B")]
)
def test_any_buffer_can_be_hashed(kind: Callable[[bytes], object]) -> None:
    assert kernels.xxh64(kind(b"parquet")) == xxhash.xxh64_intdigest(b"parquet")  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 12, 16, 31, 32, 33])
def test_fixed_values_hash_as_each_value_alone(width: int) -> None:
    count = 70
    out = bytearray(count * 8)
    assert kernels.hash_plain_fixed(DATA, width, count, out, every=True) == count
    assert unpacked(out, count) == [
        xxhash.xxh64_intdigest(DATA[at * width : (at + 1) * width]) for at in range(count)
    ]


def test_binary_values_hash_as_each_value_alone() -> None:
    values = [*(DATA[at : at + at % 41] for at in range(88)), b"", b""]
    _, offsets, data = pa.array(values, pa.large_binary()).buffers()
    out = bytearray(90 * 8)
    kernels.hash_binary(memoryview(offsets).cast("B"), memoryview(data).cast("B"), 90, out)
    assert unpacked(out, 90) == [xxhash.xxh64_intdigest(value) for value in values]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((DATA, 8, 513, bytearray(8 * 513)), "don't fit"),
        ((DATA, 0, 1, bytearray(8)), "don't fit"),
        ((DATA, -8, 1, bytearray(8)), "don't fit"),
        ((DATA, 8, -1, bytearray(8)), "no room"),
        ((DATA, 8, 2, bytearray(15)), "no room"),
        ((DATA, 8, HUGE, bytearray(8)), "no room"),
        ((DATA, 1, 1 << 61, bytearray(8)), "no room"),
    ],
)
def test_fixed_values_outside_a_buffer_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.hash_plain_fixed(*arguments, every=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "count", "message"),
    [
        ((0, 5), 2, "fewer offsets"),
        ((0, 5), HUGE, "fewer offsets"),
        ((0, 5), -1, "fewer offsets"),
        ((), 0, "fewer offsets"),
        ((-1, 5), 1, "outside the data"),
        ((3, 2), 1, "outside the data"),
        ((0, 6), 1, "outside the data"),
        ((0, 5, 4), 2, "outside the data"),
    ],
)
def test_binary_values_outside_a_buffer_are_refused(offsets: tuple[int, ...], count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.hash_binary(struct.pack(f"<{len(offsets)}q", *offsets), b"12345", count, bytearray(64))


def test_binary_hashes_need_room() -> None:
    with pytest.raises(ValueError, match="no room"):
        kernels.hash_binary(struct.pack("<11q", *range(11)), DATA, 10, bytearray(79))


@pytest.mark.parametrize(("width", "code"), [(2, "e"), (4, "f"), (8, "d")])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_either_zero_is_found_at_any_place(width: int, code: str, zero: float) -> None:
    tiny = {"e": 6e-8, "f": 1e-45, "d": 5e-324}[code]
    for place in range(5):
        values = [tiny, -tiny, 1.5, float("nan"), -2.0]
        values[place] = zero
        data = struct.pack(f"<5{code}", *values)
        assert kernels.has_zero(data, width, 5)
        assert kernels.has_zero(data[place * width :], width, 1)
        assert not kernels.has_zero(data[(place + 1) * width :], width, 4 - place)
        assert not kernels.has_zero(data, width, place)


@pytest.mark.parametrize("arguments", [(3, 1), (8, 3), (8, HUGE), (0, 1), (8, -1)])
def test_zeros_are_not_looked_for_outside_the_values(arguments: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="fewer values"):
        kernels.has_zero(bytes(16), *arguments)


@pytest.mark.parametrize("extreme", [0, (1 << 64) - 1, 1 << 32, (1 << 32) - 1])
@pytest.mark.parametrize("blocks", [1, 3, 1024])
def test_the_extreme_hashes_stay_inside(extreme: int, blocks: int) -> None:
    guarded = bytearray(32 * (blocks + 2))
    with memoryview(guarded)[32:-32] as bitset:
        kernels.sbbf_insert(bitset, packed([extreme]), 1)
        assert bytes(bitset) == reference.filter_of([extreme], 32 * blocks)
    assert not any(guarded[:32])
    assert not any(guarded[-32:])


@pytest.mark.parametrize("size", [0, 1, 31, 33, 48])
def test_a_bitset_that_is_not_whole_blocks_is_refused(size: int) -> None:
    bitset = bytearray(size)
    calls: list[Callable[[], object]] = [
        lambda: kernels.sbbf_insert(bitset, bytes(8), 1),
        lambda: kernels.sbbf_check(bitset, bytes(8), 1, bytearray(1)),
        lambda: kernels.sbbf_stats(bitset),
        lambda: kernels.sbbf_resized(bitset, 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="multiple of 32"):
            call()


@pytest.mark.parametrize("count", [-1, 2, HUGE, 1 << 61])
def test_more_hashes_than_there_are_are_refused(count: int) -> None:
    bitset = bytearray(32)
    with pytest.raises(ValueError, match="fewer hashes"):
        kernels.sbbf_insert(bitset, bytes(15), count)
    with pytest.raises(ValueError, match="fewer hashes"):
        kernels.sbbf_check(bitset, bytes(15), count, bytearray(8))
    assert not any(bitset)


def test_answers_need_room() -> None:
    with pytest.raises(ValueError, match="no room"):
        kernels.sbbf_check(bytes(32), bytes(16), 2, bytearray(1))


def test_inserting_into_read_only_bits_is_refused() -> None:
    with pytest.raises(BufferError):
        kernels.sbbf_insert(bytes(32), bytes(8), 1)


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # this and the next three: RFC 3720, appendix B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_gives_the_published_figures(data: bytes, crc: int) -> None:
    assert kernels.crc32c_chunks(data, len(data)) == crc.to_bytes(4, "big")


@pytest.mark.parametrize("size", [1, 7, 8, 9, 512, 4096, 5000, HUGE])
def test_each_chunk_has_its_own_checksum(size: int) -> None:
    expected = b"".join(
        kernels.crc32c_chunks(DATA[at : at + size], len(DATA[at : at + size])) for at in range(0, len(DATA), size)
    )
    assert kernels.crc32c_chunks(DATA, size) == expected
    assert expected[:4] != zlib.crc32(DATA[:size]).to_bytes(4, "big")


def test_no_data_has_no_checksums_and_a_chunk_has_bytes() -> None:
    assert kernels.crc32c_chunks(b"", 512) == b""
    for size in (0, -1):
        with pytest.raises(ValueError, match="at least one byte"):
            kernels.crc32c_chunks(DATA, size)
