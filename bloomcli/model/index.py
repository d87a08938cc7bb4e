"""The content of an index of filters, and the reports of `index build`, `index update` and `index inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, NamedTuple

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import Column
from bloomcli.model.report import Report, Rows


class ColumnType(NamedTuple):
    """The parts of a column's type that decide which bytes are hashed for a value."""

    physical: str
    """Parquet's name: ``INT64``, ``BYTE_ARRAY``, ..."""
    logical: str | None = None
    """As `Column.logical`: ``STRING``, ``DECIMAL(9,2)``; None if the column has none."""
    type_length: int | None = None
    """Width in bytes of a fixed-length type."""
    scale: int = 0
    precision: int = 0
    bit_width: int = 0
    signed: bool = True
    unit: str | None = None
    utc: bool | None = None

    @classmethod
    def of(cls, column: Column) -> ColumnType:
        """The type of a file's column."""
        return cls(*(getattr(column, name) for name in cls._fields))

    def column(self, path: str) -> Column:
        """A column of this type, for parsing values. Its `index` is -1: it belongs to no file."""
        return Column(path=path, index=-1, **self._asdict())

    def __str__(self) -> str:
        """INT64, or INT64 TIMESTAMP(MICROS,UTC)."""
        return self.physical if self.logical is None else f"{self.physical} {self.logical}"


class IndexedColumn(NamedTuple):
    """A column in one of the types that it has in files."""

    path: str
    """Dotted leaf path."""
    type: ColumnType


class IndexedFile(NamedTuple):
    """A data file in an index, with its size, time and tag, by which a change is noticed."""

    path: str
    """The path in the spelling of its store."""
    size: int
    """Bytes."""
    mtime_ns: int = 0
    """Modification time in nanoseconds since 1970; 0 where a tag identifies the content."""
    tag: str = ""
    """ETag or generation; empty if the store has none."""
    rows: tuple[int, ...] = ()
    """Rows of each row group, in the file's order."""


class ChunkState(StrEnum):
    """What an index has for a chunk."""

    FILTER = "filter"
    """The bits of a filter, folded or replicated to the common size."""
    ALWAYS = "always"
    """The chunk may have every value: it has no filter that can be used."""
    NEVER = "never"
    """The chunk has no values, or only nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A column of one row group."""

    row_group: int
    """Its number in the file, from 0."""
    column: IndexedColumn
    state: ChunkState
    bitset: bytes | bytearray | None = field(default=None, repr=False)
    """The bits of a split-block filter of any number of blocks, with Parquet's hash and block selection. Set if, and
    only if, the state is `ChunkState.FILTER`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFacts:
    """A blob of the index."""

    type: str
    offset: int
    length: int
    """Bytes in the file, after compression."""
    codec: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumnFacts:
    """A column and type in an index."""

    column: str
    physical: str
    logical: str | None
    row_groups: int
    """Row groups that have the column in this type."""
    filters: int
    """Row groups with the bits of a filter."""
    always: int
    """Row groups that may have every value."""
    never: int
    """Row groups without values."""
    free_slots: int
    """Slots of dropped files, which an update uses again."""
    filter_bytes: int
    """The common size of the filters."""
    fpp: float | None
    """The mean measured false-positive rate of the filters at that size; None without filters."""
    bytes: int
    """Bytes of the bits in the index."""
    lookup_bytes: int
    """Bytes that are read for one value on a local disk."""
    slab_bytes: int
    """Bytes of a block's rows: the most that one request for a value reads from a store."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexFacts(Rows):
    """What `index inspect` reports."""

    rows_in: ClassVar = (IndexedColumnFacts, "columns")

    path: str
    bytes: int
    created_by: str
    fpp: float
    """The false-positive rate that the index was built for."""
    files: int
    row_groups: int
    rows: int
    data_bytes: int
    """Bytes of the indexed files."""
    columns: Sequence[IndexedColumnFacts]
    blobs: Sequence[BlobFacts]


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexReport(Report):
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
