"""The files of a search with what is known of each, the job that they share, and their parts for executors.

Files of tables are refused unless the table is named: its metadata say which rows are deleted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.commands.options import FindOptions
from bloomcli.datasets.packing import parts_for
from bloomcli.datasets.record_shape import Constant, Shape
from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.finding.pruning import Pruning
from bloomcli.formats.filter_lookup import FilterAnswer
from bloomcli.hints import completed
from bloomcli.index.reader import NoAnswer
from bloomcli.model.find import FileFound
from bloomcli.model.paths import shown
from bloomcli.model.schema import ColumnNames
from bloomcli.storage.base import FileEntry, ManagedTable
from bloomcli.storage.listing import expand, no_files
from bloomcli.storage.managed_tables import is_metadata, tables_of

if TYPE_CHECKING:
    from bloomcli.tables.deleted_rows import DeletedRows

_PART_BYTES: Final = 1 << 30
"""Minimum size of a part. Parts are this large because a task reads little of most files."""


class FileWork(NamedTuple):
    """A file to search."""

    path: str
    walked: bool = False
    deleted: DeletedRows | None = None
    """The rows that a table has deleted from the file."""
    constants: Mapping[str, Constant] | None = None
    """Partition values of the file, by the names of the partition columns, which the file may not have."""
    found: FileFound | None = None
    """The result, if it is known without opening the file."""
    indexed: IndexedRowGroups | None = None
    """The row groups that may have a value, by an index; all if None."""
    indexed_column: str | None = None
    """The index's column, if the file has to be opened to check that it is the table's column; else None."""
    no_answer: NoAnswer | None = None
    """Why an index has no answer for the file; None if it has one, and without an index."""
    answer: FilterAnswer | None = None
    """The answer of the file's filters; None before they are read."""


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
    """The columns of `record`; the file's own columns if None."""
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


class IndexColumn(NamedTuple):
    """The column to look up in an index."""

    path: str
    """The column's path in files."""
    certain: bool = True
    """Whether all files use this path. If not, each file is opened to check: a table finds columns by field ids."""


def _index_column(names: ColumnNames | None, column: str) -> IndexColumn:
    """The column to look up in an index, for a column of a table or, if `names` is None, of files."""
    if names is None:
        return IndexColumn(column)
    for table_column in names.columns:
        if table_column.path == column:
            paths = table_column.physical or (column,)
            return IndexColumn(
                paths[0] if table_column.field_id is None else column,
                table_column.field_id is None and len(paths) == 1,
            )
    return IndexColumn(column, certain=False)


class SearchFiles(NamedTuple):
    """The files to search, and the job."""

    job: Job
    files: Sequence[FileWork]
    listed: Sequence[FileEntry]
    """The entries of the same files, as the store or the table lists them."""
    cores: int = 1
    """Tasks that run at a time."""

    @classmethod
    def of(cls, options: FindOptions, listed: Sequence[FileEntry]) -> SearchFiles:
        """The files of a listing. The result of those that can't be searched, or are left out, is known."""
        files = []
        for item in listed:
            result = None if item.problem is None else failed(item.path, item.problem)
            if item.skip_reason is not None:
                result = FileFound(path=item.path, reason=item.skip_reason)
            files.append(FileWork(item.path, walked=item.walked, found=result))
        return cls(Job(options), files, listed)

    @property
    def indexed(self) -> IndexColumn:
        """The column to look up in an index."""
        return _index_column(self.job.options.names, self.job.options.column)

    def pruned(self, pruning: Pruning) -> Iterator[FileWork]:
        """Yield the files with the answers of an index, one at a time: a lookup may send a request. Those for which
        the answer is enough have a result."""
        column, maybe = self.indexed, self.job.options.maybe
        for file, item in zip(self.files, self.listed, strict=True):
            answer = NoAnswer.UNKNOWN if file.found is not None else pruning.of(item)
            if isinstance(answer, NoAnswer):
                yield file._replace(no_answer=answer)
            elif not column.certain:
                yield file._replace(indexed=answer, indexed_column=column.path)
            elif answer.row_groups and not maybe:
                yield file._replace(indexed=answer)
            else:
                possible = tuple(sorted(answer.row_groups))
                result = FileFound(path=file.path, row_groups=answer.total, row_groups_possible=possible)
                yield file._replace(found=result)

    def chosen(self, keep: Callable[[FileWork], bool]) -> SearchFiles:
        """Some of the files."""
        pairs = [pair for pair in zip(self.files, self.listed, strict=True) if keep(pair[0])]
        return self._replace(files=[file for file, _ in pairs], listed=[item for _, item in pairs])

    @property
    def parts(self) -> list[Part]:
        """The files split into parts, one for each task."""
        return parts_of(self.files, [item.size for item in self.listed], self.job, self.cores)


def listed_files(paths: Sequence[str], options: FindOptions) -> Sequence[FileEntry]:
    """The files that paths name.

    Raises:
        UsageError: there are no files; or some belong to a table, and the options don't say `as_files`.
        UnreadableError: a directory can't be listed, or it isn't known whether its files belong to a table.
    """
    if options.as_files:
        listed = expand(paths)
    else:
        listed_tables: set[ManagedTable] = set()
        listed = expand(paths, listed_tables)
        try:
            tables = tables_of(paths, listed, listed_tables)
        except UnreadableError as error:
            error.hint = "check who may read it; --as-files searches the files all the same"
            raise
        if tables:
            raise _table_error(tables[0], len(tables) - 1, listed, options)
    if not listed:
        raise no_files(paths)
    return listed


def _table_error(table: ManagedTable, others: int, listed: Sequence[FileEntry], options: FindOptions) -> UsageError:
    if listed and all(is_metadata(item.path) for item in listed):
        return UsageError(
            f"the files are metadata of {table.kind.value}, and hold none of its rows",
            path=table.path,
            hint="--as-files searches them as plain files",
        )
    others_too = f" (and {others:,} more)" if others else ""
    by_table = ""
    if table.name_to_read is not None:
        column = shlex.quote(options.column)
        by_table = (
            f"bloom find VALUE -c {column} --table {shlex.quote(table.name_to_read)} searches the table's rows; "
        )
    return UsageError(
        f"it is {table.kind.value}{others_too}: its files may have rows that the table has replaced or deleted",
        path=table.path,
        hint=f"{by_table}--as-files searches all files below it, with these rows",
    )
