"""Split-block Bloom filter. Source: the Apache Parquet format specification, BloomFilter.md.

Invariant: misses are exact, hits are probabilistic. A value that was inserted is always found; a value
that wasn't is found with the filter's false-positive rate.

A filter is z blocks of 256 bits, a block is eight words of 32. A 64-bit hash h picks the block
((h >> 32) * z) >> 32, and in each of its words w the bit ((h mod 2^32) * SALT[w] mod 2^32) >> 27. A value
is "maybe" there when all eight bits are set, so for a random hash, whose block and bits are uniform, the
false-positive rate of the bits that are there is exactly

    mean over blocks of the product over the 8 words of popcount(word) / 32.

Folding. With z even, the block index for z/2 is the index for z halved, so ORing blocks 2i and 2i+1 gives
bit for bit the filter that z/2 blocks would have given. A filter can be built large and made smaller.

    size     blocks    values at 1 %
    1 KiB        32           780
    32 KiB     1024        25,000
    1 MiB     32768       800,000
"""

from __future__ import annotations

from array import array
from typing import Final, Self

from bloomcli import kernels
from bloomcli.filters import sizing

SALT: Final = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)

_BLOCK_BYTES: Final = sizing.BLOCK_BYTES
_LOW: Final = 0xFFFFFFFF


