"""Kirsch-Mitzenmacher Bloom filter, as in ORC. Sources: orc-core's BloomFilter; Kirsch and Mitzenmacher,
"Less Hashing, Same Performance: Building a Better Bloom Filter".

Invariant: misses are exact, hits are probabilistic.

A filter has m bits (bit i is bit i & 7 of byte i >> 3; in ORC whole longs) and k hash functions derived from one
64-bit hash. With h1 the low and h2 the high 32 bits, signed, function i (1 to k) is h1 + i h2 in wrapping 32-bit
arithmetic, complemented if it is negative, modulo m. The answer is "maybe" if all k bits are set. If a share f of all
bits is set, the filter answers "maybe" for a random absent value with probability f^k.
"""

from __future__ import annotations

import math

from bloomcli import kernels

_LONG_BITS = 64


def size_for(values: int, fpp: float, unit: int = _LONG_BITS) -> tuple[int, int]:
    """Return (m, k), the bits and hash functions that orc-core chooses for `values` expected values at rate `fpp`.

    m = floor(-n ln p / (ln 2)^2), rounded up to the next multiple of `unit` (a multiple gains one);
    k = max(1, round(m / n ln 2)), rounding halves up.

    Raises:
        ValueError: `fpp` is out of range.
    """
    if not 0 < fpp < 1:
        raise ValueError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
    count = max(values, 1)
    bits = min(int(-count * math.log(fpp) / (math.log(2) * math.log(2))), (1 << 30) - unit)
    bits += unit - bits % unit
    return bits, functions_for(count, bits)


def functions_for(values: int, bits: int) -> int:
    """Return k for a filter of `bits` bits and `values` expected values: max(1, round(m / n ln 2))."""
    return max(1, math.floor(bits / max(values, 1) * math.log(2) + 0.5))


def requested_fpp(values: int, bits: int) -> float:
    """Return an upper estimate of the rate for which a writer chose `bits` for `values`: exp(-m / n (ln 2)^2)."""
    return math.exp(-bits / max(values, 1) * math.log(2) ** 2)


def estimate_ndv(set_bits: int, bits: int, k: int) -> float | None:
    """Return the distinct values in a filter whose k hashes are independent: ln(1 - fill) / (k ln(1 - 1/m)); None if
    all bits are set."""
    if set_bits >= bits:
        return None
    return math.log1p(-set_bits / bits) / (k * math.log1p(-1 / bits)) if set_bits else 0.0


class KirschMitzenmacherFilter:
    """A filter of m bits and k hash functions: insertion, lookup and measured figures."""

    __slots__ = ("_ones", "bitset", "k")

    def __init__(self, bitset: bytes | bytearray, k: int) -> None:
        if not bitset:
            raise ValueError("a bitset has at least one byte")
        if k < 1:
            raise ValueError(f"a filter has at least one hash function, not {k}")
        self.bitset = bitset
        self.k = k
        self._ones: int | None = None

    @classmethod
    def empty(cls, bits: int, k: int) -> KirschMitzenmacherFilter:
        """Return a filter of `bits` bits (a multiple of 8) without values."""
        return cls(bytearray(bits // 8), k)

    def emptied(self) -> KirschMitzenmacherFilter:
        """Return a filter of the same m and k without values."""
        return KirschMitzenmacherFilter(bytearray(len(self.bitset)), self.k)

    @property
    def bits(self) -> int:
        """Number of bits, m."""
        return len(self.bitset) * 8

    def insert_hashes(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert `count` hashes: little-endian uint64s, 8 bytes each."""
        if not isinstance(self.bitset, bytearray):
            self.bitset = bytearray(self.bitset)
        self._ones = None
        kernels.km_insert(self.bitset, hashes, count, self.k)

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray) -> int:
        """Look up `count` hashes and set out[i] to 1 for "maybe", 0 for "absent". Return how many are absent."""
        return kernels.km_check(self.bitset, hashes, count, self.k, out)

    def check(self, value: int) -> bool:
        """Return False if the hash was never inserted, True if it may have been."""
        return not self.check_hashes(value.to_bytes(8, "little"), 1, bytearray(1))

    def trail(self, value: int) -> tuple[None, tuple[int, ...], tuple[bool, ...]]:
        """Return None in place of a block, the bit of each of the k functions for a hash, and whether each is set."""
        low, high = value & 0xFFFFFFFF, value >> 32
        bits = []
        for i in range(1, self.k + 1):
            combined = (low + i * high) & 0xFFFFFFFF
            if combined >> 31:
                combined ^= 0xFFFFFFFF
            bits.append(combined % self.bits)
        return None, tuple(bits), tuple(bool(self.bitset[bit >> 3] >> (bit & 7) & 1) for bit in bits)

    @property
    def set_bits(self) -> int:
        """Number of set bits."""
        if self._ones is None:
            self._ones = kernels.count_bits(self.bitset)
        return self._ones

    @property
    def fill(self) -> float:
        """Share of set bits, 0 to 1."""
        return self.set_bits / self.bits

    @property
    def fpp(self) -> float:
        """Estimated false-positive rate of a random absent value: fill^k."""
        return float(self.fill**self.k)

    @property
    def ndv_estimate(self) -> float | None:
        """Distinct values, estimated from the set bits; None if all are set."""
        return estimate_ndv(self.set_bits, self.bits, self.k)
