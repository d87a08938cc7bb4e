"""The files of a search, the job that all of them share, and the parts of a search on executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.commands.options import FindOptions
from bloomcli.datasets.packing import parts_for
from bloomcli.datasets.record_shape import Constant, Shape
from bloomcli.errors import BloomError
from bloomcli.hints import completed
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.storage.base import FileEntry

_PART_BYTES: Final = 1 << 30
"""Minimum size of a part. Parts are this large because a task reads little of most files."""


class DeletedRows(Protocol):
    """The rows that a table has deleted from one of its data files."""

    def kept(self, rows: pa.Int64Array, record: pa.StructArray) -> pa.BooleanArray:
        """Whether the table still has each row.

        Args:
            rows: numbers of rows in the file.
            record: the same rows, with the columns of `Job.read`.
        """


class FileWork(NamedTuple):
    """A file to search."""

    path: str
    walked: bool = False
    deleted: DeletedRows | None = None
    constants: Mapping[str, Constant] | None = None
    """Partition values of the file, by the names of the partition columns, which the file may not have."""
    found: FileFound | None = None
    """The result, if it is known without opening the file."""
    indexed: IndexedRowGroups | None = None
    """The row groups that may have a value, by an index; None: all."""
    indexed_column: str | None = None
    """The index's column, if the file has to be opened to check that it is the table's column; else None."""


def files_of(listed: Sequence[FileEntry]) -> list[FileWork]:
    """The files of a listing; `found` is set for those that can't be searched, or are left out."""
    files = []
    for item in listed:
        found = None if item.problem is None else failed(item.path, item.problem)
        if item.skip_reason is not None:
            found = FileFound(path=item.path, reason=item.skip_reason)
        files.append(FileWork(item.path, walked=item.walked, found=found))
    return files


def failed(path: str, error: BloomError) -> FileFound:
    """The result of a file that failed."""
    return FileFound(
        path=shown(path), error=error.message, hint=completed(error.hint, path), exit_code=error.exit_code
    )


@dataclass(frozen=True, slots=True)
class Job:
    """The options of a search that all files share."""

    options: FindOptions
    shape: Shape | None = None
    """The columns of `record`; None: the file's own columns."""
    read: Shape | None = None
    """These columns, and those that the table's deletes need."""
    of_table: bool = False
    why_not_lacking: str | None = None
    """Why a file without the searched column can't be searched; None where the column is null in such files."""
    typed: bool = False
    """`value` has the type of the frame's values; else it is text."""


Part = tuple[tuple[FileWork, ...], Job]
"""The files of a task, and the job."""


def parts_of(files: Sequence[FileWork], sizes: Sequence[int], job: Job, cores: int) -> list[Part]:
    """Split files into parts of similar size, in their order.

    Args:
        files: the files.
        sizes: the bytes of each file; negative where unknown.
        job: the job of all parts.
        cores: tasks that run at a time.
    """
    if not files:
        return []
    items = list(zip(files, sizes, strict=True))
    count = parts_for(items, itemgetter(1), cores, _PART_BYTES)
    total = sum(max(size, 0) + 1 for size in sizes)
    parts: list[list[FileWork]] = [[] for _ in range(count)]
    size_before = 0
    for file, size in items:
        parts[min(size_before * count // total, count - 1)].append(file)
        size_before += max(size, 0) + 1
    return [(tuple(part), job) for part in parts if part]
