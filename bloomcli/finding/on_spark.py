"""`find` on Spark's executors: for jobs and notebooks as a frame of the rows that have the values, which
`bloomcli.spark` exports, and for the command line and reports as a `Search`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from bloomcli.commands.columns import only_column
from bloomcli.commands.find_values import Values
from bloomcli.commands.option import Option, taken, taken_path, taken_paths
from bloomcli.commands.options import FindOptions, TableOptions
from bloomcli.commands.partitions import Partition, check_column, with_partitions
from bloomcli.commands.value_frames import arrow_of
from bloomcli.commands.values import texts
from bloomcli.datasets.hadoop_paths import absolute, located, portable
from bloomcli.datasets.record_shape import Shape, shape_by_names, struct_of
from bloomcli.datasets.spark import job_context
from bloomcli.datasets.spark_find import frame, results
from bloomcli.datasets.spark_frame import to_spark_types
from bloomcli.datasets.spark_session import checked_session, with_session_keys
from bloomcli.datasets.value_blocks import PIECE_VALUES, packed, searched_texts
from bloomcli.errors import UnknownFormat, UsageError
from bloomcli.finding.lake import FileResult, Search
from bloomcli.finding.of_table import chosen_shape, of_snapshot
from bloomcli.finding.pruning import Pruning
from bloomcli.finding.search_files import Job, Part, SearchFiles, listed_files
from bloomcli.finding.spool import Spool
from bloomcli.finding.work import search
from bloomcli.formats.keys import Keys
from bloomcli.formats.registry import known_suffix, open_file
from bloomcli.storage.base import FileEntry
from bloomcli.storage.registry import open_source
from bloomcli.tables.opening import open_table
from bloomcli.words import plural

Name = str | os.PathLike[str]


def find(
    spark: Any,
    paths_or_table: Name | Sequence[Name],
    values: Any,
    *,
    column: str,
    select: Sequence[str] = (),
    values_column: str | None = None,
    index: Name | None = None,
    as_files: bool = False,
    keys: Keys | None = None,
) -> Any:
    """Find the rows whose column equals a value of a frame, by the filters and statistics of files. The rows stay on
    the executors, and so do the values if they have more than 64 MiB.

    Args:
        spark: a classic session.
        paths_or_table: files, directories, globs and URIs; or the name of one Iceberg or Delta table, as for
            `find_table`. A text that begins with ``delta.``, or that has no slash and isn't a local file, is a table.
        values: a frame of Spark, Pandas, Polars or another library that gives Arrow data, a series or an Arrow array
            with the values: numbers, texts, dates, times, booleans or binary values. Nulls are never found. Or one
            value or several of Python, as for `bloomcli.find`; `value` in the result is then a text.
        column: leaf path of the files. A row with a list is found if one element equals the value.
        select: leaf paths, groups or globs of the columns of `record`; by default all.
        values_column: the frame's column; it can be left out if the frame has only one.
        index: an index of these files (`index_build`). The lookup in it happens now. Files that it rules out aren't
            opened; files that it doesn't have, or that changed since, are searched without it. More than 64 MiB of
            values aren't looked up in it: a file's filter nearly always has a false positive for one of so many.
        as_files: search the files of a table as plain files, with the rows that the table has replaced or deleted.
        keys: the keys of encrypted files; by default the master keys in ``parquet.encryption.key.list``.

    Returns:
        A frame with the columns `path`, `stripe` (of ORC files), `row_group` (from 0), `row` (number in the file,
        from 0), `value` (of the frame's type) and `record` (a struct, whose types are those of the first file). A row
        with several of the values, as in a list, comes once. Each action on the frame searches again: write it, or
        `persist()` it.

    Raises:
        UsageError: no files, files of a table without `as_files`, no such column of the frame, values without a
            usual text form, an index without the column.
        UnknownColumn: the first file has no column that `select` names.
        UnsupportedError: a session that can't run tasks, column types that Spark doesn't have.
        UnreadableError: a directory, the first file or the index can't be read.
        CorruptFile: the index is damaged.
        pyspark.errors.PythonException: by actions on the frame, if a file can't be searched; it names the file.
    """
    checked_session(spark)
    if is_table(paths_or_table):
        return find_table(
            spark,
            str(paths_or_table),
            values,
            column=column,
            select=select,
            values_column=values_column,
            index=index,
            keys=keys,
        )
    named = taken_paths("paths_or_table", paths_or_table)
    options = FindOptions(column=column, select=select, as_files=as_files, keys=keys).checked()
    files = of_paths(spark, named, options, shaped=True)
    return _frame(spark, files, values, values_column, index)


def find_table(
    spark: Any,
    table: str,
    values: Any,
    *,
    where: str | None = None,
    snapshot: int | None = None,
    as_of: str | datetime | None = None,
    column: str,
    select: Sequence[str] = (),
    values_column: str | None = None,
    index: Name | None = None,
    keys: Keys | None = None,
) -> Any:
    """Find the rows of an Iceberg or Delta table whose column equals a value of a frame: those of one snapshot,
    without the rows that the table has deleted.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table: ``catalog.db.name``, ``delta.`/path` ``.
        where: a condition in SQL. It leaves out files in which no row can meet it, but not single rows.
        snapshot: the snapshot's id (Iceberg) or the version (Delta); the newest if None.
        as_of: the time whose snapshot is read; in UTC without a zone.
        column, select: leaf paths of the table.

    The other arguments are those of `find`.

    Returns:
        As `find`; `record` has the table's names and types, and `row` is the row's number in its data file.

    Raises: as `find`; UsageError also for an unknown table or snapshot, or a wrong condition.
    """
    checked_session(spark)
    which = TableOptions(table=table, where=where, snapshot=snapshot, as_of=as_of)
    options = FindOptions(column=column, select=select, keys=keys).checked()
    return _frame(spark, of_table(spark, which, options, typed=True), values, values_column, index)


def _frame(spark: Any, search_files: SearchFiles, values: Any, column: str | None, index: Name | None) -> Any:
    path = None if index is None else everywhere(index)
    if column is not None:
        taken("values_column", column, Option(help="", form="column"))
    if not type(values).__module__.startswith("pyspark."):
        values, column = values_of(values, column), None

    def parts(few: pa.Array | None) -> list[Part]:
        files = search_files
        if path is not None:
            texts = pa.nulls(0, pa.large_binary()) if few is None else searched_texts(few)
            pruning = Pruning(path, files.indexed.path, Values(texts))  # raises if the index doesn't have the column
            if few is not None:
                files = files._replace(files=list(files.pruned(pruning)))
        return files.chosen(lambda file: file.found is None or file.found.error is not None).parts

    record = struct_of(search_files.job.shape or ())
    return frame(spark, parts, values, column, record=record, search=search)


def values_of(values: Any, column: str | None) -> pa.ChunkedArray:
    """Arrow data, a series, a data frame's column, or the texts of Python's values, in a type that Spark uses. Raises
    UsageError."""
    array = arrow_of(values, column)
    if array is None:
        if not (value_texts := texts(values)):
            raise UsageError("no values to find", hint="name one or several, or a frame of values")
        array = pa.array(value_texts)
    array = pa.chunked_array([array]) if isinstance(array, pa.Array) else array
    (field,) = to_spark_types(pa.schema([pa.field("values", array.type)]), "values", ())
    return array.cast(field.type)


def everywhere(index: Name) -> str:
    """The path of an index in a form that executors can open."""
    return located(taken_path("index", index))


def is_table(named: Any) -> bool:
    """Whether an argument is a table's name, and not a path."""
    if not isinstance(named, str):
        return False
    if named.lower().startswith(("delta.", "`delta`.")):
        return True
    return "/" not in named and os.sep not in named and not os.path.exists(named)  # noqa: PTH110  text in


def of_paths(spark: Any, paths: Sequence[str], options: FindOptions, *, shaped: bool) -> SearchFiles:
    """List the files to search.

    Args:
        spark: the session.
        paths: files, directories, globs and URIs.
        options: checked.
        shaped: the rows are for a frame, so that records have the columns and types of the first file.

    Raises:
        UsageError: no files, or files of a table without `as_files`.
        UnknownColumn, UnreadableError, UnsupportedError: with `shaped`, the first file's error.
    """
    options = with_session_keys(options, spark)
    entries = listed_files([portable(path) for path in paths], options)
    listed = [item._replace(path=absolute(item.path)) for item in entries]
    files = SearchFiles.of(with_partitions(options, listed), listed)._replace(cores=cores_of(spark))
    if not shaped:
        return files
    options = files.job.options
    shape = chosen_shape(_first_shape(listed, options), options)
    return files._replace(job=Job(options, shape=shape, read=shape, typed=True))


def cores_of(spark: Any) -> int:
    """The number of tasks that Spark runs at a time."""
    return max(int(job_context(spark).defaultParallelism), 1)


def _first_shape(listed: Sequence[FileEntry], options: FindOptions) -> Shape:
    """The columns and types of the first file."""
    for item in listed:
        if item.skipped:
            continue
        if item.problem is not None:
            raise item.problem
        try:
            with open_source(item.path) as source:
                file = open_file(source, keys=options.keys)
                check_column(file, options)
                schema = file.search(only_column(file, options.column, purpose="find")).record_schema()
                schema = Partition(item.path, options).join(pa.RecordBatch.from_pylist([], schema=schema)).schema
                return shape_by_names(to_spark_types(schema, item.path, options.select))
        except UnknownFormat:
            if not item.walked or known_suffix(item.path):
                raise
    raise UsageError("the directories hold no files of a known format", hint="name files, or other directories")


def of_table(spark: Any, which: TableOptions, options: FindOptions, *, typed: bool) -> SearchFiles:
    """List the files of a table's snapshot. Raises: as `find_table`."""
    table = open_table(spark, which.table, snapshot=which.snapshot, as_of=which.time)
    return of_snapshot(table, which.where, options, cores=cores_of(spark), typed=typed)


class SparkSearch(Search):
    """The search of files, or of a table's snapshot, on the executors of a Spark session.

    Args:
        spark: a classic session.
        paths: files, directories, patterns and URIs; none with `table`.
        values: the values to find.
        options: the options of `find`.
        table: the table whose files are searched, without the rows that it has deleted.
        index: an index of these files, in which the driver looks the values up first.

    Raises:
        UsageError: contradicting options, no values, no files, no such table, column or snapshot, an index without
            the column.
        UnsupportedError: a session that can't run tasks, a table whose rows can't be read.
        UnreadableError: a directory or a table's metadata can't be read.
    """

    def __init__(
        self,
        spark: Any,
        paths: Sequence[str],
        values: Values,
        options: FindOptions,
        table: TableOptions | None = None,
        index: str | None = None,
    ) -> None:
        self._spark = checked_session(spark)
        files = partial(of_paths, spark, paths, shaped=False)
        if table is not None:
            files = partial(of_table, spark, table, typed=False)
        super().__init__(files, values, options, index=index)

    def _counted(self) -> AbstractContextManager[None]:
        """Count nothing: the executors send the other requests."""
        return nullcontext()

    def _each(self) -> Iterator[FileResult]:
        files = self._search_files.files if self._index is None else list(self._search_files.pruned(self._index))
        return searched(self._spark, self._search_files._replace(files=files).parts, self._values)


def searched(spark: Any, parts: Sequence[Part], values: Values) -> Iterator[FileResult]:
    """Yield the results of the files of parts, in order."""
    if not parts:
        return
    texts = values.texts
    blocks = [packed(texts[at : at + PIECE_VALUES]) for at in range(0, len(texts), PIECE_VALUES)]
    description = f"bloom find: {plural(sum(len(files) for files, _ in parts), 'file')}"
    files = (file for some, _ in parts for file in some)
    spool = Spool()
    for result in results(spark, parts, blocks, search=search, description=description):
        if isinstance(result, pa.RecordBatch):
            spool.add(result)
        else:
            yield FileResult(result, spool.batches(), next(files))
            spool = Spool()
