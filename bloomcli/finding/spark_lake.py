"""`find` on Spark's executors with the interface of `bloomcli.finding.lake`: for the command line and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions, TableOptions
from bloomcli.datasets.spark_find import results
from bloomcli.datasets.spark_session import checked_session
from bloomcli.finding.job import Part
from bloomcli.finding.lake import FileResult, Search
from bloomcli.finding.on_spark import of_paths, of_table
from bloomcli.finding.search_files import Pruned, SearchFiles
from bloomcli.finding.spool import Spool
from bloomcli.finding.values import PIECE_VALUES, packed
from bloomcli.finding.work import search
from bloomcli.words import plural


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
        self._spark, self._which = checked_session(spark), table
        super().__init__(paths, values, options, index=index)

    def _counted(self) -> AbstractContextManager[None]:
        """Count nothing: the executors send the other requests."""
        return nullcontext()

    def _files(self) -> SearchFiles:
        if self._which is None:
            return of_paths(self._spark, self._paths, self._options, shaped=False)
        return of_table(self._spark, self._which, self._options, typed=False)

    def _each(self) -> Iterator[FileResult]:
        files = self._found
        pruned = [Pruned(file) for file in files.files] if self._index is None else list(files.pruned(self._index))
        parts = files._replace(files=[one.file for one in pruned]).parts
        for one, result in zip(pruned, searched(self._spark, parts, self._values), strict=True):
            yield result._replace(no_answer=one.no_answer, unopened=one.unopened)


def searched(spark: Any, parts: Sequence[Part], values: Values) -> Iterator[FileResult]:
    """Yield the results of the files of parts, in order."""
    if not parts:
        return
    texts = values.texts
    blocks = [packed(texts[at : at + PIECE_VALUES]) for at in range(0, len(texts), PIECE_VALUES)]
    description = f"bloom find: {plural(sum(len(files) for files, _ in parts), 'file')}"
    spool = Spool()
    for result in results(spark, parts, blocks, search=search, description=description):
        if isinstance(result, pa.RecordBatch):
            spool.add(result)
        else:
            yield FileResult(result, spool.batches())
            spool = Spool()
