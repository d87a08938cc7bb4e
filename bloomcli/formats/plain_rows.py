"""Rows that are found without Arrow: few, of files whose records are of plain types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.formats.filter_answer import FilterLookup

VALUES_MOST: Final = 256
"""Values that are looked for, and rows that are found, of a file."""


class NeedsArrow(Exception):
    """Arrow has to search the file, from the start."""


class PossibleRowGroup(NamedTuple):
    """A row group that may have values."""

    row_group: int
    forms: Sequence[bytes]
    """These values, as the column may store them."""
    trusted: bool
    """No filter contradicts the row group's statistics."""


class PlainRow(NamedTuple):
    """A row that has a value."""

    row: int
    """Its position in the row group."""
    text: int
    """The position of the value's text."""
    form: bytes
    """The value as the column stores it."""


class PlainSearch(ABC):
    """Finds the rows of an open file that have values of a column, as Python's values.

    All of it raises `NeedsArrow` where it can't, and the errors of files.

    Attributes:
        pages_read, pages_left_out: as of `finding.ColumnSearch`.
    """

    pages_read = 0
    pages_left_out = 0

    @abstractmethod
    def possible(self, units: Container[int]) -> Iterator[PossibleRowGroup]:
        """Those of some row groups that may have values."""

    @abstractmethod
    def rows(self, possible: PossibleRowGroup, most: int | None) -> Iterator[PlainRow]:
        """The rows of a row group, in order: all, or `most` or a few more."""

    @abstractmethod
    def records(self, row_group: int, rows: Sequence[PlainRow]) -> Sequence[dict[str, Any]]:
        """The records of some rows, in order."""

    @abstractmethod
    def scanned_bytes(self) -> int:
        """Compressed bytes of the searched column and of those of the records in the whole file."""

    def filter_lookup(self) -> FilterLookup | None:
        """As `finding.ColumnSearch.filter_lookup`; None where nothing can tell."""
        return None
