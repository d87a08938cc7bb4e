"""Split-block filters of PLAIN values, and their headers in files, by the reference. Independent of bloomcli."""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from support import footers, reference, thrift
from support.reference import positions

__all__ = ["build", "hash_of", "header", "holds", "planted", "positions", "rate"]


def hash_of(plain: bytes) -> int:
    """XXH64 with seed 0."""
    return xxhash.xxh64_intdigest(plain)


def build(values: Iterable[bytes], nbytes: int) -> bytes:
    """The bitset that holds these PLAIN values."""
    return reference.filter_of(map(hash_of, values), nbytes)


def holds(bitset: bytes, plain: bytes) -> bool:
    """Whether a filter says maybe of a PLAIN value."""
    return reference.holds(bitset, hash_of(plain))


def rate(bitset: bytes) -> float:
    """The false-positive rate."""
    return reference.stats(bitset)[1]


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
