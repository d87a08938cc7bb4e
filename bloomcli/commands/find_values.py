"""The values that `find` looks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from bloomcli.commands.columns import kind_of
from bloomcli.errors import LiteralError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.plain_rows import VALUES_MOST
from bloomcli.formats.registry import hash_for_index
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.plain_search import Fallback
    from bloomcli.formats.filter_answer import FilterLookup
    from bloomcli.formats.finding import ColumnSearch, WantedValues
    from bloomcli.formats.index_input import HashedValues


T = TypeVar("T")


class Conversions(Generic[T]):
    """What values are in columns of each kind: it is made once, for many files. That a text is no value of a kind is
    remembered, too: millions before it aren't converted anew for each file."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[object, T | LiteralError] = {}

    def of(self, kind: object, path: str, convert: Callable[[], T]) -> T:
        """The values as a kind of column stores them.

        Args:
            kind: of the column.
            path: the file that has it, for errors.
            convert: makes them. What else than LiteralError it raises isn't remembered.

        Raises:
            LiteralError: a text is no value of the column.
        """
        with self._lock:
            found = self._found.get(kind)
            if found is None:
                try:
                    found = convert()
                except LiteralError as error:
                    found = error
                self._found[kind] = found
        if isinstance(found, LiteralError):
            raise found.of_file(path)
        return found

    def made(self) -> Iterator[T]:
        """Yield all that was made."""
        return (found for found in self._found.values() if not isinstance(found, LiteralError))


class Values:
    """The values that are looked for: converted once for each type of column that files have.

    Args:
        texts: a few, or many as UTF-8 in an Arrow array.

    Attributes:
        filter_lookup: tells of files like one that was searched whether they can't have the values.
        given: a few texts, or an array.
        file: the path of the file that they come from.
        plain: what is told without Arrow of files, until one needs Arrow: their rows, which are taken as
            `plain_search.PlainRows` then, too; only that they have none; nothing.
    """

    filter_lookup: FilterLookup | None = None
    file: str | None = None
    plain: Literal["rows", "absence", "nothing"] = "absence"
    _without_rows = 0
    """Files without rows, less those with rows, where `plain` is ``absence``."""

    def __init__(self, texts: Sequence[str] | pa.LargeBinaryArray) -> None:
        self.given: tuple[str, ...] | pa.LargeBinaryArray = tuple(texts) if isinstance(texts, list | tuple) else texts
        self._converted: Conversions[WantedValues] = Conversions()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.given)

    @cached_property
    def few(self) -> tuple[str, ...] | None:
        """The values; None if they are many."""
        if self.count > VALUES_MOST:
            return None
        if isinstance(self.given, tuple):
            return self.given
        return tuple(text.decode("utf-8", "surrogateescape") for text in self.given.to_pylist())

    def searched_plainly(self, found: FileFound | Fallback) -> FileFound | None:
        """What was found of a file without Arrow; None where it is to be searched with Arrow."""
        from bloomcli.commands.plain_search import Fallback  # imported by then

        if isinstance(found, FileFound):
            self._without_rows += 1
            return found
        self._without_rows -= 1
        if found is Fallback.NOT_PLAIN or self._without_rows < 0:  # those with rows are searched twice
            self.plain = "nothing"
        return None

    @cached_property
    def texts(self) -> pa.LargeBinaryArray:
        """The values, as UTF-8."""
        if not isinstance(self.given, tuple):
            return self.given
        from bloomcli.formats.arrays import binaries

        return binaries([text.encode("utf-8", "surrogateescape") for text in self.given])

    def hashed(self, column: Column) -> Iterator[HashedValues]:
        """The values as an index has those of a column. Without Arrow where they are few. Raises LiteralError."""
        yield hash_for_index(self.given, column)

    def of(self, file: FilterFile, column: Column, search: ColumnSearch) -> WantedValues:
        """The values as a file's column stores them. Raises LiteralError."""
        return self._converted.of(kind_of(file, column), file.source.path, lambda: search.wanted(self.texts))
