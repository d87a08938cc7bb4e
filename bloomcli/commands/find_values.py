"""The values that `find` looks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Literal

from bloomcli.commands.columns import kind_of
from bloomcli.errors import LiteralError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.plain_rows import VALUES_MOST
from bloomcli.formats.registry import hash_for_index
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.find_plain import Refused
    from bloomcli.formats.filter_answer import LikeFiles
    from bloomcli.formats.finding import ColumnSearch, Wanted
    from bloomcli.formats.indexed import HashedValues


class Values:
    """The values that are looked for: converted once for each type of column that files have.

    Args:
        texts: a few, or many as UTF-8 in an Arrow array.

    Attributes:
        like_files: tells of files like one that was searched whether they can't have the values.
        given: a few texts, or an array.
        file: the path of the file that they come from.
        plain: what is told without Arrow of files, until one needs Arrow: their rows, which are taken as
            `find_plain.PlainRows` then, too; only that they have none; nothing.
    """

    like_files: LikeFiles | None = None
    file: str | None = None
    plain: Literal["rows", "absence", "nothing"] = "absence"
    _without_rows = 0
    """Files without rows, less those with rows, where `plain` is ``absence``."""

    def __init__(self, texts: Sequence[str] | pa.LargeBinaryArray) -> None:
        self.given: tuple[str, ...] | pa.LargeBinaryArray = tuple(texts) if isinstance(texts, list | tuple) else texts
        self._lock = Lock()
        self._converted: dict[object, Wanted | LiteralError] = {}

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

    def searched_plainly(self, found: FileFound | Refused) -> FileFound | None:
        """What was found of a file without Arrow; None where it is to be searched with Arrow."""
        from bloomcli.commands.find_plain import Refused  # imported by then

        if isinstance(found, FileFound):
            self._without_rows += 1
            return found
        self._without_rows -= 1
        if found is Refused.UNPLAIN or self._without_rows < 0:  # those with rows are searched twice
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

    def of(self, file: FilterFile, column: Column, search: ColumnSearch) -> Wanted:
        """The values as a file's column stores them. Raises LiteralError."""
        key = kind_of(file, column)
        with self._lock:
            found = self._converted.get(key)
            if found is None:
                found = self._converted[key] = _converted(search, self.texts)
        if isinstance(found, LiteralError):
            raise found.of_file(file.source.path)
        return found


def _converted(search: ColumnSearch, texts: pa.LargeBinaryArray) -> Wanted | LiteralError:
    """Values as a column stores them; or why one is none: it is of no file with such a column."""
    try:
        return search.wanted(texts)
    except LiteralError as error:
        return error
