"""The bits of Bloom filters of Hadoop's kind, as Hudi writes them."""

from __future__ import annotations

from collections.abc import Iterable

from bloomcli import kernels


def hadoop_bits(keys: Iterable[bytes], m: int, k: int, *, jenkins: bool = False) -> bytes:
    """The bits of a filter of m bits and k hashes with these keys."""
    bits = bytearray(-(-m // 8))
    for key in keys:
        for bit in kernels.chained_bits(key, m, k, jenkins)[1]:
            bits[bit >> 3] |= 1 << (bit & 7)
    return bytes(bits)
