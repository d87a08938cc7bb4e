"""The facts about a table and its commits, as in reports. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The name and format of a table."""

    name: str
    """As the user named it."""
    format: str
    """``iceberg`` or ``delta``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """A commit that replaced data files of a table, or that a dry run would make."""

    version: int | None
    """The new snapshot's id (Iceberg) or the new version (Delta); None in a dry run."""
    files: int
    """Data files that the commit replaced."""
    bytes_before: int
    """Bytes of these files."""
    bytes_after: int
    """Bytes of the new files; in a dry run an upper bound."""
    snapshots: int = 1
    """Number of snapshots or versions that the commit adds to the table's history. In Iceberg several, if equality
    deletes lie between the files."""
