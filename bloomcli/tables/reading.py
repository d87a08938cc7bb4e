"""The engine of `--table` for commands that read: the data files of one snapshot, by local processes or by Spark.

It has the interface of the other engines, so that `inspect`, `validate` and `probe` take the same steps as for paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bloomcli.commands.options import Options, SurveyOptions, TableOptions, ValidateOptions
from bloomcli.datasets.engine import Engine
from bloomcli.datasets.spark import SparkEngine
from bloomcli.datasets.task import OnRow, Task
from bloomcli.errors import UsageError
from bloomcli.hints import on_table
from bloomcli.model.dataset import DatasetReport, FileRow, TableFacts
from bloomcli.storage.base import FileEntry
from bloomcli.tables.base import DataFile, TableSnapshot
from bloomcli.tables.columns import FORMATS, check_columns, options_from_properties
from bloomcli.tables.opening import check_named_in_sql, open_snapshot
from bloomcli.tables.registry import open_table
from bloomcli.tables.tasks import task_of, with_keys, with_names, with_statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def table_facts(table: TableSnapshot) -> TableFacts:
    """The facts about a table in reports."""
    return TableFacts(name=table.name, format=table.format)


def session_of(engine: Engine) -> SparkSession:
    """The session of the Spark engine. Raises UsageError for another engine."""
    if not isinstance(engine, SparkEngine):
        raise UsageError("a table is worked on by Spark", hint="add --engine spark")
    return engine.session


@dataclass(slots=True)
class TableEngine:
    """Runs reading commands on the data files of a table's snapshot."""

    table: TableSnapshot
    engine: Engine
    where: str | None = None
    """A condition in SQL: files in which no row can meet it are left out."""
    from_properties: bool = False
    """`validate` requires the filters that the table's properties request."""
    _remarks: tuple[str, ...] = field(default=(), init=False, repr=False)
    _files: dict[str, DataFile] = field(default_factory=dict, init=False, repr=False)
    """The listed files by the paths of their rows."""
    _command: str = field(default="", init=False, repr=False)

    def find(self, paths: Sequence[str], options: Options) -> list[FileEntry]:
        """List the snapshot's data files. `paths` is ignored.

        Raises:
            UsageError: the table can't resolve the condition; `validate` finds no files.
        """
        del paths
        listed = []
        for file in self.table.files(self.where):
            task = task_of(file, dict.fromkeys(FORMATS, options))
            self._files[task.path] = file
            name = task.path.rpartition("/")[2]
            relative = f"{file.partition}/{name}" if file.partition else name
            listed.append(FileEntry(path=task.path, size=file.size, relative=relative, walked=False))
        if not listed and isinstance(options, ValidateOptions | SurveyOptions):
            matching = "" if self.where is None else " that the condition leaves"
            raise UsageError(f"the table has no data files{matching}", path=self.table.name)
        return listed

    def plan(self, listed: Sequence[FileEntry], options: Options) -> list[Task]:
        """Make a task for each data file. Raises UsageError, UnknownColumn."""
        options = options.checked()
        self._command = options.command
        names = self.table.names()
        check_columns(self.table, options, names)
        named = with_names(options, names)
        if self.from_properties:
            requested, self._remarks = options_from_properties(options, self.table)
            named = {kind: replace(one, names=names) for kind, one in requested.items()}
        files = [self._files[item.path] for item in listed]
        named = {kind: with_keys(one, files) for kind, one in named.items()}
        tasks = [task_of(file, named) for file in files]
        if isinstance(options, ValidateOptions):
            tasks, remarks = with_statistics(tasks, self.table, files)
            self._remarks = (*self._remarks, *remarks)
        return tasks

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> list[Task]:
        """Return the tasks unchanged: reading commands need no check."""
        del on_row
        return list(tasks)

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks on the executors. Raises UsageError if all files refuse the request for the same reason."""
        report = self.engine.run(tasks, on_row=on_row)
        if (refusal := _common_refusal(report, self.table.name)) is not None:
            raise refusal
        return replace(
            report,
            command=self._command,
            rows=tuple(_with_table(row, self.table.name_in_sql) for row in report.rows),
            table=table_facts(self.table),
            version_before=self.table.version,
            remarks=(*([] if (said := read_from(self.table)) is None else [said]), *self._remarks, *report.remarks),
        )


def table_engine(engine: Engine, options: TableOptions) -> TableEngine:
    """Make the engine for the snapshot that options name. Raises: as `open_table` or `open_snapshot`."""
    table = opened(engine, options)
    return TableEngine(table, engine, options.where, options.from_properties)


def opened(engine: Engine, options: TableOptions) -> TableSnapshot:
    """Open the snapshot that options name: in the session of the Spark engine, otherwise without Spark. Raises: as
    `open_table` or `open_snapshot`."""
    options = options.checked()
    if isinstance(engine, SparkEngine):
        check_named_in_sql(options.table)
        return open_table(engine.session, options.table, snapshot=options.snapshot, as_of=options.time)
    return open_snapshot(options.table, snapshot=options.snapshot, as_of=options.time)


def read_from(table: TableSnapshot) -> str | None:
    """The remark on what was read instead of Spark's table; None if Spark opened it."""
    return None if table.origin is None else f"read without Spark: {table.origin}"


def _with_table(row: FileRow, table: str) -> FileRow:
    """The row with hints for the table instead of the file."""
    findings = tuple(replace(found, hint=on_table(found.hint, table)) for found in row.findings)
    return replace(row, findings=findings, hint=on_table(row.hint, table))


def _common_refusal(report: DatasetReport, table: str) -> UsageError | None:
    """The common error of a request that files refuse, such as a value that isn't of the column's type: one error for
    the table instead of one for each file. None if files refuse it for several reasons, or none refuses it."""
    rows = [row for row in report.rows if row.exit_code == UsageError.exit_code and row.error is not None]
    messages = {(row.error or "").removeprefix(f"{row.path}: ") for row in rows}
    if len(messages) != 1:
        return None
    hints = {on_table(row.hint, table) for row in rows}
    return UsageError(messages.pop(), path=table, hint=hints.pop() if len(hints) == 1 else None)
