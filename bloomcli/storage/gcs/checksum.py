"""The CRC32C that the store computes of each object, and that of two contents that follow one another.

A CRC is linear: appending n bytes to a content multiplies its CRC by a matrix that only depends on n, which is
squared for each bit of n (as zlib's crc32_combine does for another polynomial).
"""

from __future__ import annotations

import base64
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78


def encoded(value: int) -> str:
    """A CRC32C as the API writes it."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded(text: str) -> int:
    """A CRC32C of the API."""
    return int.from_bytes(base64.b64decode(text), "big")


def combined(first: int, second: int, second_length: int) -> int:
    """The CRC32C of two contents, one after the other, from those of each."""
    zeros = _squared(_squared([_POLYNOMIAL, *(1 << n for n in range(31))]))  # of four zero bits
    while second_length:
        zeros = _squared(zeros)
        if second_length & 1:
            first = _times(zeros, first)
        second_length >>= 1
    return first ^ second


def _times(matrix: list[int], vector: int) -> int:
    total = 0
    for row in matrix:
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


def _squared(matrix: list[int]) -> list[int]:
    return [_times(matrix, row) for row in matrix]
