"""Kirsch-Mitzenmacher filters: orc-core's sizes, where hashes land, what is measured on the bits."""

from __future__ import annotations

import math
import random

import pytest
from support import orcfiles
from support.reference import packed

from bloomcli.filters import kirsch_mitzenmacher as km
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter as Filter

COUNTS = (1, 2, 3, 10, 63, 64, 65, 100, 1000, 1024, 5000, 10_000, 12_345, 100_000, 1_000_000)
RATES = (0.9, 0.5, 0.1, 0.05, 0.01, 0.001, 1e-6, 1e-12)


def filled(count: int, fpp: float, seed: int = 0) -> tuple[Filter, list[int]]:
    rng = random.Random(seed)
    hashed = [rng.getrandbits(64) for _ in range(count)]
    bits = Filter.empty(*km.size_for(count, fpp))
    bits.insert_hashes(packed(hashed), count)
    return bits, hashed


@pytest.mark.parametrize(
    ("count", "fpp", "size"),
    [
        (10_000, 0.01, (95_872, 7)),
        (10_000, 0.05, (62_400, 4)),
        (1000, 0.01, (9600, 7)),
        (1000, 0.05, (6272, 4)),
        (1, 0.9, (64, 44)),
        (0, 0.01, (64, 44)),
        (-5, 0.01, (64, 44)),
    ],
)
def test_sizes_are_those_that_orc_core_writes(count: int, fpp: float, size: tuple[int, int]) -> None:
    assert km.size_for(count, fpp) == size


@pytest.mark.parametrize("fpp", RATES)
def test_sizes_follow_the_formula(fpp: float) -> None:
    """A multiple of 64 gains 64."""
    for count in (*COUNTS, *range(1, 2000, 7)):
        wanted = int(-count * math.log(fpp) / (math.log(2) * math.log(2)))
        bits, k = km.size_for(count, fpp)
        assert bits == wanted + (64 - wanted % 64)
        assert k == max(1, math.floor(bits / count * math.log(2) + 0.5))


@pytest.mark.parametrize("fpp", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_rate_that_is_none_is_refused(fpp: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        km.size_for(100, fpp)


def test_a_size_is_bounded_whatever_is_requested() -> None:
    bits, k = km.size_for(1 << 40, 1e-9)
    assert bits <= 1 << 30
    assert k == 1


@pytest.mark.parametrize("fpp", [0.1, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("count", [1000, 10_000])
def test_the_rate_that_was_requested_is_distinguished_from_the_size(count: int, fpp: float) -> None:
    assert km.requested_fpp(count, km.size_for(count, fpp)[0]) == pytest.approx(fpp, rel=0.05)


@pytest.mark.parametrize("bitset", [b"", bytearray()])
def test_a_bitset_has_a_byte(bitset: bytes) -> None:
    with pytest.raises(ValueError, match="at least one byte"):
        Filter(bitset, 3)


@pytest.mark.parametrize("k", [0, -1])
def test_a_filter_has_a_hash_function(k: int) -> None:
    with pytest.raises(ValueError, match="hash function"):
        Filter(bytes(8), k)


@pytest.mark.parametrize(("count", "fpp"), [(1, 0.5), (50, 0.1), (300, 0.01), (300, 1e-6)])
def test_what_was_inserted_is_always_found(count: int, fpp: float) -> None:
    bits, hashed = filled(count, fpp)
    assert bits.check_hashes(packed(hashed), count, bytearray(count)) == 0
    assert all(map(bits.check, hashed))
    assert bytes(bits.bitset) == orcfiles.bits_of(hashed, bits.bits, bits.k)
    ones = sum(byte.bit_count() for byte in bits.bitset)
    assert (bits.set_bits, bits.fill) == (ones, ones / bits.bits)
    assert bits.fpp == pytest.approx((ones / bits.bits) ** bits.k)
    again = Filter(bytes(bits.bitset), bits.k)
    again.insert_hashes(packed([7]), 1)
    assert again.check(7)


def test_the_trail_is_what_the_kernel_looks_at() -> None:
    bits, hashed = filled(200, 0.2)
    others = [random.Random(i).getrandbits(64) for i in range(1000, 1600)]
    both = hashed + others
    out = bytearray(len(both))
    bits.check_hashes(packed(both), len(both), out)
    for value, answer in zip(both, out, strict=True):
        _, where, there = bits.trail(value)
        assert list(where) == orcfiles.places(value, bits.bits, bits.k)
        assert there == tuple(bool(bits.bitset[p // 8] >> p % 8 & 1) for p in where)
        assert all(there) == bool(answer) == bits.check(value)


@pytest.mark.parametrize("count", [1, 10, 100, 1000, 2000])
def test_distinct_values_are_estimated_from_the_bits(count: int) -> None:
    bits = Filter.empty(*km.size_for(1000, 0.01))
    rng = random.Random(count)
    hashed = [rng.getrandbits(64) for _ in range(count)]
    for _ in range(3):  # duplicates don't count
        bits.insert_hashes(packed(hashed), count)
    assert bits.ndv_estimate == pytest.approx(count, rel=0.06)


def test_an_empty_filter_holds_nothing_and_a_full_one_no_estimate() -> None:
    empty, full = Filter.empty(64, 3), Filter(b"\xff" * 8, 3)
    assert (empty.fpp, empty.ndv_estimate, empty.check(5)) == (0.0, 0.0, False)
    assert (full.fpp, full.ndv_estimate, full.check(5)) == (1.0, None, True)
