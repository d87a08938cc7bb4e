"""What a table format supplies: the files of a snapshot, how they name columns, and the commit of replacements.

    open_table -> Table.files -> engine: a new file for each old one -> Table.commit -> Table.refresh

Every table is one of the user's Spark session: its catalog, its credentials, and the table format's own transaction.
Nothing here writes a table's metadata itself. What a table keeps of its files on the driver (`DataFile.record`) isn't
sent to executors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.model.lineage import RowLineage
from bloomcli.model.names import ColumnNames
from bloomcli.named_tuple import NamedTuple
from bloomcli.tables.deleted_rows import TableRows


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file of a snapshot."""

    path: str
    """The full path or URI as Hadoop spells it, not encoded."""
    size: int
    """Bytes, as the table's metadata have it."""
    format: str
    """``parquet``, ``orc``, or what else the table holds, such as ``avro``."""
    partition: str = ""
    """Such as ``day=2026-11-01/region=eu``; empty in an unpartitioned table."""
    lineage: RowLineage | None = None
    """What the table's metadata say of the rows' numbers, where a new file keeps them only by columns of its own."""
    record: Any = field(default=None, repr=False, compare=False)
    """What the table needs of the file to replace it."""


class Replacement(NamedTuple):
    """A data file, and the new file that takes its place: the same rows in the same order, with other filters."""

    old: DataFile
    path: str
    """Of the new file, as `Table.new_path` gave it."""
    size: int
    """Bytes of the new file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRequest:
    """A filter that the table's properties ask for."""

    column: str
    """The table's path of a leaf column. The table may not have it any more: properties outlive columns."""
    format: str | None = None
    """The format of the files that the property is about, as in `DataFile`; None for all."""
    fpp: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """What the table's history says of a commit of bloom's."""

    run: str
    """A UUID of the run: whether a commit whose answer was lost has taken place is seen by it."""
    batch: int
    """Number of the commit in its run, from 1 on."""
    command: str
    """``add``, ``remove`` or ``fold``."""
    columns: tuple[str, ...] = ()
    """The table's paths of the columns whose filters changed; empty for all."""


class Conflict(BloomError):
    """Another commit came between: nothing was committed, and `paths` can't be replaced as planned."""

    exit_code = 3

    def __init__(self, reason: str, *, path: str | None = None, paths: Collection[str] = ()) -> None:
        super().__init__(reason, path=path)
        self.paths = frozenset(paths)
        """The data files concerned, as the table spells them; empty where it isn't known which."""


class UnknownOutcome(BloomError):
    """Whether a commit has taken place can't be found out: the new files have to stay."""

    exit_code = 3


class Table(ABC):
    """An open table at one snapshot or version.

    Attributes:
        name: as the user named it.
        format: ``iceberg`` or ``delta``.
        version: the snapshot's id, or the version, that `files` lists; None for a table without any.
    """

    name: str
    format: str

    @property
    @abstractmethod
    def version(self) -> int | None:
        """The snapshot's id, or the version, that `files` lists."""

    @abstractmethod
    def names(self) -> ColumnNames:
        """The leaf columns of the snapshot's schema, and how files name them."""

    @abstractmethod
    def files(self, where: str | None = None) -> list[DataFile]:
        """The data files of the snapshot, in a fixed order. The rows that deletes hide are in them.

        Args:
            where: a condition in the table's SQL: files in which no row can meet it are left out, as far as
                partitions and statistics tell.

        Raises:
            UsageError: a condition that the table can't resolve.
        """

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """What a search needs to give the snapshot's rows: columns and types, and the deletes of files.

        Args:
            files: as `files` gave them.

        Raises:
            UnsupportedError: deletes that can't be read; or the format doesn't say what is deleted.
        """
        del files
        raise UnsupportedError(f"rows of {self.format} tables can't be found", path=self.name)

    @abstractmethod
    def filter_requests(self) -> Sequence[FilterRequest]:
        """The filters that the table properties ask for. Raises UsageError where the format has no such ones."""

    @abstractmethod
    def check_changes(self, *, new_row_ids: bool = False) -> None:
        """Raise UnsupportedError if files of this table can't be replaced without loss, and name the feature.

        Args:
            new_row_ids: the user accepts that rows get new ids (Iceberg v3); `files` have no lineage then.
        """

    @abstractmethod
    def new_path(self, file: DataFile) -> str:
        """A path for the file that takes the place of `file`, where the table's own writers would put it. No two
        calls give the same path."""

    def cautions(self) -> list[str]:
        """What users have to know before this table is changed, as remarks of the report."""
        return []

    def snapshots(self, files: Sequence[DataFile]) -> int:
        """How many snapshots or versions one commit that replaces these files adds to the table's history."""
        return 1 if files else 0

    @abstractmethod
    def commit(self, replacements: Sequence[Replacement], info: CommitInfo) -> int:
        """Replace data files in one atomic commit, and give the new snapshot's id or version.

        Deletes go on to apply, and metrics, partitions and sequence numbers stay. Of the new files nothing but size
        and split offsets differs.

        Raises:
            Conflict: another commit has removed or changed some of the files; nothing was committed.
            Unknown: it can't be found out whether the commit has taken place.
            WriteError: the commit failed; nothing was committed.
        """

    @abstractmethod
    def refresh(self) -> None:
        """Move on to the table's newest snapshot or version."""

    @abstractmethod
    def remove_files(self, paths: Collection[str]) -> list[str]:
        """Remove new files that weren't committed; gives the paths of those that couldn't be removed.

        Args:
            paths: as `new_path` gave them. A file that isn't there counts as removed.
        """
