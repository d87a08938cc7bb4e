"""The values that `find` looks for, and their conversions to columns' types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final, Generic, TypeVar

import pyarrow as pa

from bloomcli.commands.columns import kind_of
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import LiteralError
from bloomcli.formats.arrays import binaries
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_search import ColumnSearch
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column

VALUES_MOST: Final = 100_000_000
"""Most values of one search. They are in memory, with their hashes."""

T = TypeVar("T")


class Conversions(Generic[T]):
    """A cache of values converted for each kind of column: each conversion runs once for many files.

    It also keeps LiteralErrors, so that the texts before an invalid text are converted only once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._conversions: dict[object, T | LiteralError] = {}

    def of(self, kind: object, path: str, convert: Callable[[], T]) -> T:
        """The values as a kind of column stores them.

        Args:
            kind: the kind of column.
            path: the file, for errors.
            convert: converts the values. Errors other than LiteralError aren't kept.

        Raises:
            LiteralError: a text isn't a value of the column.
        """
        with self._lock:
            converted = self._conversions.get(kind)
            if converted is None:
                try:
                    converted = convert()
                except LiteralError as error:
                    converted = error
                self._conversions[kind] = converted
        if isinstance(converted, LiteralError):
            raise converted.of_file(path)
        return converted

    def made(self) -> Iterator[T]:
        """Yield all conversions that succeeded."""
        return (converted for converted in self._conversions.values() if not isinstance(converted, LiteralError))


class Values:
    """The values to find, converted once for each type that the column has in the files.

    Args:
        texts: the values, as an Arrow array of UTF-8 if they are many.
        file: the path of the file that they come from.

    Attributes:
        texts: the values as UTF-8.
        file: the path of the file that they come from.
        filter_lookup: looks the values up in the filters of files with the schema of a file that was searched.
    """

    def __init__(self, texts: Sequence[str] | pa.LargeBinaryArray, file: str | None = None) -> None:
        if isinstance(texts, list | tuple):
            texts = binaries([text.encode("utf-8", "surrogateescape") for text in texts])
        self.texts: pa.LargeBinaryArray = texts
        self.file = file
        self.filter_lookup: FilterLookup | None = None
        self._converted: Conversions[WantedValues] = Conversions()

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.texts)

    def of(self, file: FilterFile, column: Column, search: ColumnSearch, stop: Stop | None) -> WantedValues:
        """The values converted for a file's column. Raises LiteralError, Stopped."""
        return self._converted.of(kind_of(file, column), file.source.path, lambda: search.wanted(self.texts, stop))
