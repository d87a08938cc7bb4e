"""bloomcli.find: the rows that have values, as Arrow batches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bloomcli.commands.option import taken_path, taken_paths
from bloomcli.commands.options import FindOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.errors import BloomError, UnreadableError, UnsupportedError, UsageError
from bloomcli.formats.keys import Keys
from bloomcli.functions.files import Files, RunOptions, Table
from bloomcli.report.text_find import problems
from bloomcli.words import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.values import Value
    from bloomcli.model.find import FileFound, FindReport


class FoundRows:
    """The rows, as an iterable of Arrow batches. The iteration does the search, and can be done once.

    Notebooks show the first rows, which are searched for it and still part of the iteration.

    Attributes:
        report: the totals so far.
    """

    def __init__(self, search: Any) -> None:
        self._search = search
        self._ahead: deque[pa.RecordBatch] = deque()
        self._source = self._each()
        self._begun = self._ended = False
        self._table: pa.Table | None = None

    @property
    def report(self) -> FindReport:
        """The totals so far; complete at the end of the iteration."""
        report: FindReport = self._search.report
        return report

    def __repr__(self) -> str:
        return f"FoundRows({self.report})"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._begun and self._ended and not self._ahead:
            raise UsageError("the rows have been read", hint="call `find` again, or keep what `to_arrow()` returns")
        self._begun = True
        while self._ahead or self._read_ahead():
            yield self._ahead.popleft()

    def _read_ahead(self) -> bool:
        """Read one batch more. Returns whether there was one."""
        batch = next(self._source, None)
        if batch is None:
            self._ended = True
            return False
        self._ahead.append(batch)
        return True

    def _each(self) -> Iterator[pa.RecordBatch]:
        for file in self._search.files():
            yield from file.batches

    def to_arrow(self) -> pa.Table:
        """The rows that weren't read yet, as one `pyarrow.Table`; called again, the same table.

        If files differ in the columns of `record`, it has all of them, with nulls where a file lacks one.

        Raises:
            UsageError: the rows have been read.
            UnsupportedError: a column has types in two files that don't go together.
            BloomError: files failed. The iteration still has the rows of the others.
        """
        from bloomcli.report.found_rows import table

        if self._table is None:
            batches = list(self)
            if self.report.errors:
                self._ahead, self._begun = deque(batches), False
                raise _of_files(self.report.errors, others=self.report.files > 0)
            self._table = table(batches, self._search.record_type)
        return self._table

    def to_pandas(self) -> Any:
        """`to_arrow` as a data frame, with a column for each column of `record`: ``record.id``.

        Raises:
            UsageError, UnsupportedError, BloomError: as `to_arrow`.
            ModuleNotFoundError: pandas isn't installed (``pip install pandas``).
        """
        return self.to_arrow().flatten().to_pandas()

    def _repr_html_(self) -> str:
        from bloomcli.report import notebook

        while not self._begun and sum(map(len, self._ahead)) <= notebook.FOUND_SHOWN and self._read_ahead():
            pass
        return notebook.found(self._ahead, self.report, more=not self._ended, begun=self._begun)


def _of_files(errors: Sequence[FileFound], *, others: bool) -> BloomError:
    """The error of files that failed: the first, with the number of the rest. `others`: some files didn't fail."""
    kinds = {kind.exit_code: kind for kind in (UnreadableError, UsageError, UnsupportedError)}
    (text, hint), *rest = problems(errors)
    more = f"; {plural(len(rest), 'other error')} in other files" if rest else ""
    hints = [hint] if hint else []
    if others:
        hints.append("iterating over the found rows gives those of the other files")
    return kinds[errors[0].exit_code](f"{text}{more}", hint="; ".join(hints) or None)


def find(
    path: Files | Table,
    values: Value | Sequence[Value] | pa.Array | Any,
    *,
    column: str,
    values_column: str | None = None,
    select: Sequence[str] = (),
    limit: int | None = None,
    jobs: int | None = None,
    index: str | os.PathLike[str] | None = None,
    as_files: bool = False,
    session: Any = None,
    keys: Keys | None = None,
) -> FoundRows:
    """Find the rows whose column equals one of some values.

    Filters, min/max statistics, dictionaries and page indexes say which pages can have a value; only these are read.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        values: one or several, as for `bloomcli.probe`; an Arrow array, a series or a data frame of Pandas, Polars or
            another library that gives Arrow data. Nulls are left out.
        column: leaf path. A row with a list is found if one element equals a value.
        values_column: the data frame's column; it can be left out if the frame has only one.
        select: leaf paths, groups or globs of the columns of `record`; by default all.
        limit: the maximum number of rows.
        jobs: files at a time; by default the number of cores, and more for files in stores.
        index: an index of these files (`bloomcli.index_build`). Files that it rules out aren't opened; those that it
            doesn't have, or that changed since, are searched without it.
        as_files: search the files of a table as plain files, with the rows that the table has replaced or deleted.
        session: a SparkSession, to search on its executors. They search all files before the first batch comes;
            `bloomcli.spark.find` gives a data frame instead.
        keys: the keys of encrypted files: a `Keys`, or a mapping of its fields.

    Returns:
        An iterable of `pyarrow.RecordBatch`, in the order of files and rows, with the columns `path`, `row_group`
        (from 0), `row` (number in the file, from 0), `value` (as it was given, text) and `record` (a struct). Its
        `report` says what was read, and which files failed: they don't end the search.

    Raises:
        UsageError: no values, no files, files of a table without `as_files` (`bloomcli.Table` names the table, for
            its rows), a limit below 1, an index without the column.
        UnreadableError: a directory can't be listed, the index can't be read, or the Spark job failed.
        UnsupportedError: a session that can't run tasks, executors without bloomcli.
        CorruptFile: the index is damaged.
    """
    from bloomcli.finding.lake import Search
    from bloomcli.finding.value_file import values_given

    which = path.options() if isinstance(path, Table) else None
    named = () if isinstance(path, Table) else taken_paths("path", path)
    if which is not None and as_files:
        raise UsageError("as_files searches files, and a Table names a table's rows", hint="leave out one of them")
    options = FindOptions(column=column, select=select, limit=limit, as_files=as_files, keys=keys)
    wanted = values_given(values, values_column)
    index_path = None if index is None else taken_path("index", index)
    run_options = RunOptions(jobs=jobs)
    if session is None and which is not None:
        from bloomcli.finding.of_table import of_snapshot
        from bloomcli.tables.reading import opened

        table = opened(choose_engine(), which)
        files = partial(of_snapshot, table, which.where, typed=False)
        return FoundRows(Search(files, wanted, options, run_options.jobs, index_path))
    if session is None:
        return FoundRows(Search(named, wanted, options, run_options.jobs, index_path))
    from bloomcli.finding.on_spark import SparkSearch

    return FoundRows(SparkSearch(session, named, wanted, options, which, index_path))
