"""What an index takes from a column of a file: of each row group the bits of its filter, or that nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.formats.plain_rows import PlainSearch


class RowGroupBits(NamedTuple):
    """A column in one row group, as an index keeps it."""

    row_group: int
    rows: int
    bits: bytes | bytearray | None = None
    """The bitset of a split-block filter with the values' XXH64; None where `possible` says all."""
    possible: bool = False
    """Without bits: whether it may have any value. False: it has none but nulls."""
    contradicted: bool = False
    """The bits lack the minimum or maximum of the row group's statistics, which can't be trusted then."""
    decoded: int = 0
    """Compressed bytes of the column's pages that were decoded for the bits; 0 where the file's filter has them."""


class BitsSource(NamedTuple):
    """Where the bits of a row group come from, by the metadata."""

    filter: bool = False
    """The file's filter is taken."""
    reads: int = 0
    """Compressed bytes that are read of the column, where there is no such filter."""


class HashedValues(NamedTuple):
    """Values as an index looks them up."""

    hashes: bytes
    """XXH64 of all that files may have stored for them, uint64s in native order."""
    unhashed: bool = False
    """There are values that no filter tells of, such as NaN: row groups with any value may have them."""


class Indexable:
    """The part of `bloomcli.formats.base.FilterFile` that an index of many files is made from."""

    format: ClassVar[str]
    indexable: ClassVar[bool] = False
    """`row_group_bits` gives what an index keeps. Its row groups are ORC's stripes."""

    def row_group_rows(self) -> Sequence[int]:
        """The rows of each row group, in order. Raises UnsupportedError."""
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def indexed_column(self, column: Column) -> Column:
        """The Parquet type whose hashes the bits have for the column's values. The column itself by default."""
        return column

    def bits_sources(self, column: Column) -> Iterator[BitsSource]:
        """What `row_group_bits` would read of each row group. Raises UnsupportedError, CorruptFile."""
        del column
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def row_group_bits(self, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
        """The bits of a column in each row group, of its filter or made from its values, at a false-positive rate.

        Raises CorruptFile, UnsupportedError; Stopped soon after `stop` is set.
        """
        del column, fpp, stop
        raise UnsupportedError(f"files of the format {self.format} can't be indexed")

    def end_ranges(self, columns: Sequence[Column]) -> Sequence[tuple[int, int]]:
        """What an index of these columns keeps of the file, so that it can be searched without being opened first:
        offsets and lengths in order, the last up to the file's end. None by default."""
        del columns
        return ()

    def plain_search(self, column: Column, texts: Sequence[str], selected: Sequence[str] | None) -> PlainSearch:
        """What finds few rows without Arrow, in row groups that an index names, for records of these columns (None:
        all).

        Raises `plain_rows.NeedsArrow` where Arrow has to, as it always does by default; LiteralError.
        """
        from bloomcli.formats.plain_rows import NeedsArrow

        del column, texts, selected
        raise NeedsArrow
