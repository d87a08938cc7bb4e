"""The search for a few rows without Arrow, in files whose records have plain types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.formats.filter_answer import FilterLookup

VALUES_MOST: Final = 256
"""Most values to find, and most rows to find in a file."""


class NeedsArrow(Exception):
    """The search of the file needs Arrow, and has to start again with it."""


class PossibleRowGroup(NamedTuple):
    """A row group that may have values."""

    row_group: int
    forms: Sequence[bytes]
    """The values that it may have, as the column may store them."""
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
    """Finds the rows of an open file whose column has one of the values. Records have Python values.

    All methods may raise `NeedsArrow`, and the errors of files.

    Attributes:
        pages_read, pages_left_out: as of `finding.ColumnSearch`.
    """

    pages_read = 0
    pages_left_out = 0

    @abstractmethod
    def possible(self, units: Container[int]) -> Iterator[PossibleRowGroup]:
        """Yield the row groups of `units` that may have values."""

    @abstractmethod
    def rows(self, possible: PossibleRowGroup, most: int | None) -> Iterator[PlainRow]:
        """Yield the rows of a row group, in order: all, or at least the first `most`."""

    @abstractmethod
    def records(self, row_group: int, rows: Sequence[PlainRow]) -> Sequence[dict[str, Any]]:
        """The records of some rows, in order."""

    @abstractmethod
    def scanned_bytes(self) -> int:
        """Compressed bytes of the searched column and of the records' columns in the whole file."""

    def filter_lookup(self) -> FilterLookup | None:
        """As `finding.ColumnSearch.filter_lookup`; by default None."""
        return None
