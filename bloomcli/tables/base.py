"""The interface of table formats: the files of a snapshot, their column names, and the commit of replacements.

    open_table -> Table.files -> engine: a new file for each old one -> Table.commit -> Table.refresh

Tables to change are opened in the user's Spark session, with its catalog, its credentials, and the table format's own
transaction. bloom never writes a table's metadata itself. The driver keeps what it needs to replace a file in
`DataFile.record`, which isn't sent to executors. A `TableSnapshot` only reads, and needs no session.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.model.schema import ColumnNames, RowLineage
from bloomcli.model.table_statistics import FileStatistics, Kind
from bloomcli.tables.deleted_rows import TableRows
from bloomcli.tables.reachable import Reachable


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file of a snapshot."""

    path: str
    """The full path or URI as Hadoop spells it, not encoded."""
    size: int
    """Bytes, according to the table's metadata."""
    format: str
    """``parquet``, ``orc``, or another format, such as ``avro``."""
    partition: str = ""
    """The partition, such as ``day=2026-11-01/region=eu``; empty in an unpartitioned table."""
    lineage: RowLineage | None = None
    """The row ids according to the table's metadata; set if a new file needs extra columns to keep them."""
    key: tuple[bytes, bytes | None] | None = field(default=None, repr=False, compare=False)
    """The key and the AAD prefix of an encrypted file, which the table's metadata have."""
    record: Any = field(default=None, repr=False, compare=False)
    """What the table needs to replace the file."""


class Replacement(NamedTuple):
    """A data file, and the new file that replaces it: the same rows in the same order, with other filters."""

    old: DataFile
    path: str
    """The path of the new file, from `Table.new_path`."""
    size: int
    """Bytes of the new file."""
    right: FileStatistics | None = None
    """What the metadata have to say about the new file, where those of the old one are wrong: the rows, the split
    offsets if there are some, and the columns whose statistics are wrong. Of these, only those that the old file has
    are set, and those that aren't known are taken out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRequest:
    """A filter that the table's properties request."""

    column: str
    """The table's path of a leaf column. The column may no longer exist: properties outlive columns."""
    format: str | None = None
    """The format of files that the property applies to, as in `DataFile`; None if it applies to all."""
    fpp: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """What the table's history records about a commit of bloom."""

    run: str
    """A UUID of the run. If the answer to a commit is lost, the history is searched for it."""
    batch: int
    """Number of the commit in its run, from 1."""
    command: str
    """``add``, ``remove``, ``fold`` or ``repair``."""
    columns: tuple[str, ...] = ()
    """The table's paths of the columns whose filters changed; empty: all."""


class TableChange(NamedTuple):
    """A commit in a table's history."""

    version: int
    """The id of the snapshot, or the version."""
    operation: str
    """The table's own word for what it did, such as ``append`` or ``MERGE``."""
    run: str | None = None
    """The UUID of the run of bloom that made it; None for another writer's commit."""


class Leaf(NamedTuple):
    """A leaf column outside of lists and maps: engines skip files by the statistics of such columns alone."""

    path: str
    """The table's dotted path."""
    type: str
    """The table format's name of the type, without parameters: ``decimal``."""
    kind: Kind | None
    """The kind of its values; None if they have no order."""
    scale: int = 0
    """The scale of a decimal."""
    names: tuple[str, ...] = ()
    """The names in Delta's log of the column and of those around it, from the outside."""
    default: Any = None
    """In JSON, the value in Iceberg's files from before the column was added; null if None."""


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


@contextmanager
def valid(what: str, path: str) -> Iterator[None]:
    """Raise CorruptFile where metadata don't have the form that the table format defines."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise CorruptFile(f"{what}: {error!r}", path=path) from None


def in_sql(parts: Iterable[str]) -> str:
    """A name in Spark SQL, with backticks around the parts that need them."""
    return ".".join(p if re.fullmatch(r"(?a:[A-Za-z_]\w*)", p) else "`" + p.replace("`", "``") + "`" for p in parts)


def check_place(table: str, path: str) -> None:
    """Raise CorruptFile or UnsupportedError for a path of a table's metadata that isn't opened with a user's rights.

    A table may name files anywhere in stores: clones and imported files are there. No writer makes paths with ``..``.
    A table in a store doesn't name files of the machine that reads it, nor web servers that it isn't on.

    Args:
        table: the table's directory, or a file in it.
        path: a full path.
    """
    ours, theirs = (match[1].lower() if (match := _SCHEME.match(place)) else "file" for place in (table, path))
    if ".." in path.removeprefix(table).split("/") or "\0" in path:
        raise CorruptFile("the table's metadata name a path that no writer makes: it isn't opened", path=path)
    if ours != theirs and theirs in {"file", "http", "https"}:
        raise UnsupportedError(f"a table in {table} names this file elsewhere: it isn't opened", path=path)


class Conflict(BloomError):
    """Other commits came first, and nothing was committed. If there are `paths`, a commit without them may pass."""

    exit_code = 3

    def __init__(self, reason: str, *, path: str | None = None, paths: Collection[str] = ()) -> None:
        super().__init__(reason, path=path)
        self.paths = frozenset(paths)
        """The data files that others have replaced, as the table spells them."""


class UnknownOutcome(BloomError):
    """It can't be determined whether a commit took place: the new files must stay."""

    exit_code = 3


