"""The engine of `--table` for commands that read: the data files of one snapshot, by local processes or by Spark.

It has the interface of the other engines, so that `inspect`, `validate` and `probe` take the same steps as for paths.

Processes and executors open a file by a portable path; the table's commit uses the path in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from bloomcli.commands.options import AdviseOptions, Options, SurveyOptions, TableOptions, ValidateOptions
from bloomcli.datasets.engine import Engine
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.spark import SparkEngine
from bloomcli.datasets.task import OnRow, Task, failed_row
from bloomcli.errors import BloomError, UnsupportedError, UsageError
from bloomcli.formats.keys import Keys
from bloomcli.hints import on_table
from bloomcli.model.dataset import DatasetReport, FileRow, Status, TableFacts
from bloomcli.storage.base import FileEntry
from bloomcli.tables.base import DataFile, TableSnapshot
from bloomcli.tables.columns import FORMATS, choose
from bloomcli.tables.opening import open_table
from bloomcli.tables.without_spark import open_snapshot

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


O = TypeVar("O", bound=Options)  # noqa: E741  options


def with_keys(options: O, files: Sequence[DataFile]) -> O:
    """The options with the keys that a table's metadata have for its encrypted files."""
    keys = {portable(file.path): file.key for file in files if file.key is not None}
    return replace(options, keys=replace(options.keys or Keys(), files=keys)) if keys else options


def task_of(file: DataFile, options: Mapping[str, O], new: str | None = None, *, changing: bool = False) -> Task:
    """Make the task for a data file.

    Args:
        file: the data file.
        options: the checked options for files of each format, with the table's names.
        new: the path of the new file, from `Table.new_path`; None for a command that only reads.
        changing: the file's store must be writable.
    """
    some = next(iter(options.values()))
    task = Task(options=some, path=file.path, size=file.size, only_changed=True, no_table=True, lineage=file.lineage)
    try:
        task = replace(task, path=portable(file.path, changing=changing))
        if file.format not in FORMATS:
            raise UnsupportedError(
                f"a data file of the format {file.format}, which has no Bloom filters", path=task.path
            )
        if file.format not in options:
            reason = f"the table's properties ask for no filter in {file.format} files"
            return replace(task, row=FileRow(path=task.path, status=Status.SKIPPED, reason=reason))
        output = None if new is None else portable(new, changing=True)
    except BloomError as error:
        return replace(task, row=failed_row(task.path, error))
    return replace(task, options=options[file.format], output=output)


def paths_of(table: TableSnapshot, where: str | None = None) -> tuple[str, ...]:
    """The paths by which a snapshot's data files are opened. Raises: as `TableSnapshot.files`, UnsupportedError."""
    return tuple(portable(file.path) for file in table.files(where))


