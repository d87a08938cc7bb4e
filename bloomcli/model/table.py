"""What reports say of a table and its commits. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table."""

    name: str
    """As the user named it."""
    format: str
    """``iceberg`` or ``delta``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """A commit that replaced data files of a table, or that a dry run would take."""

    version: int | None
    """The new snapshot's id (Iceberg) or the new version (Delta); None in a dry run."""
    files: int
    """Data files that the commit replaced."""
    bytes_before: int
    """Bytes of these files."""
    bytes_after: int
    """Bytes of the files in their place; in a dry run an upper bound."""
    snapshots: int = 1
    """How many snapshots or versions the commit adds to the table's history. Iceberg takes several where equality
    deletes lie between the files."""
