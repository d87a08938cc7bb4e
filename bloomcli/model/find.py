"""The report of `find`: the rows found, and the bytes read for them."""

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
