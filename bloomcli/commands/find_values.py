"""The values that `find` looks for, and their conversions to columns' types."""

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
    """A cache of values converted for each kind of column: each conversion runs once for many files.

    It also keeps LiteralErrors, so that the texts before an invalid text are converted only once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[object, T | LiteralError] = {}

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
            converted = self._found.get(kind)
            if converted is None:
                try:
                    converted = convert()
                except LiteralError as error:
                    converted = error
                self._found[kind] = converted
        if isinstance(converted, LiteralError):
            raise converted.of_file(path)
        return converted

    def made(self) -> Iterator[T]:
        """Yield all conversions that succeeded."""
        return (converted for converted in self._found.values() if not isinstance(converted, LiteralError))


class Values:
    """The values to find, converted once for each type that the column has in the files.

    Args:
        texts: a few, or many as UTF-8 in an Arrow array.

    Attributes:
        filter_lookup: looks the values up in the filters of files with the schema of a file that was searched.
        given: the texts: a tuple of a few, or an array.
        file: the path of the file that the values come from.
        plain: the results of a search without Arrow, until a file needs Arrow. "rows": rows, as
            `plain_search.PlainRows`; "absence": only that a file has no rows; "nothing": such a search isn't tried.
    """

    filter_lookup: FilterLookup | None = None
    file: str | None = None
    plain: Literal["rows", "absence", "nothing"] = "absence"
    _without_rows = 0
    """Number of files without rows minus those with rows, where `plain` is ``absence``."""

    def __init__(self, texts: Sequence[str] | pa.LargeBinaryArray) -> None:
        self.given: tuple[str, ...] | pa.LargeBinaryArray = tuple(texts) if isinstance(texts, list | tuple) else texts
        self._converted: Conversions[WantedValues] = Conversions()

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.given)

    @cached_property
    def few(self) -> tuple[str, ...] | None:
        """The values as texts; None if there are more than `VALUES_MOST`."""
        if self.count > VALUES_MOST:
            return None
        if isinstance(self.given, tuple):
            return self.given
        return tuple(text.decode("utf-8", "surrogateescape") for text in self.given.to_pylist())

    def searched_plainly(self, found: FileFound | Fallback) -> FileFound | None:
        """Note the outcome of a search without Arrow. Returns its result; None if the search needs Arrow."""
        from bloomcli.commands.plain_search import Fallback  # the caller has imported it

        if isinstance(found, FileFound):
            self._without_rows += 1
            return found
        self._without_rows -= 1
        if found is Fallback.NOT_PLAIN or self._without_rows < 0:  # files with rows are searched twice
            self.plain = "nothing"
        return None

    @cached_property
    def texts(self) -> pa.LargeBinaryArray:
        """The values as UTF-8."""
        if not isinstance(self.given, tuple):
            return self.given
        from bloomcli.formats.arrays import binaries

        return binaries([text.encode("utf-8", "surrogateescape") for text in self.given])

    def hashed(self, column: Column) -> Iterator[HashedValues]:
        """Yield the values' hashes as an index has them for a column. A few need no Arrow. Raises LiteralError."""
        yield hash_for_index(self.given, column)

    def of(self, file: FilterFile, column: Column, search: ColumnSearch) -> WantedValues:
        """The values converted for a file's column. Raises LiteralError."""
        return self._converted.of(kind_of(file, column), file.source.path, lambda: search.wanted(self.texts))
