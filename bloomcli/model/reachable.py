"""The report of `find --reachable`: where values still are in a table, or the certificate that they are nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bloomcli.model.find import FileFound
from bloomcli.model.report import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or an entry of the table's metadata that has values."""

    kind: str
    """``data files``, ``position deletes``, ``equality deletes``, ``change data``, ``files outside the metadata``,
    ``bounds in manifests``, ``bounds in the log``, ``default values``, ``names of directories`` or ``texts of
    commits``."""
    path: str
    """The file; the manifest, or the file of the log."""
    values: int = 1
    """Different values of those looked up."""
    rows: int = 0
    """Rows in a file, deleted ones included."""
    live_rows: int = 0
    """Rows that the table, or a branch of it, hasn't deleted."""
    data_file: str | None = None
    """The data file that bounds are about."""
    part: bool = False
    """The bound is the beginning of a value, or a time that is cut: it may be that of another value."""
    kept_by: tuple[str, ...] = ()
    """The branches, tags, snapshots or versions that reach it."""
    ends: tuple[str, ...] = ()
    """The statements in SQL that end it, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """The files of one kind in which the values were looked up."""

    kind: str
    files: int
    by_filter: int = 0
    """Files that filters, statistics or dictionaries rule out, or that don't have the column."""
    by_scan: int = 0
    """Files of which pages were read."""
    without_values: int = 0
    """Deletion vectors: they have only row numbers, and weren't opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The values that a report states to be nowhere."""

    salt: str
    """Random bytes in hexadecimal digits, new for each certificate."""
    value_hashes: tuple[str, ...]
    """SHA-256 of the salt's bytes and the value's text in UTF-8, sorted. Whoever knows a value can check that it was
    looked up. Short values can be guessed by trying all: keep the certificate as you keep personal data."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReachableReport(Rows):
    """What was found in all that a table reaches."""

    rows_in: ClassVar = (Place, "places")

    table: str
    location: str
    """The table's directory."""
    format: str
    column: str
    time: str
    """When the files were listed, in UTC. What is committed later isn't part of the report."""
    bloom: str
    """The version of bloomcli."""
    version: int | None
    """The id of the newest snapshot, or the newest version."""
    versions: tuple[int, ...]
    """The ids of all snapshots, or the versions in the log."""
    refs: tuple[str, ...]
    """The branches and tags."""
    values: int
    """Different values that were looked up."""
    values_found: int
    """Those that some file or some entry of the metadata has."""
    looked_at: tuple[LookedAt, ...]
    metadata_files: int
    """Manifests, or files of the log."""
    not_looked_at: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    statements: tuple[str, ...] = ()
    """The statements of all places, each once, in the order in which they are run."""
    notes: tuple[str, ...] = ()
    """When the statements take effect."""
    errors: tuple[FileFound, ...] = ()
    """Files that couldn't be searched."""
    certificate: Certificate | None = None
    """Set if everything else could be looked at, and nothing was found."""
    exit_code: int = 1
    """0: nothing is left; 1: something is; else the exit code of the gravest error."""
