"""The split-block filter in plain Python, as in the specification, for comparison with the kernels."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Final

from bloomcli import kernels

SALTS: Final = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip


def positions(value: int, blocks: int) -> tuple[int, tuple[int, ...]]:
    """(block, the bit in each of its eight words) of a 64-bit hash."""
    return (value >> 32) * blocks >> 32, tuple((value & 0xFFFFFFFF) * salt % 2**32 >> 27 for salt in SALTS)


def filter_of(values: Iterable[int], nbytes: int) -> bytes:
    """The bitset of `nbytes` bytes with these hashes."""
    words = [0] * (nbytes // 4)
    for value in values:
        block, bits = positions(value, nbytes // 32)
        for at, bit in enumerate(bits):
            words[block * 8 + at] |= 1 << bit
    return struct.pack(f"<{len(words)}I", *words)


def holds(bitset: bytes, value: int) -> bool:
    """Whether the filter answers "maybe"."""
    block, bits = positions(value, len(bitset) // 32)
    words = struct.unpack_from("<8I", bitset, block * 32)
    return all(word >> bit & 1 for word, bit in zip(words, bits, strict=True))


def stats(bitset: bytes) -> tuple[int, float]:
    """Set bits, and the false-positive rate of a random hash: mean over blocks of the product of the words' fills."""
    counts = [word.bit_count() for word in struct.unpack(f"<{len(bitset) // 4}I", bitset)]
    blocks = [counts[at : at + 8] for at in range(0, len(counts), 8)]
    return sum(counts), math.fsum(math.prod(count / 32 for count in block) for block in blocks) / len(blocks)


def packed(values: Iterable[int]) -> bytes:
    """Hashes as the kernels take them: uint64s, little-endian."""
    return b"".join(value.to_bytes(8, "little") for value in values)


def unpacked(buffer: bytes | bytearray, count: int) -> list[int]:
    """The first `count` hashes of a kernel's output."""
    return list(struct.unpack_from(f"<{count}Q", buffer))


def chained_filter(keys: list[bytes], m: int, k: int, *, jenkins: bool = False) -> bytes:
    """Hadoop's filter of m bits with k hashes, by the compiled hashes."""
    bitset = bytearray(-(-m // 8))
    for key in filter(None, keys):
        for bit in kernels.chained_bits(key, m, k, jenkins)[1]:
            bitset[bit >> 3] |= 1 << (bit & 7)
    return bytes(bitset)
