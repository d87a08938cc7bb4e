"""`find` in files that are listed together with what a table says about them; and on a table without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from bloomcli.commands.find import IndexedRowGroups
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.concurrency.threads import Stop, Threads
from bloomcli.datasets.record_shape import struct_of
from bloomcli.finding.filter_lookups import FileToSearch
from bloomcli.finding.lake import FileResult, Search
from bloomcli.finding.of_table import SearchFiles, of_snapshot
from bloomcli.finding.pruning import Pruning
from bloomcli.finding.spool import Spool
from bloomcli.finding.values import PIECE_VALUES, Blocks, packed
from bloomcli.finding.work import search_file
from bloomcli.formats.filter_lookup import FilterAnswer
from bloomcli.index.reader import NoAnswer
from bloomcli.model.find import FindReport
from bloomcli.model.paths import shown
from bloomcli.storage.base import FileEntry
from bloomcli.storage.traffic import Meter, counted_by
from bloomcli.tables.base import TableSnapshot


class ListedSearch(Search):
    """The base of searches of files that are listed by Spark, or by a table.

    Args:
        values: the values to find.
        options: checked.
    """

    _found: SearchFiles

    def __init__(self, values: Values, options: FindOptions) -> None:
        self._options = options
        self._values = self.checked_values(values)
        self._no_answers: dict[str, NoAnswer] = {}
        self._meter = Meter()
        self._started = time.perf_counter()

    def _list(self, found: SearchFiles, index: str | None) -> None:
        """Take the files to search, without those that an index rules out."""
        self._found = found
        self._index = None if index is None else Pruning(index, self._found.indexed.path, self._values)
        self._begin(FindReport(column=self._options.column, values=self._values.count, index=index and shown(index)))
        if self._index is not None:
            self._found, result = self._found.pruned(self._index)
            self._no_answers = result.no_answers
            self._add(files_unopened=result.unopened)

    def _files_in_all(self) -> int:
        return len(self._found.files)

    def record_type(self) -> pa.StructType | None:
        """The type of the table's records, or of the records of the first file that can be searched here."""
        shape = self._found.job.shape
        return super().record_type() if shape is None else struct_of(shape)

    def _searched_files(self) -> Iterator[tuple[str, FindOptions]]:
        return ((file.path, self._found.job.options) for file in self._found.files)

    def _blocks(self) -> list[bytes]:
        """The values as `finding.values.Blocks` takes them."""
        texts = self._values.texts
        return [packed(texts[at : at + PIECE_VALUES]) for at in range(0, len(texts), PIECE_VALUES)]


class SnapshotSearch(ListedSearch):
    """The search of a table's snapshot by threads of this process, without the rows that the table has deleted.

    Args:
        table: the table.
        where: a condition in SQL that leaves files out.
        values, options, jobs, index: as for `Search`.

    Raises: as `Search` and `of_snapshot`.
    """

    def __init__(
        self,
        table: TableSnapshot,
        where: str | None,
        values: Values,
        options: FindOptions,
        jobs: int | None = None,
        index: str | None = None,
    ) -> None:
        super().__init__(values, options.checked())
        with counted_by(self._meter):
            self._list(of_snapshot(table, where, self._options, cores=1, typed=False), index)
        self._listed = self._found.listed
        self._jobs = jobs
        self._work_of = {file.path: file for file in self._found.files}
        self._all_blocks = Blocks(self._blocks())
        if self._all_blocks.only is None:  # one temporary file for all
            self._jobs = 1

    def _each(self) -> Iterator[FileResult | FilterAnswer]:
        try:
            yield from super()._each()
        finally:
            self._all_blocks.close()

    def _pieces(
        self, threads: Threads, jobs: int, stop: Stop, *, remote: bool
    ) -> Iterator[FileResult | FilterAnswer | FileToSearch]:
        del threads, jobs, stop, remote
        return map(FileToSearch, self._listed)

    def _one(
        self,
        item: FileEntry,
        stop: Stop,
        indexed: IndexedRowGroups | None = None,
        answer: FilterAnswer | None = None,
    ) -> FileResult:
        del indexed, answer
        spool = Spool()
        found = search_file(self._found.job, self._work_of[item.path], self._all_blocks, spool, stop=stop)
        return FileResult(found, spool.batches(), self._no_answers.get(item.path))
