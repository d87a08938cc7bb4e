"""Finds the files and row groups that an index rules out, except for files that changed since they were indexed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.commands.find_values import Values
from bloomcli.errors import LiteralError, UnsupportedError, UsageError, near_names
from bloomcli.formats.registry import hash_for_index
from bloomcli.hints import quoted
from bloomcli.index.reader import END_BYTES, FreshnessCheck, Index, NoAnswer, RowGroups
from bloomcli.model.index import IndexedColumn
from bloomcli.storage.base import FileEntry
from bloomcli.storage.registry import open_source
from bloomcli.storage.sources import CountingSource
from bloomcli.values import variant_paths

_ENDS_BYTES: Final = 64 << 20
"""Limit for the ends of files in memory, enough for 10,000 files or more. Files beyond it are opened first."""
_NOTHING: Final[frozenset[int]] = frozenset()


class Pruning:
    """The answers of an index for some values.

    Args:
        path: the index.
        column: its column, by the whole leaf path.
        values: the values to find.
        ends: read the packed ends that the index keeps, for files that are going to be searched.

    Attributes:
        path: the index.
        bytes_read: bytes that were read of the index.

    Raises:
        UsageError: the index doesn't have the column.
        UnreadableError, CorruptFile: the index can't be read, or is damaged.
    """

    def __init__(self, path: str, column: str, values: Values, *, ends: bool = True) -> None:
        self.path = path
        self._answered: set[int] = set()
        """Files whose column has a type in which the values could be looked up."""
        self._possible: dict[int, set[int]] = {}
        with CountingSource(open_source(path, END_BYTES)) as source:
            index = Index(source)
            column = _name_in(index.paths, column) or column
            if column not in index.paths:
                raise _without(path, column, index.paths)
            for indexed in index.types(column):
                self._look_up(index, indexed, values)
            self._ends = dict(index.ends(sorted(self._possible), _ENDS_BYTES)) if ends else {}
            self.bytes_read = source.bytes_read
        self._files = index.files
        self._fresh = FreshnessCheck(index)

    def _look_up(self, index: Index, indexed: IndexedColumn, values: Values) -> None:
        try:
            hashed = hash_for_index(values.texts, indexed.type.column(indexed.path))
        except (LiteralError, UnsupportedError):  # files with the type are searched without the index
            return
        if hashed.hashes:
            self._add(index.possible(indexed, hashed.hashes))
        if hashed.unhashed:
            self._add(index.with_values(indexed))
        self._answered |= index.having(indexed)

    def _add(self, row_groups: RowGroups) -> None:
        for file, row_group in row_groups:
            self._possible.setdefault(file, set()).add(row_group)

    def of(self, item: FileEntry) -> IndexedRowGroups | NoAnswer:
        """The answer for a listed file, or why the index has none: the file is then searched without it."""
        entry = self._fresh.found(item)
        if isinstance(entry, NoAnswer):
            return entry
        at, fingerprint = entry
        if at not in self._answered:
            return NoAnswer.UNKNOWN
        row_groups = self._possible.get(at)
        possible = _NOTHING if row_groups is None else frozenset(row_groups)
        return IndexedRowGroups(possible, fingerprint, self._files.row_groups[at], self._ends.get(at))


def _name_in(names: Sequence[str], column: str) -> str | None:
    """The name of a column in an index, which may spell its path in a VARIANT in another way."""
    spelled = variant_paths.canonical(column)
    return column if column in names else next((n for n in names if variant_paths.canonical(n) == spelled), None)


def _without(path: str, column: str, has: tuple[str, ...]) -> UsageError:
    columns = ",".join((*has, column))
    near = near_names(column, has)
    typo = f"did you mean {' or '.join(near)}? Or " if near else ""
    return UsageError(
        f"the index has no column {column!r}, only {', '.join(has)}",
        path=path,
        hint=f"{typo}`bloom index build PATHS --columns {quoted(columns)} -o {quoted(path)} --overwrite`",
    )
