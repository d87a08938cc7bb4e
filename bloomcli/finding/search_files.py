"""The files of a search, and the answers of an index for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bloomcli.finding.job import FileWork, Job, Part, parts_of
from bloomcli.finding.pruning import Pruning
from bloomcli.index.reader import NoAnswer
from bloomcli.model.find import FileFound
from bloomcli.model.schema import ColumnNames
from bloomcli.storage.base import FileEntry


class IndexColumn(NamedTuple):
    """The column to look up in an index."""

    path: str
    """The column's path in files."""
    certain: bool = True
    """Whether all files use this path. If not, each file is opened to check: a table finds columns by field ids."""


def column_of(names: ColumnNames | None, column: str) -> IndexColumn:
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


class Pruned(NamedTuple):
    """A file of a search with the answer of an index."""

    file: FileWork
    """`found` is set if the file needn't be opened."""
    no_answer: NoAnswer | None = None
    """Why the index has no answer for the file."""
    unopened: bool = False
    """Whether the answer is enough, so that the file isn't opened."""


class SearchFiles(NamedTuple):
    """The files to search, and the job."""

    job: Job
    files: Sequence[FileWork]
    listed: Sequence[FileEntry]
    """The entries of the same files, as the store or the table lists them."""
    cores: int = 1
    """Tasks that run at a time."""

    @property
    def indexed(self) -> IndexColumn:
        """The column to look up in an index."""
        return column_of(self.job.options.names, self.job.options.column)

    def pruned(self, pruning: Pruning) -> Iterator[Pruned]:
        """Yield the files with the answers of an index, one at a time: a lookup may send a request."""
        column, maybe = self.indexed, self.job.options.maybe
        for file, item in zip(self.files, self.listed, strict=True):
            answer = NoAnswer.UNKNOWN if file.found is not None else pruning.of(item)
            if isinstance(answer, NoAnswer):
                yield Pruned(file, answer)
            elif not column.certain:
                yield Pruned(file._replace(indexed=answer, indexed_column=column.path))
            elif answer.row_groups and not maybe:
                yield Pruned(file._replace(indexed=answer))
            else:
                possible = tuple(sorted(answer.row_groups))
                found = FileFound(path=file.path, row_groups=answer.total, row_groups_possible=possible)
                yield Pruned(file._replace(found=found), unopened=True)

    def chosen(self, keep: Callable[[FileWork], bool]) -> SearchFiles:
        """Some of the files."""
        pairs = [pair for pair in zip(self.files, self.listed, strict=True) if keep(pair[0])]
        return self._replace(files=[file for file, _ in pairs], listed=[item for _, item in pairs])

    @property
    def parts(self) -> list[Part]:
        """The files split into parts, one for each task."""
        return parts_of(self.files, [item.size for item in self.listed], self.job, self.cores)
