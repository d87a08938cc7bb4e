"""What a table still reaches: the files and metadata in which values of a column may be, and what keeps each of them.

`Table.reachable` lists it. Nothing here needs a Spark session.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import ColumnStatistics, PartitionValue

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/*|^/+")


class Kind(StrEnum):
    """What a file or an entry of the metadata is."""

    DATA = "data files"
    POSITION_DELETES = "position deletes"
    EQUALITY_DELETES = "equality deletes"
    VECTORS = "deletion vectors"
    """They have row numbers, and no values: they aren't searched."""
    CHANGES = "change data"
    PARTITIONS = "statistics of partitions"
    OUTSIDE = "files outside the metadata"
    MANIFEST = "bounds in manifests"
    DEFAULT = "default values"
    """Of a column that files from before it was added don't have."""
    LOG = "bounds in the log"
    DIRECTORY = "names of directories"
    COMMIT = "texts of commits"


class Keeper(NamedTuple):
    """What keeps a file or an entry."""

    kept: tuple[str, ...]
    """The branches, tags, snapshots or versions that reach it."""
    ends: tuple[str, ...]
    """The statements in SQL that end it, in the order in which they are run."""
    heads: tuple[str, ...] = ()
    """The names of the table, or of its branches, whose newest snapshot has the file: its rows may not be deleted."""


class ReachedFile(NamedTuple):
    """A file with rows. `size` is -1 if it isn't known."""

    path: str
    size: int
    kind: Kind
    keeper: Keeper


class ReachedBounds(NamedTuple):
    """The least and the greatest value of the column in a data file, by a file of the metadata."""

    path: str
    kind: Kind
    data_file: str
    bounds: ColumnStatistics
    keeper: Keeper
    whole: bool = False
    """They are a value, not the beginning of one."""


class ReachedText(NamedTuple):
    """A text of a commit, such as the condition of a DELETE."""

    path: str
    text: str
    keeper: Keeper


class Reachable(NamedTuple):
    """What a table reaches. The other fields are those of `ReachableReport`."""

    location: str
    names: tuple[ColumnNames, ...]
    """The table's columns, once for each column in files that the looked-up name has or had."""
    files: list[ReachedFile]
    bounds: list[ReachedBounds]
    texts: list[ReachedText]
    metadata_files: int
    versions: tuple[int, ...]
    refs: tuple[str, ...] = ()
    of_partitions: tuple[ColumnNames, ...] = ()
    """The column in statistics of partitions, which aren't searched otherwise."""
    notes: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    not_opened: tuple[str, ...] = ()
    """Files in the table's folders of kinds that bloom doesn't open."""


def without_scheme(path: str) -> str:
    """A path that is the same for all spellings of a file: ``file:/x`` and ``/x``, ``s3a://b/x`` and ``s3://b/x``."""
    return _SCHEME.sub("", path)


def exactly(value: PartitionValue) -> ColumnStatistics:
    """The value of a partition as the bounds of a file's rows."""
    return ColumnStatistics(path=value.path, kind=value.kind, low=value.value, high=value.value)
