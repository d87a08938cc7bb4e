"""The engine of `--table` for commands that read: the data files of one snapshot, on Spark's executors.

It has the interface of the other engines, so that `inspect`, `validate` and `probe` take the same steps as for paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bloomcli.commands.options import Options, TableOptions
from bloomcli.datasets.spark import SparkEngine
from bloomcli.datasets.task import OnRow, Task
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.table import TableFacts
from bloomcli.storage.base import Listed
from bloomcli.tables.base import DataFile, Table
from bloomcli.tables.columns import check_columns
from bloomcli.tables.tasks import task_of, with_names


def facts_of(table: Table) -> TableFacts:
    """What reports say of a table."""
    return TableFacts(name=table.name, format=table.format)


@dataclass(frozen=True, slots=True)
class TableEngine:
    """The data files of a table's snapshot, and the executors that read them."""

    table: Table
    spark: SparkEngine
    where: str | None = None
    """A condition: files in which no row can meet it are left out."""
    remarks: tuple[str, ...] = ()
    """Notes for the report."""
    _files: dict[str, DataFile] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The listed files by the paths of their rows."""

    def find(self, paths: Sequence[str], options: Options) -> list[Listed]:
        """The snapshot's data files. `paths` has none: the table names them. Raises: as `Table.files`."""
        del paths
        listed = []
        for file in self.table.files(self.where):
            task = task_of(self.table, file, options)
            self._files[task.path] = file
            name = task.path.rpartition("/")[2]
            relative = f"{file.partition}/{name}" if file.partition else name
            listed.append(Listed(path=task.path, size=file.size, relative=relative, walked=False))
        return listed

    def plan(self, listed: Sequence[Listed], options: Options) -> list[Task]:
        """Tasks for data files. Raises UsageError, UnknownColumn."""
        options = options.checked()
        names = self.table.names()
        check_columns(self.table, options, names)
        named = with_names(options, names)
        return [task_of(self.table, self._files[item.path], named) for item in listed]

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> list[Task]:
        """The tasks as they are: nothing is changed."""
        del on_row
        return list(tasks)

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks on the executors."""
        report = self.spark.run(tasks, on_row=on_row)
        return replace(
            report,
            table=facts_of(self.table),
            version_before=self.table.version,
            remarks=(*self.remarks, *report.remarks),
        )


def table_engine(spark: SparkEngine, options: TableOptions, remarks: tuple[str, ...] = ()) -> TableEngine:
    """The engine for the snapshot that options name. Raises: as `open_table`."""
    from bloomcli.tables.registry import open_table

    options = options.checked()
    table = open_table(spark.session, options.table, snapshot=options.snapshot, as_of=options.time)
    return TableEngine(table, spark, options.where, remarks)
