"""Split-block Bloom filter. Source: the Apache Parquet format specification, BloomFilter.md.

Invariant: misses are exact, hits are probabilistic. The answer for an inserted value is always "maybe"; for any other
value it is "maybe" with the filter's false-positive rate.

A filter has z blocks of 256 bits, and a block has eight words of 32 bits. A 64-bit hash h selects the block
((h >> 32) * z) >> 32, and in each word w of the block the bit ((h mod 2^32) * SALT[w] mod 2^32) >> 27. The answer is
"maybe" if all eight bits are set. The block and the bits of a random hash are uniform, so the false-positive rate of
a filter is exactly

    mean over blocks of the product over the 8 words of popcount(word) / 32.

Folding: for even z, the block index with z/2 blocks is half of that with z blocks, rounded down. So ORing blocks 2i
and 2i+1 gives, bit for bit, the filter that the same values build with z/2 blocks. A filter can therefore be built
large and folded to its final size. In the same way, k neighbouring blocks are ORed into one if k divides z. Other
sizes aren't exact: made from the bits alone, such a filter contains the values of some blocks in two blocks
(`resized`).

    size     blocks    values at 1 %
    1 KiB        32           780
    32 KiB     1024        25,000
    1 MiB     32768       800,000
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
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
    """A filter of z * 32 bytes: insertion, lookup, folding and measured figures.

    The first insertion copies an immutable bitset.
    """

    __slots__ = ("_stats", "bitset")

    def __init__(self, bitset: bytes | bytearray) -> None:
        if not bitset or len(bitset) % _BLOCK_BYTES:
            raise ValueError(f"a bitset is a positive multiple of {_BLOCK_BYTES} bytes, not {len(bitset)}")
        self.bitset = bitset
        self._stats: tuple[int, float] | None = None

    @classmethod
    def empty(cls, nbytes: int) -> Self:
        """Return a filter of `nbytes` bytes without values."""
        return cls(bytearray(nbytes))

    def emptied(self) -> Self:
        """Return a filter of the same size without values."""
        return type(self)(bytearray(len(self.bitset)))

    @property
    def nbytes(self) -> int:
        """Size of the bitset in bytes."""
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
        """Insert `count` hashes: little-endian uint64s, 8 bytes each."""
        kernels.sbbf_insert(self._mutable(), hashes, count)

    def check(self, value: int) -> bool:
        """Return False if the hash was never inserted, True if it may have been."""
        return not self.check_hashes(value.to_bytes(8, "little"), 1, bytearray(1))

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray | memoryview) -> int:
        """Look up `count` hashes and set out[i] to 1 for "maybe", 0 for "absent". Return how many are absent."""
        return kernels.sbbf_check(self.bitset, hashes, count, out)

    @staticmethod
    def block_of(value: int, blocks: int) -> int:
        """Return the index of the block that a hash selects in a filter of `blocks` blocks."""
        return ((value >> 32) * blocks) >> 32

    def trail(self, value: int) -> tuple[int, tuple[int, ...], tuple[bool, ...]]:
        """Return the block that a hash selects, the bit in each of its 8 words, and whether each is set."""
        block = SplitBlockFilter.block_of(value, self.blocks)
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
        """Number of set bits."""
        return self._measured()[0]

    @property
    def fill(self) -> float:
        """Share of set bits, 0 to 1."""
        return self.set_bits / (self.nbytes * 8)

    @property
    def fpp(self) -> float:
        """Measured false-positive rate, exact for a random hash (see the module's formula)."""
        return self._measured()[1]

    @property
    def ndv_estimate(self) -> float | None:
        """Distinct values, estimated from the set bits; None if all are set."""
        return sizing.estimate_ndv(self.set_bits, self.nbytes)

    def fold(self) -> Self:
        """Return the filter that the same values build with half as many blocks.

        Raises:
            ValueError: the number of blocks is odd.
        """
        if self.blocks % 2:
            raise ValueError("an odd number of blocks can't be folded")
        return type(self)(kernels.sbbf_resized(self.bitset, self.blocks // 2))

    def folded_to(self, fpp: float, max_bytes: int | None = None, least: int = _BLOCK_BYTES) -> Self:
        """Return the smallest fold of this filter whose measured rate meets `fpp`; the filter itself if none does.

        Args:
            fpp: the false-positive rate to meet.
            max_bytes: fold to at most this size, even if the filter then misses `fpp`.
            least: don't fold below this size to reach `fpp`.
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

    def resized(self, nbytes: int) -> Self:
        """Return a filter of `nbytes` bytes with all values of this one.

        If the number of its blocks divides that of this filter, it is the filter that the same values build at that
        size. Otherwise each block whose hashes belong to two blocks of the new filter is ORed into both.

        Raises:
            ValueError: it would be larger than this filter, or isn't a multiple of 32 bytes.
        """
        if nbytes % _BLOCK_BYTES or nbytes > self.nbytes:
            raise ValueError(
                f"a bitset is a multiple of {_BLOCK_BYTES} bytes, up to {self.nbytes} here, not {nbytes}"
            )
        return type(self)(kernels.sbbf_resized(self.bitset, nbytes // _BLOCK_BYTES))

    def tightened_to(self, fpp: float, max_bytes: int, least: int = _BLOCK_BYTES) -> Self:
        """Return the smallest filter of any size, made from the bits alone, whose measured rate meets `fpp`.

        It is the filter itself if no smaller one meets the rate. Sizes are tried by bisection: the result may be a
        few blocks (0.4 %) larger than the smallest.

        Args:
            fpp: the false-positive rate to meet.
            max_bytes: the largest size, even if the filter then misses `fpp`.
            least: the smallest size.
        """
        best = self.folded_to(fpp, max_bytes, least)
        if best.nbytes > max_bytes:
            best = self.resized(max_bytes)
        if best.fpp > fpp or self.ndv_estimate is None:
            capped = self.resized(min(max_bytes, self.nbytes))
            return capped if capped.fpp < best.fpp else best
        needed = sizing.tight_bytes(round(self.ndv_estimate), fpp)
        base = self
        while base.blocks % 2 == 0 and base.nbytes > _FAR * max(needed, best.nbytes):
            base = base.fold()
        low = max(least, int(needed * _NO_SMALLER)) // _BLOCK_BYTES
        for blocks in _divisors(base.blocks, max(low, 1), best.blocks):
            exact = base.resized(blocks * _BLOCK_BYTES)
            if exact.fpp <= fpp:
                best = exact
                break
        low, high = low - 1, best.blocks
        while high - low > max(1, high // 256):
            middle = (low + high) // 2
            if middle & (middle - 1) == 0 and base.blocks % middle and middle + 1 < high:
                middle += 1  # at powers of two, `validate --deep` expects exact filters and reports others as stray
            bits = base.resized(middle * _BLOCK_BYTES)
            if bits.fpp <= fpp:
                best, high = bits, middle
            else:
                low = middle
        return best


_FAR: Final = 256
"""A filter that is more than this many times too large is halved first, because resizing takes time proportional to
its size."""
_NO_SMALLER: Final = 0.75
"""A filter smaller than this share of `sizing.tight_bytes` never meets the rate."""


def _divisors(blocks: int, low: int, high: int) -> Iterator[int]:
    """Yield the divisors of a number of blocks from `low` up to below `high`, in order."""
    if high - low <= blocks // low:
        return (d for d in range(low, high) if blocks % d == 0)
    return (blocks // k for k in range(blocks // low, blocks // high, -1) if blocks % k == 0)


class MaskedSplitBlockFilter(SplitBlockFilter):
    """A filter of the 2018 drafts: z is a power of two, and the block of a hash is (h >> 32) mod z.

    The bits within a block are those of `SplitBlockFilter`. So a hash is converted to one that selects the same block
    by multiply-shift: its highest bits are the block's index. Folding ORs the two halves of the bitset.
    """

    __slots__ = ()

    def __init__(self, bitset: bytes | bytearray) -> None:
        super().__init__(bitset)
        if self.blocks & (self.blocks - 1):
            raise ValueError(f"a mask needs a power of two of blocks, not {self.blocks}")

    @staticmethod
    def block_of(value: int, blocks: int) -> int:
        """Return the index of the block that a hash selects in a filter of `blocks` blocks, a power of two."""
        return (value >> 32) % blocks

    def _moved(self, value: int) -> int:
        shift = 64 - (self.blocks.bit_length() - 1)
        return self.block_of(value, self.blocks) << shift | (value & _LOW)

    def _moved_all(self, hashes: bytes | bytearray | memoryview, count: int) -> array[int]:
        return array("Q", map(self._moved, memoryview(hashes).cast("B")[: count * 8].cast("Q")))

    def insert(self, value: int) -> None:
        """Insert one 64-bit hash."""
        super().insert(self._moved(value))

    def insert_hashes(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Insert `count` hashes: little-endian uint64s, 8 bytes each."""
        super().insert_hashes(memoryview(self._moved_all(hashes, count)).cast("B"), count)

    def check_hashes(self, hashes: bytes | bytearray | memoryview, count: int, out: bytearray | memoryview) -> int:
        """Look up `count` hashes and set out[i] to 1 for "maybe", 0 for "absent". Return how many are absent."""
        return super().check_hashes(memoryview(self._moved_all(hashes, count)).cast("B"), count, out)

    def trail(self, value: int) -> tuple[int, tuple[int, ...], tuple[bool, ...]]:
        """Return the block that a hash selects, the bit in each of its 8 words, and whether each is set."""
        return super().trail(self._moved(value))

    def fold(self) -> Self:
        """Return the filter that the same values build with half as many blocks.

        Raises:
            ValueError: the filter has a single block.
        """
        if self.blocks == 1:
            raise ValueError("a single block can't be folded")
        half = self.nbytes // 2
        low, high = (int.from_bytes(part, "little") for part in (self.bitset[:half], self.bitset[half:]))
        return type(self)(bytearray((low | high).to_bytes(half, "little")))


SPARSE_BYTES: Final = 32 << 10
"""Bytes of a filter that take as long to read from the page cache as a single block."""


def is_sparse(hashes: int, nbytes: int) -> bool:
    """Whether this number of hashes is looked up faster in single blocks, read one by one, than in the whole
    filter."""
    return hashes * SPARSE_BYTES < nbytes


class UnreadFilter:
    """A filter whose blocks are read on demand, one for each lookup.

    Args:
        kind: the class of the whole filter, which determines how hashes select blocks.
        nbytes: bytes of the bitset.
        read: reads a range of the bitset: (offset, length).
    """

    __slots__ = ("_blocks", "_kind", "_read")

    def __init__(self, kind: type[SplitBlockFilter], nbytes: int, read: Callable[[int, int], bytes]) -> None:
        self._kind = kind
        self._blocks = nbytes // _BLOCK_BYTES
        self._read = read

    def _block(self, value: int) -> tuple[int, SplitBlockFilter]:
        index = self._kind.block_of(value, self._blocks)
        return index, SplitBlockFilter(self._read(index * _BLOCK_BYTES, _BLOCK_BYTES))

    def check(self, value: int) -> bool:
        """Return False if the hash was never inserted, True if it may have been."""
        return self._block(value)[1].check(value)

    def trail(self, value: int) -> tuple[int, tuple[int, ...], tuple[bool, ...]]:
        """Return the block that a hash selects, the bit in each of its 8 words, and whether each is set."""
        index, block = self._block(value)
        return index, *block.trail(value)[1:]


def block_ranges(
    kind: type[SplitBlockFilter], nbytes: int, hashes: Iterable[int], start: int
) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each hash's block, in a filter whose bitset starts at the offset `start`."""
    for value in hashes:
        yield start + kind.block_of(value, nbytes // _BLOCK_BYTES) * _BLOCK_BYTES, _BLOCK_BYTES
