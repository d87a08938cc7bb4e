"""Computes the CRC32C, the store's checksum of objects, of two concatenated contents from the CRC32C of each.

A CRC is linear: appending n zero bytes to a content multiplies its CRC by a matrix that depends only on n. The matrix
is computed by squaring, once per bit of n, like in zlib's crc32_combine for another polynomial.
"""

from __future__ import annotations

import base64
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78


def encoded(value: int) -> str:
    """A CRC32C in the API's encoding: Base64 of four bytes, big-endian."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded(text: str) -> int:
    """A CRC32C from the API's encoding. Raises ValueError if it isn't four bytes."""
    found = base64.b64decode(text)
    if len(found) != 4:
        raise ValueError("a CRC32C has four bytes")
    return int.from_bytes(found, "big")


def combined(first: int, second: int, second_length: int) -> int:
    """The CRC32C of two concatenated contents, from the CRC32C of each and the second one's size in bytes."""
    zeros = _squared(_squared([_POLYNOMIAL, *(1 << n for n in range(31))]))  # the matrix of four zero bits
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
