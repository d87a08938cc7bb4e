"""Lookups in the filters of files before `find` opens them. Imports no Arrow: most files are never opened."""

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
    """The answer of one file's filters, or of several files that can't have the values."""

    files: int
    row_groups: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    scan_bytes: int
    """As `ColumnSearch.scanned_bytes`."""
    bytes_read: int
    possible: tuple[int, ...] | None
    """Numbers of the row groups that may have a value; None if the file has to be opened to determine them."""
    texts: pa.Int64Array | None = None
    """Ascending positions of the texts that the file may have, if many are looked up and it may have one."""
    stamp: tuple[int, int] = (0, 0)
    """Size and modification time (nanoseconds) of the file; of the last one, if there are several."""

    @property
    def ruled_out(self) -> bool:
        """Whether no row group can have a value."""
        return self.possible == ()


class FalsePositives(NamedTuple):
    """The reads of row groups that filters don't rule out although no row has a value."""

    searched: tuple[int, ...] = ()
    """The numbers of the row groups whose pages were read."""
    bytes_read: int = 0
    pages: int = 0
    """Data pages of the column that were read."""


class FileScan(NamedTuple):
    """The scan of a file's column: the reads, and the number of rows that have a value."""

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
    """The rows of files that have one of many values, in the order of the files."""

    files: list[FileScan]
    groups: pa.Int64Array
    """The row group of each row."""
    rows: pa.Int64Array
    """Positions in the file, ascending for each file."""
    texts: pa.Int64Array
    """For each row, the position of its value's text."""
    records: pa.RecordBatch


class FilterLookup(ABC):
    """Looks the values of a search up in the filters of files with the same schema as a file that was searched.

    It reads little of each file: `find` calls it for very many files.

    Attributes:
        format: the format of these files.
        can_batch: whether `look_up_all` can be called.
    """

    format: str
    can_batch: bool

    @property
    def scans(self) -> bool:
        """Whether `rows` and `rows_of` may find rows. By default they return None."""
        return False

    @abstractmethod
    def look_up(self, source: Source, row_groups: Iterable[int] | None = None) -> FilterAnswer | None:
        """Look the values up in the filters of an open file; None for a file that isn't local.

        `row_groups`: the numbers of the row groups to look up; the answer rules the others out. None: all.
        """

    def rows(self, source: Source) -> FileRows | None:
        """The rows of an open file that have the values, with their records; None if the filters should be
        read first, or if the format can't find the rows: the default."""
        del source
        return None

    def rows_of(self, names: Sequence[bytes], rows: int, size: int) -> FileRows | None:
        """As `rows`, for the first files of several local ones.

        It ends before a file for which `rows` would return None, and after the file with which it has `rows` rows or
        `size` bytes of values. None if it scans no file.
        """
        del names, rows, size
        return None

    def false_positives(self, source: Source, row_groups: Container[int]) -> FalsePositives | None:
        """Search the row groups of an open file that filters or an index don't rule out.

        Returns the reads if no row has a value; None if one has, or if the format can't decide this: the default.
        """
        del source, row_groups
        return None

    @abstractmethod
    def look_up_all(self, names: Sequence[bytes], stop: Stop) -> Iterator[FilterAnswer]:
        """Look the values up in the filters of local files, in order. Files that are ruled out may share an answer.

        Only if `can_batch`.

        Raises:
            Stopped: cancelled.
        """
