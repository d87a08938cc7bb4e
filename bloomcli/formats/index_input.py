"""The input of an index from a file: the bits of a filter for each row group of a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.model.file import Column


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


class Indexable:
    """The methods of `bloomcli.formats.base.FilterFile` that build an index of many files."""

    format: ClassVar[str]
    indexable: ClassVar[bool] = False
    """Whether `row_group_bits` is implemented. In ORC its row groups are the stripes."""

    def row_group_rows(self) -> Sequence[int]:
        """The rows of each row group, in order. Raises UnsupportedError."""
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def indexed_column(self, column: Column) -> Column:
        """The Parquet type by which the column's values are hashed. By default the column itself."""
        return column

    def bits_sources(self, column: Column) -> Iterator[BitsSource]:
        """Estimate the reads of `row_group_bits` for each row group. Raises UnsupportedError, CorruptFile."""
        del column
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def row_group_bits(self, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
        """The bits of a column in each row group, from its filter or from its values, at a false-positive rate.

        Raises CorruptFile, UnsupportedError; Stopped soon after `stop` is set.
        """
        del column, fpp, stop
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def end_ranges(self, columns: Sequence[Column]) -> Sequence[tuple[int, int]]:
        """The ranges of the file that an index of these columns keeps, to save a search the request that opens it:
        offsets and lengths in order, the last one up to the file's end. By default none."""
        del columns
        return ()
