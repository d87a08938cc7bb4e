"""Finds values in many files, local or in stores: several files at a time, results in the files' order."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.commands.partitions import with_partitions
from bloomcli.concurrency.threads import Future, Stop, Threads
from bloomcli.datasets.record_shape import struct_of
from bloomcli.datasets.value_blocks import Blocks
from bloomcli.datasets.workers import default_jobs
from bloomcli.errors import BloomError, UnsupportedError, UsageError
from bloomcli.finding.filter_lookups import files_to_search
from bloomcli.finding.found_values import FoundValues
from bloomcli.finding.pruning import Pruning
from bloomcli.finding.search_files import FileWork, SearchFiles, listed_files
from bloomcli.finding.spool import Spool
from bloomcli.finding.work import search_file
from bloomcli.formats.filter_lookup import FilterAnswer
from bloomcli.index.reader import NoAnswer
from bloomcli.model.dataset import gravest
from bloomcli.model.file import Column
from bloomcli.model.find import FileFound, FindReport
from bloomcli.model.paths import shown
from bloomcli.storage.lookups import shared
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of
from bloomcli.storage.traffic import Meter, counted_by, current, with_traffic
from bloomcli.values.literals import how_looked_up

T = TypeVar("T")


class FileResult(NamedTuple):
    """The result of one file."""

    found: FileFound
    batches: Iterator[pa.RecordBatch]
    """The rows, with the columns `bloomcli.commands.find.COLUMNS` and `ALSO`; those of `Search.files` with `COLUMNS`
    and the values as text. Read them before the next file."""
    file: FileWork
    """The file, with what was known before its search."""


_UNCLEAR: Final = tuple(Column(path="", index=0, physical="BYTE_ARRAY", logical=kind) for kind in (None, "STRING"))
"""Columns in which a value can mean several things."""
_REMARKS: Final = 3
"""Maximum number of values of which the report says what was looked up."""


class Search:
    """The search of many files. Iterate over `files` once; `report` is complete at its end.

    Args:
        where: files, directories, patterns and URIs; or a function that returns the files for checked options.
        values: the values to find.
        options: the options of `find`.
        jobs: files at a time; if None, the number of cores, and more for files in stores.
        index: an index of these files, in which the values are looked up first.

    Raises:
        UsageError: contradicting options, no values, no files, files of a table, an index without the column.
        UnreadableError: a directory can't be listed, the index can't be read.
        CorruptFile: the index is damaged.
    """

    on_files: Callable[[int, int, int], None] | None = None
    """Progress callback: files searched so far, all files, and rows found so far (files found, where no rows are
    read)."""

    def __init__(
        self,
        where: Sequence[str] | Callable[[FindOptions], SearchFiles],
        values: Values,
        options: FindOptions,
        jobs: int | None = None,
        index: str | None = None,
    ) -> None:
        self._options = options.checked()
        self._values = self.checked_values(values)
        self._jobs = jobs
        self._meter = Meter()
        self._started = time.perf_counter()
        with self._counted():
            self._search_files = where(self._options) if callable(where) else _files_of(where, self._options)
            column = self._search_files.indexed
            # with the end of a file, it is opened without a request
            ends = not self._options.maybe or not column.certain
            self._index = None if index is None else Pruning(index, column.path, values, ends=ends)
        self._report = FindReport(column=options.column, values=values.count, index=index and shown(index))
        self._sums: defaultdict[str, float] = defaultdict(int)
        self._errors: list[FileFound] = []
        self._code = self._report.exit_code

    def _counted(self) -> AbstractContextManager[None]:
        """Count the requests of a block, for the report."""
        return counted_by(self._meter)

    @property
    def report(self) -> FindReport:
        """The totals so far."""
        sums = {name: getattr(self._report, name) + number for name, number in self._sums.items()}
        code = UnsupportedError.exit_code if self._code == 1 and sums.get("other_types") else self._code
        return replace(self._report, **sums, errors=tuple(self._errors), exit_code=code)

    @staticmethod
    def checked_values(values: Values) -> Values:
        """Return the values. Raises UsageError if there are none."""
        if not values.count:
            raise UsageError("no values to find", hint="name one after the path, or a file with --values-from")
        return values

    def files(self) -> Iterator[FileResult]:
        """Yield the results of the files that filters don't rule out, in order. The limit ends the search."""
        remaining = self._options.limit
        values = FoundValues(self._values)
        for result in self._each():
            if not isinstance(result, FileResult):
                self._count(find.without_rows("", result, self._options), files=result.files)
                self._report_progress()
                continue
            file_found, batches, file = result
            if remaining is not None and file_found.rows > remaining:
                file_found, batches = _first_rows(file_found, batches, remaining)
            self._count(file_found)
            if self._index is not None and file.no_answer is None:
                self._add(files_unopened=file.found is not None)  # not for files after the one that ends the search
            elif file_found.reason is None:
                unknown, changed = NoAnswer.UNKNOWN, NoAnswer.CHANGED
                self._add(files_not_indexed=file.no_answer is unknown, files_changed=file.no_answer is changed)
            self._report_progress()
            batches = values.counted(file_found.path, batches)
            yield FileResult(file_found, batches, file)
            for _ in batches:  # those that the caller didn't take
                pass
            if remaining is not None:
                remaining -= file_found.rows
                if remaining == 0:
                    self._report = replace(self._report, limited=True)
                    break
        if self._index is not None:
            self._add(bytes_read=self._index.bytes_read)
        if self._options.rows:
            self._report = replace(self._report, **values.report(complete=not self._report.limited))
        self._add(seconds=time.perf_counter() - self._started)
        current().add(self._meter.total)
        self._report = with_traffic(self._report, self._meter.total)

    def _report_progress(self) -> None:
        """Call `on_files`."""
        if self.on_files is not None:
            sums = self._sums
            done = sums["files"] + sums["failed"] + sums["skipped"]
            matches = sums["rows" if self._options.rows else "files_found"]
            self.on_files(int(done), len(self._search_files.files), int(matches))

    def record_type(self) -> pa.StructType | None:
        """The type of the records: the table's, or that of the first file that can be searched; None if none can."""
        if self._search_files.job.shape is not None:
            return struct_of(self._search_files.job.shape)
        with self._counted():
            type_and_bytes = self._of_first_file(find.record_type)
        if type_and_bytes is None:
            return None
        self._add(bytes_read=type_and_bytes[1])
        return type_and_bytes[0]

    def lookup_remarks(self, texts: Sequence[str]) -> list[str]:
        """What was looked up for some of the values, if they may mean several things: see `how_looked_up`. Opens a
        file if there are such values."""
        unclear = [text for text in texts if any(how_looked_up(text, column) for column in _UNCLEAR)][:_REMARKS]
        if not unclear:
            return []
        return self._of_first_file(lambda path, options: find.lookup_remarks(path, options, unclear)) or []

    def _of_first_file(self, get: Callable[[str, FindOptions], T]) -> T | None:
        """The result of the first file that can be searched; None if no file can."""
        for file in self._search_files.files:
            if file.found is None:
                with suppress(BloomError), convert_os_errors(file.path):
                    return get(file.path, self._search_files.job.options)
        return None

    def _each(self) -> Iterator[FileResult | FilterAnswer]:
        files = self._search_files.files
        remote = any(store_of(file.path).remote for file in files[:1])
        jobs = min(self._jobs or default_jobs(remote=remote), len(files))
        stop, blocks = Stop(), Blocks.of(self._values)
        with shared(), Threads(jobs if jobs > 1 else 0, "bloom-find") as threads:
            waiting: deque[FileResult | FilterAnswer | Future[FileResult]] = deque()
            pending, pending_limit = 0, jobs if threads.most else 0  # one more file than the threads search

            def finished(most: int) -> Iterator[FileResult | FilterAnswer]:
                """Take the first results, until at most `most` files are being searched."""
                nonlocal pending
                while waiting and (pending > most or not isinstance(waiting[0], Future)):
                    first = waiting.popleft()
                    pending -= isinstance(first, Future)
                    yield threads.result(first) if isinstance(first, Future) else first

            try:
                for piece in self._pieces(threads, jobs, stop, remote=remote):
                    if not isinstance(piece, FileWork):
                        waiting.append(piece)
                    elif piece.found is not None:
                        waiting.append(FileResult(piece.found, iter(()), piece))
                    else:
                        pending += 1
                        waiting.append(threads.submit(partial(self._work, piece, blocks, stop)))
                    yield from finished(pending_limit)
                yield from finished(-1)
            finally:
                stop.requested = True

    def _pieces(self, threads: Threads, jobs: int, stop: Stop, *, remote: bool) -> Iterable[FileWork | FilterAnswer]:
        """The files to search, and the answers for those that filters rule out, in order."""
        files, job = self._search_files.files, self._search_files.job
        if self._index is not None:
            return self._search_files.pruned(self._index)
        if not remote and not job.of_table:
            return files_to_search(files, self._values, threads, jobs, stop, decodes=not job.options.maybe)
        return files

    def _work(self, file: FileWork, blocks: Blocks, stop: Stop) -> FileResult:
        spool = Spool()
        with self._counted():
            file_found = search_file(self._search_files.job, file, blocks, spool, stop)
        return FileResult(file_found, spool.batches() if file_found.error is None else iter(()), file)

    def _count(self, file_found: FileFound, files: int = 1) -> None:
        """Add the result of a file, or the one of several files that filters rule out."""
        maybe = self._options.maybe and bool(file_found.row_groups_possible)
        if file_found.format is None and file_found.error is None and file_found.reason is None and not maybe:
            self._add(files=1, row_groups=file_found.row_groups)  # not opened
            return
        self._add(
            files=files if file_found.reason is None and file_found.error is None else 0,
            files_found=int(maybe or file_found.rows > 0),
            skipped=int(file_found.reason is not None),
            failed=int(file_found.error is not None),
            rows=file_found.rows if self._options.rows else 0,
            row_groups=file_found.row_groups,
            row_groups_possible=len(file_found.row_groups_possible),
            row_groups_read=file_found.row_groups_read,
            pages_read=file_found.pages_read,
            pages_left_out=file_found.pages_left_out,
            bytes_read=file_found.bytes_read,
            scan_bytes=file_found.scan_bytes,
            other_types=file_found.other_types,
            unverified=file_found.unverified,
        )
        if file_found.error is not None:
            self._errors.append(file_found)
            self._code = gravest({self._code, file_found.exit_code} - {0, 1})
        elif self._code == 1 and self._sums["files_found"]:
            self._code = 0

    def _add(self, **numbers: float) -> None:
        sums = self._sums
        for name, number in numbers.items():
            sums[name] += number


def _files_of(paths: Sequence[str], options: FindOptions) -> SearchFiles:
    """The files that paths name. Raises as `Search`."""
    listed = listed_files(paths, options)
    return SearchFiles.of(with_partitions(options, listed), listed)


def _first_rows(
    file_found: FileFound, batches: Iterator[pa.RecordBatch], count: int
) -> tuple[FileFound, Iterator[pa.RecordBatch]]:
    """The first rows of a file."""

    def first() -> Iterator[pa.RecordBatch]:
        remaining = count
        for batch in batches:
            yield batch.slice(0, remaining)
            remaining -= min(batch.num_rows, remaining)
            if not remaining:
                return

    return replace(file_found, rows=count), first()
