"""The ORC kernels against the scalar definitions and plain Python: hashes, decimals' text, filters, bounds."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import orc_hashes, orcfiles
from support.examples import examples
from support.reference import packed, unpacked

from bloomcli import kernels

FORMS = {1: "b", 4: "i", 8: "q"}


def edges(width: int) -> list[int]:
    top = 1 << width * 8 - 1
    rng = random.Random(width)
    return [-top, top - 1, -top + 1, 0, 1, -1, *(rng.randrange(-top, top) for _ in range(60))]


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_bytes_in_pieces_are_hashed_as_the_whole(pieces: list[bytes]) -> None:
    value = kernels.OrcMurmur()
    for piece in pieces:
        value.update(piece)
    assert value.digest() == orc_hashes.orc_bytes(b"".join(pieces))


def test_equal_neighbours_have_the_same_hash_and_others_their_own() -> None:
    values = [0, 0, 7, 7, 7, 0, -1, -1, 7]
    out = bytearray(8 * len(values))
    kernels.orc_hash_long(struct.pack(f"<{len(values)}q", *values), 8, 0, len(values), out)
    assert unpacked(out, len(values)) == [orc_hashes.orc_long(v) for v in values]
    kernels.orc_hash_double(struct.pack(f"<{len(values)}d", *values), 8, 0, len(values), out)
    assert unpacked(out, len(values)) == [orcfiles.double_hash(float(v)) for v in values]
    texts = [b"", b"", b"ab", b"ab", b"ba", b"ab", b"abc", b""]
    lengths = struct.pack(f"<{len(texts)}q", *map(len, texts))
    kernels.orc_hash_lengths(b"".join(texts), lengths, len(texts), out)
    assert unpacked(out, len(texts)) == [orc_hashes.orc_bytes(t) for t in texts]
    bitset = bytearray(8)
    kernels.km_insert(bitset, packed([5, 5, 9, 5]), 4, 3)
    assert bitset == orcfiles.bits_of([5, 9], 64, 3)


@pytest.mark.parametrize("width", FORMS)
def test_integers_of_every_width_are_sign_extended_and_mixed_also_those_of_a_slice(width: int) -> None:
    values = edges(width)
    data = struct.pack(f"<{len(values)}{FORMS[width]}", *values)
    for offset in (0, 1, 7, 8, 13):
        kept = values[offset : -3 if offset else None]
        out = bytearray(8 * len(kept))
        kernels.orc_hash_long(data, width, offset, len(kept), out)
        assert unpacked(out, len(kept)) == [orc_hashes.orc_long(v) for v in kept]


def test_the_floats_of_a_slice_are_hashed() -> None:
    values = edges(8)
    out = bytearray(8 * 9)
    kernels.orc_hash_double(struct.pack(f"<{len(values)}d", *values), 8, 7, 9, out)
    assert unpacked(out, 9) == [orcfiles.double_hash(float(v)) for v in values[7:16]]


DOUBLES = [0.0, -0.0, 1.1, -1.1, 5e-324, -2.2e-308, 1.7e308, math.inf, -math.inf, 1e15, 0.1]


@pytest.mark.parametrize("width", [4, 8])
def test_floats_are_widened_and_their_bits_are_hashed_as_a_long(width: int) -> None:
    form = "f" if width == 4 else "d"
    values = [v for v in DOUBLES if width == 8 or v == 0 or math.isinf(v) or 1e-30 < abs(v) < 1e30]
    data = struct.pack(f"<{len(values)}{form}", *values)
    out = bytearray(8 * len(values))
    kernels.orc_hash_double(data, width, 0, len(values), out)
    held = struct.unpack(f"<{len(values)}{form}", data)
    expected = [orc_hashes.orc_long(struct.unpack("<q", struct.pack("<d", v))[0]) for v in held]
    assert unpacked(out, len(values)) == expected
    assert len(set(expected)) == len(values), "each zero has a hash of its own"


@pytest.mark.parametrize(
    ("width", "patterns"),
    [
        (8, [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]),
        (4, [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF]),
    ],
)
def test_every_nan_is_hashed_as_the_canonical_one(width: int, patterns: list[int]) -> None:
    data = b"".join(p.to_bytes(width, "little") for p in patterns)
    out = bytearray(8 * len(patterns))
    kernels.orc_hash_double(data, width, 0, len(patterns), out)
    assert set(unpacked(out, len(patterns))) == {orc_hashes.orc_long(0x7FF8000000000000)}


def hash_of_decimal(value: int, scale: int) -> int:
    out = bytearray(8)
    kernels.orc_hash_decimals(value.to_bytes(16, "little", signed=True), 1, scale, out)
    return unpacked(out, 1)[0]


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (0, 0, b"0"),
        (0, 38, b"0"),
        (150, 2, b"1.5"),
        (-150, 2, b"-1.5"),
        (100, 2, b"1"),
        (100, 0, b"100"),
        (1, 38, b"0." + b"0" * 37 + b"1"),
        (-1, 1, b"-0.1"),
        (10, 1, b"1"),
        (1000, 5, b"0.01"),
        ((1 << 127) - 1, 0, b"170141183460469231731687303715884105727"),
        (-(1 << 127), 38, b"-1.70141183460469231731687303715884105728"),
    ],
)
def test_a_decimal_is_hashed_by_the_text_that_hive_prints(value: int, scale: int, text: bytes) -> None:
    assert hash_of_decimal(value, scale) == orc_hashes.orc_bytes(text)


@pytest.mark.parametrize(("bits", "k"), [(64, 1), (64, 1024), (128, 4), (9600, 7), (95_872, 30)])
def test_inserted_hashes_set_the_bits_that_java_would_and_are_found(bits: int, k: int) -> None:
    rng = random.Random(bits * k)
    hashed = [0, (1 << 64) - 1, 1 << 63, 1 << 31, 1 << 32, *(rng.getrandbits(64) for _ in range(40))]
    bitset = bytearray(bits // 8)
    kernels.km_insert(bitset, packed(hashed), len(hashed), k)
    assert bitset == orcfiles.bits_of(hashed, bits, k)
    out = bytearray(b"\x05" * len(hashed))
    assert kernels.km_check(bitset, packed(hashed), len(hashed), k, out) == 0
    assert set(out) == {1}
    others = [rng.getrandbits(64) for _ in range(200)]
    held = [all(bitset[p // 8] >> p % 8 & 1 for p in orcfiles.places(h, bits, k)) for h in others]
    out = bytearray(200)
    assert kernels.km_check(bitset, packed(others), 200, k, out) == held.count(False)
    assert [bool(b) for b in out] == held


BITS_MAX = 1 << 30


@pytest.fixture(scope="module")
def room() -> Iterator[memoryview]:
    """Zeros for the largest filter, in memory that is allocated when it is written to."""
    with mmap(-1, BITS_MAX // 8) as zeros, memoryview(zeros) as view:
        yield view


def placed(room: memoryview, value: int, bits: int, k: int) -> bool:
    """Whether the kernel sets exactly the bits of a division; leaves zeros behind."""
    expected = set(orcfiles.places(value, bits, k))
    with room[: bits // 8] as bitset:
        kernels.km_insert(bitset, packed([value]), 1, k)
        found = all(bitset[p >> 3] >> (p & 7) & 1 for p in expected)
        absent = kernels.km_check(bitset, packed([value]), 1, k, bytearray(1))
        ones = sum(bitset[at].bit_count() for at in {p >> 3 for p in expected})
        for place in expected:
            bitset[place >> 3] = 0
    return found and not absent and ones == len(expected)


@settings(max_examples=examples(500), deadline=None)
@given(st.integers(0, (1 << 64) - 1), st.integers(1, BITS_MAX // 64).map(lambda n: n * 64), st.integers(1, 40))
def test_the_bits_of_a_hash_are_those_of_a_division(room: memoryview, value: int, bits: int, k: int) -> None:
    assert placed(room, value, bits, k)


@pytest.mark.parametrize("bits", [64, 128, 192, 95_872, (1 << 29) + 64, BITS_MAX - 64, BITS_MAX])
def test_the_division_is_exact_where_a_reciprocal_is_nearest_to_failing(room: memoryview, bits: int) -> None:
    most = (1 << 31) // bits
    for quotient in {0, 1, *range(most, 0, -max(most // 50, 1))}:
        for combined in range(quotient * bits - 1, quotient * bits + 2):
            if 0 <= combined < 1 << 31:
                assert placed(room, combined, bits, 1)  # h2 is 0: the low half alone is divided


def test_an_empty_filter_has_nothing() -> None:
    bitset, out = bytearray(8), bytearray(3)
    kernels.km_insert(bitset, b"", 0, 3)
    assert bitset == bytes(8)
    assert kernels.km_check(bitset, packed([0, 1, 2]), 3, 3, out) == 3
    assert out == bytes(3)
    assert kernels.km_check(bitset, b"", 0, 3, bytearray()) == 0


def test_bits_are_counted_regardless_of_the_length() -> None:
    for length in (*range(12), 1000):
        data = random.Random(length).randbytes(length)
        assert kernels.count_bits(data) == int.from_bytes(data, "little").bit_count()
        assert kernels.count_bits(b"\xff" * length) == 8 * length


OUT = 8 * 4
LONGS = bytes(32)


@pytest.mark.parametrize(
    "call",
    [
        lambda o: kernels.orc_hash_long(LONGS, 8, 1, 4, o),
        lambda o: kernels.orc_hash_long(LONGS, 8, -1, 4, o),
        lambda o: kernels.orc_hash_long(LONGS, 8, 0, -1, o),
        lambda o: kernels.orc_hash_long(LONGS, 3, 0, 4, o),
        lambda o: kernels.orc_hash_long(LONGS, 0, 0, 4, o),
        lambda o: kernels.orc_hash_long(LONGS, 4, 0, 8, o),
        lambda o: kernels.orc_hash_long(LONGS, 8, (1 << 63) - 4, 4, o),
        lambda o: kernels.orc_hash_long(LONGS, 8, 0, 1 << 61, o),
        lambda o: kernels.orc_hash_double(LONGS, 8, (1 << 63) - 4, 4, o),
        lambda o: kernels.orc_hash_double(LONGS, 8, 1, 4, o),
        lambda o: kernels.orc_hash_double(LONGS, 2, 0, 4, o),
        lambda o: kernels.orc_hash_double(LONGS, 4, 0, 8, o),
        lambda o: kernels.orc_hash_decimals(bytes(15), 1, 0, o),
        lambda _: kernels.orc_hash_decimals(bytes(32), 2, 0, bytearray(15)),
        lambda o: kernels.orc_hash_decimals(bytes(16), -1, 0, o),
        lambda o: kernels.orc_hash_decimals(bytes(16), 1, 39, o),
        lambda o: kernels.orc_hash_decimals(bytes(16), 1, -1, o),
        lambda _: kernels.km_insert(bytearray(), LONGS, 4, 1),
        lambda _: kernels.km_insert(bytearray(8), LONGS, 5, 1),
        lambda _: kernels.km_insert(bytearray(8), LONGS, -1, 1),
        lambda _: kernels.km_insert(bytearray(8), LONGS, 4, 0),
        lambda _: kernels.km_insert(bytearray(8), LONGS, 4, 1025),
        lambda o: kernels.km_check(b"", LONGS, 4, 1, o),
        lambda o: kernels.km_check(bytes(8), LONGS, 5, 1, o),
        lambda _: kernels.km_check(bytes(8), LONGS, 4, 1, bytearray(3)),
        lambda o: kernels.km_check(bytes(8), LONGS, 4, 0, o),
    ],
)
def test_ranges_and_figures_out_of_bounds_are_refused(call: Callable[[bytearray], Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        call(bytearray(OUT))