def with_statistics(
    tasks: Sequence[Task], table: TableSnapshot, files: Sequence[DataFile]
) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks of data files with what the table's metadata say about them, and remarks on why they don't have it.

    Raises: as `Table.statistics`, except UnsupportedError.
    """
    try:
        packed = [statistics.packed() for statistics in table.statistics(files)]
    except UnsupportedError as error:
        hint = "" if error.hint is None else f"; {error.hint}"
        return list(tasks), (
            f"what the table's metadata say about files isn't compared with them: {error.reason}{hint}",
        )
    if not packed:
        return list(tasks), ()
    return [replace(task, statistics=facts) for task, facts in zip(tasks, packed, strict=True)], ()


@dataclass(slots=True)
class TableEngine:
    """Runs reading commands on the data files of a table's snapshot."""

    table: TableSnapshot
    engine: Engine
    where: str | None = None
    """A condition in SQL: files in which no row can meet it are left out."""
    from_properties: bool = False
    """`validate` requires the filters that the table's properties request."""
    words: tuple[str, ...] = ()
    """The options of the Spark session, for command lines in hints."""
    _remarks: tuple[str, ...] = field(default=(), init=False, repr=False)
    _files: dict[str, DataFile] = field(default_factory=dict, init=False, repr=False)
    """The listed files by the paths of their rows."""
    _command: str = field(default="", init=False, repr=False)

    def find(self, paths: Sequence[str], options: Options) -> list[FileEntry]:
        """List the snapshot's data files. `paths` is ignored.

        Raises:
            UsageError: the table can't resolve the condition; `validate` or `advise` finds no files.
        """
        del paths
        listed = []
        for file in self.table.files(self.where):
            task = task_of(file, dict.fromkeys(FORMATS, options))
            self._files[task.path] = file
            name = task.path.rpartition("/")[2]
            relative = f"{file.partition}/{name}" if file.partition else name
            listed.append(FileEntry(path=task.path, size=file.size, relative=relative, walked=False))
        if not listed and isinstance(options, ValidateOptions | SurveyOptions | AdviseOptions):
            matching = "" if self.where is None else " that the condition leaves"
            raise UsageError(f"the table has no data files{matching}", path=self.table.name)
        return listed

    def plan(self, listed: Sequence[FileEntry], options: Options) -> list[Task]:
        """Make a task for each data file. Raises UsageError, UnknownColumn."""
        self._command = options.command
        named, _, self._remarks = choose(self.table, options, from_properties=self.from_properties)
        files = [self._files[item.path] for item in listed]
        named = {kind: with_keys(choice, files) for kind, choice in named.items()}
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
        if (refusal := _common_refusal(report, self.table, self.words)) is not None:
            raise refusal
        return replace(
            report,
            command=self._command,
            rows=tuple(_with_table(row, self.table.name_in_sql, self.words) for row in report.rows),
            table=table_facts(self.table),
            version_before=self.table.version,
            remarks=(*([] if (text := read_from(self.table)) is None else [text]), *self._remarks, *report.remarks),
        )


def table_engine(engine: Engine, options: TableOptions, words: tuple[str, ...] = ()) -> TableEngine:
    """Make the engine for the snapshot that options name. `words`: of the engine, for hints. Raises: as `open_table`
    or `open_snapshot`."""
    table = opened(engine, options)
    return TableEngine(table, engine, options.where, options.from_properties, words)


def opened(engine: Engine, options: TableOptions) -> TableSnapshot:
    """Open the snapshot that options name: in the session of the Spark engine, otherwise without Spark. Raises: as
    `open_table` or `open_snapshot`."""
    if isinstance(engine, SparkEngine):
        return open_table(engine.session, options.table, snapshot=options.snapshot, as_of=options.time)
    return open_snapshot(options.table, snapshot=options.snapshot, as_of=options.time)


def read_from(table: TableSnapshot) -> str | None:
    """The remark on what was read instead of Spark's table; None if Spark opened it."""
    return None if table.origin is None else f"read without Spark: {table.origin}"


def _with_table(row: FileRow, table: str, words: tuple[str, ...]) -> FileRow:
    """The row with hints for the table instead of the file."""
    findings = tuple(replace(finding, hint=on_table(finding.hint, table, words)) for finding in row.findings)
    return replace(row, findings=findings, hint=on_table(row.hint, table, words))


def _common_refusal(report: DatasetReport, table: TableSnapshot, words: tuple[str, ...]) -> UsageError | None:
    """The common error of a request that files refuse, such as a value that isn't of the column's type: one error for
    the table instead of one for each file. None if files refuse it for several reasons, or none refuses it."""
    rows = [row for row in report.rows if row.exit_code == UsageError.exit_code and row.error is not None]
    messages = {(row.error or "").removeprefix(f"{row.path}: ") for row in rows}
    if len(messages) != 1:
        return None
    hints = {on_table(row.hint, table.name_in_sql, words) for row in rows}
    return UsageError(messages.pop(), path=table.name, hint=hints.pop() if len(hints) == 1 else None)
