"""Makes the bits of an index from a column's values, in the form of `wanted_values.WantedValues.forms`.

For formats whose own filters don't hash values as Parquet's do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import limits
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats import wanted_values
from bloomcli.model.file import Column, decimal_bytes
from bloomcli.values.literals import kind_of

_DECIMAL_BYTES: Final = 16
_HELD_BYTES: Final = 32 << 20
"""Hashes that are held until the number of values is known. Beyond this limit, the filter gets the largest size that
the values may need, and is folded at the end."""
_PLAIN_BITS: Final = {"INT32": 32, "INT64": 64}


def indexed_column(typed: Column) -> Column:
    """The Parquet type whose hashes an index has for values of a literals' column.

    Types are named as Parquet files have them, so that files of several formats share the rows of bits. Integers of
    32 and 64 bits have no logical type, which most writers of Parquet leave out. Decimals have as many bytes as their
    precision needs, so that each has one form.
    """
    kind = kind_of(typed)
    if kind != "DECIMAL":
        typed = replace(typed, precision=0, scale=0)
    if kind == "INTEGER" and typed.signed and typed.bit_width == _PLAIN_BITS.get(typed.physical):
        return replace(typed, logical=None, bit_width=0)
    if kind == "DECIMAL":
        return replace(typed, physical="FIXED_LEN_BYTE_ARRAY", type_length=decimal_bytes(typed.precision))
    if kind == "TIMESTAMP":
        return replace(typed, logical=f"TIMESTAMP({typed.unit},{'UTC' if typed.utc else 'local'})")
    return typed


def hashes_of(values: pa.Array, typed: Column) -> bytes:
    """The XXH64 of values without nulls, uint64s in native order: integers, floating point, strings and binaries,
    decimals as 16 bytes (little-endian)."""
    if kind_of(typed) == "DECIMAL":
        # digits beyond the precision are cut: such a value can't be looked up
        wide = pc.binary_reverse(values)
        return wanted_values.xxh64_of(
            pc.binary_slice(wide, _DECIMAL_BYTES - decimal_bytes(typed.precision), _DECIMAL_BYTES)
        )
    return wanted_values.xxh64_of(wanted_values.comparable(values, typed))


class BitsMaker:
    """Collects hashes of a row group's values.

    Args:
        most: upper bound of the number of values; None if unknown.
        fpp: the false-positive rate of the filter.
    """

    def __init__(self, most: int | None, fpp: float) -> None:
        self.count = 0
        """Number of values so far."""
        self._most, self._fpp = most, fpp
        self._held: list[bytes] = []
        self._bits: SplitBlockFilter | None = None

    def add(self, hashes: bytes) -> None:
        """Add hashes, uint64s in native order."""
        self.count += len(hashes) // 8
        if self._bits is not None:
            self._bits.insert_hashes(hashes, len(hashes) // 8)
            return
        self._held.append(hashes)
        if self.count * 8 > _HELD_BYTES:
            self._insert(self._most)

    def _insert(self, values: int | None) -> SplitBlockFilter:
        size = limits.FILTER_MAX_BYTES if values is None else sizing.upper_bound_bytes(values, self._fpp)
        bits = SplitBlockFilter.empty(size)
        for hashes in self._held:
            bits.insert_hashes(hashes, len(hashes) // 8)
        self._held.clear()
        self._bits = bits
        return bits

    def bits(self) -> bytes | bytearray:
        """The filter's bitset, of the smallest size that has the rate."""
        bits = self._insert(self.count) if self._bits is None else self._bits
        return bits.folded_to(self._fpp).bitset
