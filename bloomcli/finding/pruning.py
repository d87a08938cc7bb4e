"""Leaves out the files and row groups that an index rules out. A file that isn't the one that was indexed isn't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.errors import LiteralError, UnsupportedError, UsageError, near_names
from bloomcli.hints import quoted
from bloomcli.index.freshness import FreshnessCheck
from bloomcli.index.no_answer import NoAnswer
from bloomcli.index.reader import END_BYTES, Index, RowGroups
from bloomcli.model.index import IndexedColumn
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import FileEntry, Fingerprint
from bloomcli.storage.counting_source import CountingSource
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    from bloomcli.commands.find_values import Values
    from bloomcli.commands.value_parts import ValueParts

_ENDS_BYTES: Final = 64 << 20
"""Bytes of the ends of files that are held: 10,000 files' or more. Further files are opened as without them."""
_NOTHING: Final[frozenset[int]] = frozenset()


class IndexAnswer(NamedTuple):
    """What an index says of a file."""

    row_groups: int
    """How many row groups (in ORC stripes) the file has."""
    possible: frozenset[int]
    """The numbers of those that may have a value."""
    seen: Fingerprint
    """Of the file that was indexed."""
    end: bytes | None = None
    """Its packed end, with which it needn't be opened."""

    @property
    def indexed(self) -> IndexedRowGroups:
        """The same for the search of the file."""
        return IndexedRowGroups(self.possible, self.seen, self.end)


class PartialAnswer(NamedTuple):
    """What an index says of some of the values. Files are positions in `Index.files`."""

    answered: frozenset[int]
    """Files whose type of the column can have the values."""
    possible: dict[int, set[int]]
    """The row groups of files that may have a value."""
    by: Fingerprint | None
    """Which index says so: another one has other files at these positions."""


class Pruning:
    """The answers of an index for some values.

    Args:
        path: the index.
        column: its column, by the whole leaf path.
        values: what is looked for; or what was answers of them, of some values after the other.
        ends: whether files are searched: what the index has of their ends is read, too.

    Attributes:
        path: the index.
        bytes_read: of the index.

    Raises:
        UsageError: the index doesn't have the column.
        UnreadableError, CorruptFile: the index can't be read, or is damaged.
    """

    def __init__(
        self, path: str, column: str, values: Values | ValueParts | Sequence[PartialAnswer], *, ends: bool = True
    ) -> None:
        self.path = path
        self._answered: set[int] = set()
        """Positions of the files whose type of the column can have the values."""
        self._possible: dict[int, set[int]] = {}
        with CountingSource(open_source(path, END_BYTES)) as source:
            index = Index(source)
            self._index = _identity_of(source.fingerprint)
            if column not in index.paths:
                raise _without(path, column, index.paths)
            if isinstance(values, Sequence):
                self._sum_up(values)
            else:
                for indexed in index.types(column):
                    self._look_up(index, indexed, values)
            self._ends = dict(index.ends(sorted(self._possible), _ENDS_BYTES)) if ends else {}
            self.bytes_read = source.bytes_read
        self._files = index.files
        self._fresh = FreshnessCheck(index)

    @property
    def partial_answer(self) -> PartialAnswer:
        """What the index says of the values."""
        return PartialAnswer(frozenset(self._answered), self._possible, self._index)

    def _sum_up(self, answers: Sequence[PartialAnswer]) -> None:
        """Sum up what was answers of values: nothing, if the index was replaced meanwhile."""
        if any(some.by != self._index for some in answers):
            return
        if answers:
            self._answered = set(frozenset.intersection(*(some.answered for some in answers)))
        for some in answers:
            for file, groups in some.possible.items():
                self._possible.setdefault(file, set()).update(groups)

    def _look_up(self, index: Index, indexed: IndexedColumn, values: Values | ValueParts) -> None:
        unhashed = False
        try:
            for found in values.hashed(indexed.type.column(indexed.path)):
                unhashed = unhashed or found.unhashed
                if found.hashes:
                    self._add(index.possible_for_any(indexed, found.hashes))
        except (LiteralError, UnsupportedError):  # files with the type are searched as without an index
            return
        if unhashed:
            self._add(index.with_values(indexed))
        self._answered |= index.having(indexed)

    def _add(self, found: RowGroups) -> None:
        for file, group in zip(found.files, found.row_groups, strict=True):
            self._possible.setdefault(file, set()).add(group)

    def of(self, item: FileEntry) -> IndexAnswer | NoAnswer:
        """What the index says of a listed file; or why it has to be searched without it."""
        fresh = self._fresh.found(item)
        if isinstance(fresh, NoAnswer):
            return fresh
        at, (size, mtime_ns, tag) = fresh
        if at not in self._answered:
            return NoAnswer.UNKNOWN
        found = self._possible.get(at)
        possible = _NOTHING if found is None else frozenset(found)
        return IndexAnswer(
            self._files.row_groups[at], possible, Fingerprint(size, mtime_ns, tag=tag), self._ends.get(at)
        )


def _identity_of(found: Fingerprint) -> Fingerprint:
    """What is the same of an index wherever it is opened."""
    return Fingerprint(found.size, 0 if found.tag else found.mtime_ns, tag=found.tag)


def _without(path: str, column: str, has: tuple[str, ...]) -> UsageError:
    columns = ",".join((*has, column))
    near = near_names(column, has)
    typo = f"did you mean {' or '.join(near)}? Or " if near else ""
    return UsageError(
        f"the index has no column {column!r}, only {', '.join(has)}",
        path=path,
        hint=f"{typo}`bloom index build PATHS --columns {quoted(columns)} -o {quoted(path)} --overwrite`",
    )
