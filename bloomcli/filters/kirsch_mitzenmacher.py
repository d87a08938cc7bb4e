"""Kirsch-Mitzenmacher Bloom filter, as ORC has it. Sources: orc-core's BloomFilter; Kirsch and Mitzenmacher,
"Less Hashing, Same Performance: Building a Better Bloom Filter".

Invariant: misses are exact, hits are probabilistic.

A filter is m bits (longs, little-endian) and k hash functions made of one 64-bit hash: with h1 its low and h2
its high 32 bits, signed, function i (1 to k) is h1 + i h2 in wrapping 32-bit arithmetic, its bits flipped where
it is negative, modulo m. A value is "maybe" there when all k bits are set; with a share f of all bits set, a
random absent value is found with probability f^k.
"""

from __future__ import annotations

import math

from bloomcli import kernels

_LONG_BITS = 64


def size_for(values: int, fpp: float) -> tuple[int, int]:
    """(m, k) that orc-core chooses for `values` expected values at rate `fpp`.

    m = floor(-n ln p / (ln 2)^2), then up to the next multiple of 64 (a multiple of 64 gains 64);
    k = max(1, round(m / n ln 2)), rounding halves up.

    Raises:
        ValueError: a figure out of range.
    """
    if not 0 < fpp < 1:
        raise ValueError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
    count = max(values, 1)
    bits = min(int(-count * math.log(fpp) / (math.log(2) * math.log(2))), (1 << 30) - _LONG_BITS)
    bits += _LONG_BITS - bits % _LONG_BITS
    return bits, functions_for(count, bits)


def functions_for(values: int, bits: int) -> int:
    """k for a filter of `bits` that is to hold `values`: max(1, round(m / n ln 2))."""
    return max(1, math.floor(bits / max(values, 1) * math.log(2) + 0.5))


def rate_asked_for(values: int, bits: int) -> float:
    """The rate that a writer asked for to get `bits` for `values`: exp(-m / n (ln 2)^2), as an upper estimate."""
    return math.exp(-bits / max(values, 1) * math.log(2) ** 2)


class KirschMitzenmacherFilter:
    """m bits, k hash functions, and everything that can be asked of them."""

    __slots__ = ("_ones", "bitset", "k")

    def __init__(self, bitset: bytes | bytearray, k: int) -> None:
        if not bitset or len(bitset) % 8:
            raise ValueError(f"a bitset is a positive multiple of 8 bytes, not {len(bitset)}")
        if k < 1:
            raise ValueError(f"a filter has a hash function at least, not {k}")
        self.bitset = bitset
        self.k = k
        self._ones: int | None = None

    @classmethod
    def empty(cls, bits: int, k: int) -> KirschMitzenmacherFilter:
        """A filter of `bits` (a multiple of 64), holding nothing."""
        return cls(bytearray(bits // 8), k)

    def emptied(self) -> KirschMitzenmacherFilter:
        """A filter of the same shape, holding nothing."""
        return KirschMitzenmacherFilter(bytearray(len(self.bitset)), self.k)

    @property
    def bits(self) -> int:
        """m."""
        return len(self.bitset) * 8

    def insert_hashes(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert `count` hashes: uint64s, little-endian, 8 bytes each."""
        if not isinstance(self.bitset, bytearray):
            self.bitset = bytearray(self.bitset)
        self._ones = None
        kernels.km_insert(self.bitset, hashes, count, self.k)

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray) -> int:
        """Look up `count` hashes; out[i] becomes 1 for "maybe", 0 for "absent". Returns how many are absent."""
        return kernels.km_check(self.bitset, hashes, count, self.k, out)

    def check(self, value: int) -> bool:
        """False: this hash was never inserted. True: maybe."""
        return not self.check_hashes(value.to_bytes(8, "little"), 1, bytearray(1))

    def trail(self, value: int) -> tuple[None, tuple[int, ...], tuple[bool, ...]]:
        """Where a hash lands: (None, for the block; the bit of each of the k functions; whether each is set)."""
        low, high = value & 0xFFFFFFFF, value >> 32
        places = []
        for i in range(1, self.k + 1):
            combined = (low + i * high) & 0xFFFFFFFF
            if combined >> 31:
                combined ^= 0xFFFFFFFF
            places.append(combined % self.bits)
        return None, tuple(places), tuple(bool(self.bitset[p >> 3] >> (p & 7) & 1) for p in places)

    @property
    def set_bits(self) -> int:
        """How many bits are set."""
        if self._ones is None:
            self._ones = kernels.count_bits(self.bitset)
        return self._ones

    @property
    def fill(self) -> float:
        """Share of bits set, 0 to 1."""
        return self.set_bits / self.bits

    @property
    def fpp(self) -> float:
        """Estimated false-positive rate of a random absent value: fill^k."""
        return float(self.fill**self.k)

    @property
    def ndv_estimate(self) -> float | None:
        """Distinct values, from the set bits: ln(1 - fill) / (k ln(1 - 1/m)); None when all bits are set."""
        fill = self.fill
        if fill >= 1:
            return None
        return math.log1p(-fill) / (self.k * math.log1p(-1 / self.bits)) if fill else 0.0
