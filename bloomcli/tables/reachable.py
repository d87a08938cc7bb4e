"""What a table still reaches: all files and metadata in which values of a column may be, and what keeps each of them.

`Table.reachable` lists it, by the table's metadata and the table's folder. Nothing here needs a Spark session.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import ColumnStatistics

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/*|^/+")


class Kind(StrEnum):
    """What a file or an entry of the metadata is."""

    DATA = "data file"
    POSITION_DELETES = "position deletes"
    EQUALITY_DELETES = "equality deletes"
    VECTOR = "deletion vector"
    """It has row numbers, and no values: it isn't searched."""
    CHANGES = "change data"
    OUTSIDE = "file outside the metadata"
    """A file in the table's folder that no metadata name."""
    BOUNDS = "manifest bounds"
    LOG = "log statistics"
    COMMIT = "commit information"


class Keeper(NamedTuple):
    """What keeps a file or an entry."""

    kept: tuple[str, ...]
    """The branches, tags, snapshots or versions that reach it."""
    ends: tuple[str, ...]
    """The statements in SQL that end it, in the order in which they are run."""
    heads: tuple[str, ...] = ()
    """The names of the table, or of its branches, whose newest snapshot has the file: its rows may not be deleted."""


class ReachedFile(NamedTuple):
    """A file with rows."""

    path: str
    size: int
    kind: Kind
    keeper: Keeper


class ReachedBounds(NamedTuple):
    """The least and the greatest value of the column in a data file, in the table's metadata."""

    path: str
    """The metadata's file: a manifest, a commit, a checkpoint."""
    kind: Kind
    data_file: str
    bounds: ColumnStatistics
    keeper: Keeper


class ReachedText(NamedTuple):
    """A text of a commit, such as the condition of a DELETE."""

    path: str
    text: str
    keeper: Keeper


class Reachable(NamedTuple):
    """What a table reaches."""

    location: str
    names: tuple[ColumnNames, ...]
    """The table's columns, once for each column in files that the looked-up name has or had."""
    files: list[ReachedFile]
    bounds: list[ReachedBounds]
    texts: list[ReachedText]
    metadata_files: int
    """Manifests, or files of the log."""
    versions: tuple[int, ...]
    """The ids of the snapshots, or the versions that the log has."""
    refs: tuple[str, ...]
    """The branches and tags."""
    notes: tuple[str, ...]
    """When the statements take effect."""
    not_looked_at: tuple[str, ...]


def without_scheme(path: str) -> str:
    """A path that is the same for all spellings of a file: ``file:/x`` and ``/x``, ``s3a://b/x`` and ``s3://b/x``."""
    return _SCHEME.sub("", path)
