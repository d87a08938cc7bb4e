"""Split-block filters in plain Python, from the specification: headers, bits, rates. Independent of bloomcli."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import xxhash

from support import footers, thrift

SALTS: Final = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip


def hash_of(plain: bytes) -> int:
    """XXH64 with seed 0."""
    return xxhash.xxh64_intdigest(plain)


def positions(hashed: int, blocks: int) -> tuple[int, tuple[int, ...]]:
    """(block, the bit in each of its eight words) of a hash."""
    block = ((hashed >> 32) * blocks) >> 32
    return block, tuple(((hashed & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27 for salt in SALTS)


def build(values: Iterable[bytes], nbytes: int) -> bytes:
    """The bitset that holds these PLAIN values."""
    words = [0] * (nbytes // 4)
    for value in values:
        block, bits = positions(hash_of(value), nbytes // 32)
        for word, bit in enumerate(bits):
            words[block * 8 + word] |= 1 << bit
    return b"".join(word.to_bytes(4, "little") for word in words)


def rate(bitset: bytes) -> float:
    """The false-positive rate: mean over blocks of the product over the words of popcount / 32."""
    total = 0.0
    for at in range(0, len(bitset), 32):
        share = 1.0
        for word in range(at, at + 32, 4):
            share *= int.from_bytes(bitset[word : word + 4], "little").bit_count() / 32
        total += share
    return total / (len(bitset) // 32)


def header(num_bytes: int, algorithm: int = 1, hashed: int = 1, compression: int | None = 1) -> bytes:
    """A BloomFilterHeader; other union members than 1 don't exist in the specification."""
    fields: thrift.Fields = {1: (thrift.I32, num_bytes)}
    for number, member in ((2, algorithm), (3, hashed), (4, compression)):
        if member is not None:
            fields[number] = (thrift.STRUCT, {member: (thrift.STRUCT, {})} if member else {})
    return thrift.encode(fields)


def planted(data: bytes, row_group: int, column: int, blob: bytes, length: int | None = -1) -> bytes:
    """The file with `blob` behind its body, claimed as a chunk's filter; `length` -1 is the blob's own."""
    body, footer = footers.split(data)
    claim = footers.set_filter(row_group, column, len(body), len(blob) if length == -1 else length)
    return footers.edited(footers.join(body + blob, footer), claim)