class SplitBlockFilter:
    """A bitset of z * 32 bytes, and everything that can be asked of it."""

    __slots__ = ("_stats", "bitset")

    def __init__(self, bitset: bytes | bytearray) -> None:
        if not bitset or len(bitset) % _BLOCK_BYTES:
            raise ValueError(f"a bitset is a positive multiple of {_BLOCK_BYTES} bytes, not {len(bitset)}")
        self.bitset = bitset
        self._stats: tuple[int, float] | None = None

    @classmethod
    def empty(cls, nbytes: int) -> Self:
        """A filter of `nbytes`, holding nothing."""
        return cls(bytearray(nbytes))

    @classmethod
    def from_bytes(cls, bitset: bytes | bytearray) -> Self:
        """A filter from its bits; bytes stay read-only."""
        return cls(bitset)

    def emptied(self) -> Self:
        """A filter of the same shape, holding nothing."""
        return type(self)(bytearray(len(self.bitset)))

    @property
    def nbytes(self) -> int:
        """Size of the bitset, bytes."""
        return len(self.bitset)

    @property
    def blocks(self) -> int:
        """Number of 32-byte blocks, z."""
        return len(self.bitset) // _BLOCK_BYTES

    def _mutable(self) -> bytearray:
        if not isinstance(self.bitset, bytearray):
            self.bitset = bytearray(self.bitset)
        self._stats = None
        return self.bitset

    def insert(self, value: int) -> None:
        """Insert one 64-bit hash."""
        kernels.sbbf_insert(self._mutable(), value.to_bytes(8, "little"), 1)

    def insert_hashes(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert `count` hashes: uint64s, little-endian, 8 bytes each."""
        kernels.sbbf_insert(self._mutable(), hashes, count)

    def check(self, value: int) -> bool:
        """False: this hash was never inserted. True: maybe."""
        return not self.check_hashes(value.to_bytes(8, "little"), 1, bytearray(1))

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray | memoryview) -> int:
        """Look up `count` hashes; out[i] becomes 1 for "maybe", 0 for "absent". Returns how many are absent."""
        return kernels.sbbf_check(self.bitset, hashes, count, out)

    def trail(self, value: int) -> tuple[int, tuple[int, ...], tuple[bool, ...]]:
        """Where a hash lands: (block, the bit in each of its 8 words, whether each is set)."""
        block = ((value >> 32) * self.blocks) >> 32
        bits = tuple(((value & _LOW) * salt & _LOW) >> 27 for salt in SALT)
        start = block * _BLOCK_BYTES
        words = memoryview(self.bitset)[start : start + _BLOCK_BYTES].cast("I")
        return block, bits, tuple(bool(word >> bit & 1) for word, bit in zip(words, bits, strict=True))

    def _measured(self) -> tuple[int, float]:
        if self._stats is None:
            self._stats = kernels.sbbf_stats(self.bitset)
        return self._stats

    @property
    def set_bits(self) -> int:
        """How many bits are set."""
        return self._measured()[0]

    @property
    def fill(self) -> float:
        """Share of bits set, 0 to 1."""
        return self.set_bits / (self.nbytes * 8)

    @property
    def fpp(self) -> float:
        """Measured false-positive rate, exact for a random hash (see the module's formula)."""
        return self._measured()[1]

    @property
    def ndv_estimate(self) -> float | None:
        """Distinct values, estimated from the set bits; None when all are set."""
        return sizing.estimate_ndv(self.set_bits, self.nbytes)

    def fold(self) -> Self:
        """The filter that half as many blocks would have given. Raises ValueError for an odd number."""
        return type(self)(kernels.sbbf_fold(self.bitset))

    def folded_to(self, fpp: float, max_bytes: int | None = None, least: int = _BLOCK_BYTES) -> Self:
        """The smallest fold of this filter whose measured rate meets `fpp`; itself where none does.

        With `max_bytes` it is folded at least down to that, even where it then misses `fpp`. For the rate's sake it
        isn't folded below `least` bytes.
        """
        best = self
        while max_bytes is not None and best.nbytes > max_bytes and best.blocks % 2 == 0:
            best = best.fold()
        while best.blocks % 2 == 0 and best.nbytes > least:
            smaller = best.fold()
            if smaller.fpp > fpp:
                break
            best = smaller
        return best


class MaskedSplitBlockFilter(SplitBlockFilter):
    """A filter of the 2018 drafts: z is a power of two, and the block is (h >> 32) mod z.

    The bits within a block are the same, so a hash is turned into the one that picks the same block by today's
    multiply-shift: the block's number in the hash's topmost bits. Folding ORs the bitset's two halves.
    """

    __slots__ = ()

    def __init__(self, bitset: bytes | bytearray) -> None:
        super().__init__(bitset)
        if self.blocks & (self.blocks - 1):
            raise ValueError(f"a mask needs a power of two of blocks, not {self.blocks}")

    def _moved(self, value: int) -> int:
        shift = 64 - (self.blocks.bit_length() - 1)
        return ((value >> 32) % self.blocks) << shift | (value & _LOW)

    def _moved_all(self, hashes: bytes | bytearray | memoryview, count: int) -> array[int]:
        return array("Q", map(self._moved, memoryview(hashes).cast("B")[: count * 8].cast("Q")))

    def insert(self, value: int) -> None:
        """Insert one 64-bit hash."""
        super().insert(self._moved(value))

    def insert_hashes(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert `count` hashes: uint64s, little-endian, 8 bytes each."""
        super().insert_hashes(memoryview(self._moved_all(hashes, count)).cast("B"), count)

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray | memoryview) -> int:
        """Look up `count` hashes; out[i] becomes 1 for "maybe", 0 for "absent". Returns how many are absent."""
        return super().check_hashes(memoryview(self._moved_all(hashes, count)).cast("B"), count, out)

    def trail(self, value: int) -> tuple[int, tuple[int, ...], tuple[bool, ...]]:
        """Where a hash lands: (block, the bit in each of its 8 words, whether each is set)."""
        return super().trail(self._moved(value))

    def fold(self) -> Self:
        """The filter that half as many blocks would have given. Raises ValueError for a single block."""
        if self.blocks == 1:
            raise ValueError("a single block can't be folded")
        half = self.nbytes // 2
        low, high = (int.from_bytes(part, "little") for part in (self.bitset[:half], self.bitset[half:]))
        return type(self)(bytearray((low | high).to_bytes(half, "little")))
