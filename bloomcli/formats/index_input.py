"""The input of an index from a file: the bits of a filter for each row group of a column."""

from __future__ import annotations

from typing import NamedTuple


class RowGroupBits(NamedTuple):
    """The bits of a column in one row group, for an index."""

    row_group: int
    rows: int
    bits: bytes | bytearray | None = None
    """The bitset of a split-block filter of the values' XXH64; None without a filter: see `possible`."""
    possible: bool = False
    """Without bits: True if the row group may have any value, False if it has only nulls."""
    contradicted: bool = False
    """Whether the bits lack the minimum or the maximum of the row group's statistics, which then can't be trusted."""
    decoded: int = 0
    """Compressed bytes of the column's pages that were decoded for the bits; 0 where the file's filter has them."""


class BitsSource(NamedTuple):
    """The source of a row group's bits, estimated from the metadata."""

    filter: bool = False
    """The bits are those of the file's filter."""
    reads: int = 0
    """Compressed bytes of the column that are read, if it has no such filter."""


class HashedValues(NamedTuple):
    """The hashes of values, for a lookup in an index."""

    hashes: bytes
    """XXH64 of all forms that files may store for the values, uint64s in native order."""
    unhashed: bool = False
    """Whether a value isn't in filters, such as NaN: every row group with values may have it."""
