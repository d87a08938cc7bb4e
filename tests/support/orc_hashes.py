"""ORC's hash functions for one value, in Python, with which the tests compare the compiled ones.

    orc_bytes       ORC's own one-lane 64-bit Murmur3          orc-core, Murmur3.hash64
    orc_long        Thomas Wang's 64-bit mix, signed shifts    orc-core, BloomFilter.getLongHash

All results are unsigned 64-bit integers. `tests/interop/test_orc_bits.py` compares them with orc-core.
"""

from __future__ import annotations

from typing import Final

ORC_SEED: Final = 104729

_MASK: Final = (1 << 64) - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def orc_bytes(data: bytes, seed: int = ORC_SEED) -> int:
    """Return ORC's 64-bit Murmur3 hash of a string, a binary or a decimal's text.

    It has only one lane, so it isn't half of MurmurHash3 x64_128, contrary to the specification.
    """
    value = seed
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        value ^= _scrambled(int.from_bytes(data[at : at + 8], "little"))
        value = (_rotated(value, 27) * 5 + 0x52DCE729) & _MASK
    if len(data) > whole:
        value ^= _scrambled(int.from_bytes(data[whole:], "little"))
    return _finished(value ^ len(data))


def orc_long(value: int) -> int:
    """Return ORC's hash of an integer, a date, a timestamp or a double's bits: Wang's mix with sign-extending shifts.

    Args:
        value: a signed 64-bit integer.
    """
    key = _signed((~value + (value << 21)) & _MASK)
    key ^= key >> 24
    key = _signed((key + (key << 3) + (key << 8)) & _MASK)
    key ^= key >> 14
    key = _signed((key + (key << 2) + (key << 4)) & _MASK)
    key ^= key >> 28
    return (key + (key << 31)) & _MASK


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _scrambled(lane: int) -> int:
    return _rotated(lane * _C1 & _MASK, 31) * _C2 & _MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
