"""`find` on Spark's executors with the interface of `bloomcli.finding.lake`: for the command line and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.commands.table_options import TableOptions
from bloomcli.datasets.spark_session import checked_session
from bloomcli.finding.job import Part
from bloomcli.finding.lake import FileResult
from bloomcli.finding.on_spark import of_paths, of_table
from bloomcli.finding.spool import Spool
from bloomcli.finding.table_search import ListedSearch
from bloomcli.finding.values import PIECE_VALUES, packed
from bloomcli.finding.work import search
from bloomcli.words import plural


class SparkSearch(ListedSearch):
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
        super().__init__(values, options.checked())  # its meter stays empty: the executors send the requests
        self._spark = checked_session(spark)
        if table is None:
            self._list(of_paths(spark, paths, self._options, shaped=False), index)
        else:
            self._list(of_table(spark, table, self._options, typed=False), index)

    def _each(self) -> Iterator[FileResult]:
        for result in searched(self._spark, self._found.parts, self._values):
            yield result._replace(no_answer=self._no_answers.get(result.found.path))


def searched(spark: Any, parts: Sequence[Part], values: Values) -> Iterator[FileResult]:
    """Yield the results of the files of parts, in order."""
    if not parts:
        return
    from bloomcli.datasets.spark_find import results

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
