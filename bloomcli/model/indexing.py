"""The report of `index build` and `index update`, and the row of a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bloomcli.model.dataset import FileRow
from bloomcli.model.index import IndexedChunk, IndexedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRow(FileRow):
    """A file, and what an index keeps of it. `filters` counts the file's filters that are used, `row_groups_read` the
    chunks whose values are read to make a filter."""

    indexed: IndexedFile | None = None
    """None in a dry run, and in reports."""
    chunks: tuple[IndexedChunk, ...] = ()
    end: bytes = field(default=b"", repr=False)
    """The packed end of the file; empty if the index keeps none."""
    has: tuple[str, ...] = ()
    """The indexed columns that the file has."""

    def reported(self) -> FileRow:
        """The row without the bits."""
        return replace(self, indexed=None, chunks=(), end=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What `index build` or `index update` did."""

    path: str
    """The index."""
    columns: tuple[str, ...]
    fpp: float
    """The mean false-positive rate that the index is built for."""
    update: bool = False
    """An existing index was updated: files that haven't changed weren't read."""
    dry_run: bool = False
    """Nothing was written, and no filter and no column was read."""
    written: bool = False
    """The index was written. It isn't in a dry run, if nothing has changed, and if no file could be indexed."""
    files: int = 0
    """Files in the index; in a dry run, files that would be in it if none fails."""
    added: int = 0
    """Files that were read; in a dry run, files that would be read."""
    kept: int = 0
    """Files of the old index that haven't changed."""
    dropped: int = 0
    """Files of the old index that the new one doesn't have: the sum of the following three. 0 if no index was
    written, except in a dry run."""
    dropped_gone: int = 0
    """Dropped files that the paths name, and that don't exist any more."""
    dropped_unnamed: int = 0
    """Dropped files that the paths don't name. They may still exist."""
    dropped_failed: int = 0
    """Dropped files that failed now, or that can't be indexed any more."""
    kept_unseen: int = 0
    """Files of the old index that weren't found and stay in it, because some of the paths have no files or can't be
    listed (`paths_unseen`). They aren't among `kept`."""
    paths_unseen: tuple[str, ...] = ()
    skipped: int = 0
    """Files that can't be indexed. `find` searches them without the index."""
    failed: int = 0
    row_groups: int = 0
    """Row groups of the files that were read, in ORC stripes."""
    filters: int = 0
    """Filters of these files that were used."""
    columns_read: int = 0
    """Column chunks whose values were read, because no filter of them can be used. ORC files have none."""
    bytes_decoded: int = 0
    """Compressed bytes of these chunks' pages."""
    bytes_before: int | None = None
    """Bytes of the old index."""
    bytes: int | None = None
    """Bytes of the new index."""
    engine: str = "local"
    jobs: int = 1
    seconds: float = 0.0
    requests: int | None = None
    """Requests to object stores, retries included; None if all files and the index are local."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the stores."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the stores."""
    bytes_copied_by_store: int | None = None
    """Bytes that the stores copied from object to object."""
    errors: tuple[FileRow, ...] = ()
    """Files that failed."""
    remarks: tuple[str, ...] = ()
    exit_code: int = 0
    """0, or the exit code of the gravest error."""