class WrongCommit(BloomError):
    """A commit took place, and its snapshot isn't as planned. The text says whether it was taken back. The new files
    must stay, because the table's history names them."""

    exit_code = 3


class TableSnapshot(ABC):
    """An open table at one snapshot or version, to read it.

    Attributes:
        name: as `--table` takes it.
        format: ``iceberg`` or ``delta``.
        version: the id of the snapshot, or the version, that `files` lists; None if the table has no snapshot.
        origin: without Spark: what was read instead, for reports.
    """

    name: str
    format: str
    origin: str | None = None

    @property
    def name_in_sql(self) -> str:
        """The table's name for commands that change it."""
        return self.name

    @property
    @abstractmethod
    def version(self) -> int | None:
        """The id of the snapshot, or the version, that `files` lists."""

    @abstractmethod
    def names(self) -> ColumnNames:
        """The leaf columns of the snapshot's schema, and their names in files."""

    @abstractmethod
    def files(self, where: str | None = None) -> list[DataFile]:
        """The data files of the snapshot, in a fixed order. They include rows that deletes hide.

        Args:
            where: a condition in the table's SQL. Files are left out if partitions and statistics show that no row
                meets it.

        Raises:
            UsageError: the table can't resolve the condition.
        """

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """What a search needs to return the snapshot's rows: columns, types, and the deletes of files.

        Args:
            files: as `files` returned them.

        Raises:
            UnsupportedError: deletes can't be read, or this format has no search of rows.
        """
        del files
        raise UnsupportedError(f"rows of {self.format} tables can't be found", path=self.name)

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """Yield what the table's metadata say about data files, by which engines skip them; by default nothing.

        Args:
            files: as `files` returned them.

        Raises:
            UnreadableError: the metadata can't be read.
            UnsupportedError: the table format's library gives no access to them.
        """
        del files
        return iter(())

    def reachable(self, column: str) -> Reachable:
        """All that the table still reaches, in any version, in which values of a column may be.

        Args:
            column: the table's path of a leaf column.

        Raises:
            UnreadableError, CorruptFile: the metadata can't be read, or the files can't be listed.
            UnsupportedError: values may be where nothing looks for them, or this format has no such list.
            UsageError: the table was opened at a branch or a snapshot.
        """
        del column
        raise UnsupportedError(f"what {self.format} tables reach can't be listed", path=self.name)

    @abstractmethod
    def filter_requests(self) -> Sequence[FilterRequest]:
        """The filters that the table properties request. Raises UsageError if a property is invalid."""


class Table(TableSnapshot):
    """An open table whose files can be replaced."""

    @abstractmethod
    def check_changes(self, *, new_row_ids: bool = False) -> None:
        """Raise UnsupportedError, with the feature's name, if files of this table can't be replaced without loss.

        Args:
            new_row_ids: the user accepts new row ids (Iceberg v3); `files` then have no lineage.
        """

    @abstractmethod
    def new_path(self, file: DataFile) -> str:
        """A path for the file that replaces `file`, where the table's own writers would put it. Each call returns
        another path."""

    def cautions(self) -> list[str]:
        """Remarks for the report: what users must know before they change this table."""
        return []

    def snapshots(self, files: Sequence[DataFile]) -> int:
        """The number of snapshots or versions that one commit of these files adds to the table's history."""
        return 1 if files else 0

    @abstractmethod
    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        """Replace data files in one atomic commit, and return the new snapshot's id or version.

        Deletes still apply; partitions and sequence numbers stay. In the metadata, only path, size, split offsets and
        what `Replacement.right` corrects differ.

        Raises:
            Conflict: another commit has removed or changed some of the files; nothing was committed.
            UnknownOutcome: it can't be determined whether the commit took place.
            WrongCommit: the commit took place, and the new snapshot isn't as planned.
            WriteError: the commit failed; nothing was committed.
            UnsupportedError: the files can't be replaced without loss; nothing was committed.
        """

    @abstractmethod
    def refresh(self) -> None:
        """Move to the table's newest snapshot or version."""

    @abstractmethod
    def changes(self, after: int | None) -> list[TableChange]:
        """The commits in the history of the snapshot or version that `files` lists, the oldest first.

        Args:
            after: leave out this snapshot or version and what came before it; None if the table had none.

        Raises:
            UnreadableError: the history can't be read.
        """

    @abstractmethod
    def remove_files(self, paths: Collection[str]) -> list[str]:
        """Remove new files that weren't committed, and return the paths of those that couldn't be removed.

        Args:
            paths: as `new_path` returned them. A file that doesn't exist counts as removed.
        """
