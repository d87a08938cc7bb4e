"""What the filters of files tell `find` before the files are opened. Without Arrow: most files are never opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.concurrency.cancellation import Stop
    from bloomcli.storage.base import Source


class FilterAnswer(NamedTuple):
    """What the filters of a file tell, or of several files that can't have the values."""

    files: int
    row_groups: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    scan_bytes: int
    """As `ColumnSearch.scanned_bytes`."""
    bytes_read: int
    possible: tuple[int, ...] | None
    """The numbers of the row groups that may have a value; None where the file has to be opened to know."""
    texts: pa.Int64Array | None = None
    """Ascending positions of the texts that the file may have, where many are looked for and it may have one."""
    stamp: tuple[int, int] = (0, 0)
    """The size and the modification time (nanoseconds) of the file; of several, of the last one."""

    @property
    def ruled_out(self) -> bool:
        """Whether no row group can have a value."""
        return self.possible == ()


class FalsePositives(NamedTuple):
    """What was read of row groups without a row with the values."""

    searched: tuple[int, ...] = ()
    """The numbers of the row groups whose pages were read."""
    bytes_read: int = 0
    pages: int = 0
    """Data pages of the column that were read."""


class FileScanned(NamedTuple):
    """What was read of a file to find its rows."""

    row_groups: int
    searched: tuple[int, ...]
    """The numbers of the row groups whose pages were read."""
    chunk_bytes: int
    """Compressed bytes of the column."""
    scan_bytes: int
    """As `ColumnSearch.scanned_bytes`."""
    bytes_read: int
    pages: int
    """Data pages of the column that were read."""
    rows: int
    """Rows that have a value."""


class FileRows(NamedTuple):
    """The rows of files that have one of many values: those of one file after the other."""

    files: list[FileScanned]
    groups: pa.Int64Array
    """Of each row its row group."""
    rows: pa.Int64Array
    """Positions in the file, which ascend in each."""
    texts: pa.Int64Array
    """Of each row the position of the text of its value."""
    records: pa.RecordBatch


class FilterLookup(ABC):
    """Tells of files whose metadata are like those of a searched file which row groups can't have the same values.

    It reads little of each: `find` asks it about very many files.

    Attributes:
        format: of these files.
        can_batch: `look_up_all` tells of many files at once.
    """

    format: str
    can_batch: bool

    @property
    def scans(self) -> bool:
        """Whether `rows` and `rows_of` may find rows. By default they don't."""
        return False

    @abstractmethod
    def look_up(self, source: Source, row_groups: Iterable[int] | None = None) -> FilterAnswer | None:
        """What the filters of an open file tell; None for a file that isn't of this machine. `row_groups`: only these
        are asked, by their numbers, and the others are told to be ruled out; None: all."""

    def rows(self, source: Source) -> FileRows | None:
        """The rows of an open file that have the values, with records of the columns that were named; None where the
        filters are to be asked first, or it isn't known. By default it isn't."""
        del source
        return None

    def rows_of(self, names: Sequence[bytes], rows: int, size: int) -> FileRows | None:
        """As `rows`, for the first ones of several files of this machine, up to the one of which that gives None: so
        many files that they have so many rows, or bytes of values, or one more. None where there is none."""
        del names, rows, size
        return None

    def false_positives(self, source: Source, row_groups: Container[int]) -> FalsePositives | None:
        """What was read of those row groups of an open file that filters, or an index, left; None where one of them
        has the values, or it isn't known. By default it isn't."""
        del source, row_groups
        return None

    @abstractmethod
    def look_up_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """What the filters of files of this machine tell, in order. Files that are ruled out may be summed up.

        Only where `together` says so.

        Raises:
            Stopped: cancelled.
        """
