"""The reports of `find`: the rows found, and the bytes read for them; with `--reachable`, where values still are in a
table, or the certificate that they are nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bloomcli.model.report import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFound:
    """What `find` did with one file."""

    path: str
    format: str | None = None
    row_groups: int = 0
    row_groups_possible: tuple[int, ...] = ()
    """Row groups that filters, statistics and dictionaries don't rule out, by their numbers."""
    stripes_possible: tuple[int, ...] = ()
    """ORC: the stripe of each of these row groups, whose numbers then count within the stripe."""
    row_groups_read: int = 0
    """Row groups in which pages of the column were read."""
    pages_read: int = 0
    """Data pages of the column that were decoded."""
    pages_left_out: int = 0
    """Data pages in these row groups that the page index rules out."""
    rows: int = 0
    """Rows found, up to the limit."""
    bytes_read: int = 0
    """All bytes read: metadata, filters, pages, records."""
    scan_bytes: int = 0
    """Compressed bytes of the column and of the selected columns: what a reader without filters and statistics
    reads."""
    other_types: int = 0
    """Row groups that have values of the column's path in a VARIANT which weren't searched, as they have other types
    than the column."""
    unverified: int = 0
    """1: the file's footer is signed, and its key isn't given."""
    reason: str | None = None
    """Why the file was skipped."""
    error: str | None = None
    hint: str | None = None
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFound:
    """The rows of one value."""

    value: str
    rows: int = 0
    """Rows that have it; 0: it wasn't found."""
    files: int = 0
    """Files with such rows."""
    paths: tuple[str, ...] = ()
    """These files, at most the first 10."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FindReport(Rows):
    """What `find` did."""

    rows_in: ClassVar = (ValueFound, "by_value")

    column: str
    values: int
    """Values that were looked up, with repetitions."""
    values_found: int | None = None
    """Different values that rows have; None if no rows were read."""
    values_missing: int | None = None
    """Different values that no row of the searched files has; None if not all rows were looked for."""
    missing: tuple[str, ...] = ()
    """These values, at most the first 1,000."""
    by_value: tuple[ValueFound, ...] = ()
    """The rows and files of each different value, as they were given; of up to 1,000 values only. With a limit, only
    those that were found."""
    files: int = 0
    """Files that were searched."""
    files_found: int = 0
    """Files with a row; with `maybe`, files that may have one."""
    skipped: int = 0
    """Files of other kinds in directories, and directories without files."""
    failed: int = 0
    rows: int = 0
    row_groups: int = 0
    row_groups_possible: int = 0
    row_groups_read: int = 0
    pages_read: int = 0
    pages_left_out: int = 0
    bytes_read: int = 0
    scan_bytes: int = 0
    seconds: float = 0.0
    requests: int | None = None
    """Requests to object stores, retries and listings included; None if all files are local."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the stores."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the stores: always 0, or None."""
    bytes_copied_by_store: int | None = None
    """Bytes that the stores copied from object to object: always 0, or None."""
    index: str | None = None
    """The index that was used."""
    files_unopened: int = 0
    """Files that weren't opened, because the index was enough."""
    files_not_indexed: int = 0
    """Files that the index doesn't have, or not with the column. They were searched without it."""
    files_changed: int = 0
    """Files that changed since they were indexed. They were searched without the index."""
    limited: bool = False
    """The limit ended the search."""
    other_types: int = 0
    """Row groups that have values of the column's path in a VARIANT which weren't searched, as they have other types
    than the column."""
    unverified: int = 0
    """Files whose footer is signed, and its key isn't given."""
    errors: tuple[FileFound, ...] = ()
    """Files that failed."""
    exit_code: int = 1
    """0: found, 1: nothing found, 4: nothing found, but `other_types`; else the exit code of the gravest error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or an entry of the table's metadata that has values."""

    kind: str
    """``data files``, ``position deletes``, ``equality deletes``, ``change data``, ``statistics of partitions``,
    ``files outside the metadata``, ``bounds in manifests``, ``bounds in the log``, ``default values``, ``names of
    directories`` or ``texts of commits``."""
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
    """The values that some file or some entry of the metadata has."""
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
