"""The common part of commands on many files and on tables: their options, engines, rows, and the exit code."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

from bloomcli.cli import output
from bloomcli.cli.grouped import option
from bloomcli.cli.options import bundle, files_from_option, given_options, is_quiet, options_of, was_given
from bloomcli.cli.reports import Reports, save_all
from bloomcli.commands.option import ENCRYPTION, OUTPUT, RUN, TABLES
from bloomcli.commands.options import AddOptions, Options, TableOptions, WriteOptions
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.hints import listed
from bloomcli.model.paths import shown, shown_setting
from bloomcli.storage.names import read_list
from bloomcli.storage.os_errors import hint, reason
from bloomcli.storage.registry import read_file
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.datasets.engine import Engine
    from bloomcli.datasets.task import Task
    from bloomcli.model.dataset import DatasetReport, FileRow
    from bloomcli.storage.base import ManagedTable


F = TypeVar("F", bound=Callable[..., Any])

_TABLES_NAMED: Final = 3
"""Maximum number of tables that notes name."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The options that name the files, and the engine that works on them."""

    paths: tuple[str, ...]
    files_from: str | None
    jobs: int | None
    fail_fast: bool = False
    engine: str
    master: str | None
    conf: tuple[str, ...]
    table: TableOptions | None = None
    """The table that the files belong to, instead of paths."""

    @cached_property
    def single(self) -> str | None:
        """The file, if a single one is named; None for a dataset. Cached, because the file system may change.
        Raises UnreadableError."""
        from bloomcli.storage.listing import is_dataset

        if self.table is None and self.files_from is None and self.engine == "local" and not is_dataset(self.paths):
            return self.paths[0]
        return None

    @property
    def engine_words(self) -> tuple[str, ...]:
        """The options of Spark, for command lines in reports. Values that may be secret are hidden."""
        engine = ("--engine", "spark") if self.engine == "spark" and self.table is None else ()
        master = () if self.master is None else ("--master", self.master)
        return (*engine, *master, *(word for pair in self.conf for word in ("--conf", shown_setting(pair))))


def read_named(source: str) -> bytes:
    """The bytes of a file that an option names; ``-`` is standard input. Raises UnreadableError."""
    try:
        if source != "-":
            return read_file(source)
        data: bytes | None = sys.stdin.buffer.read()
    except OSError as error:
        raise UnreadableError(f"can't be read: {reason(error)}", path=source, hint=hint(error)) from None
    if data is None:  # another process that shares standard input made it non-blocking
        raise UnreadableError("can't be read: it is non-blocking and has no data yet", path=source)
    return data


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE", ctx, param)
    return values


engine_options: Callable[[F], F] = bundle(
    option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        help="Work on this machine, or on Spark.",
        group=TABLES,
    ),
    option("--master", metavar="URL", help="Spark's master, such as local[4] or spark://host:7077.", group=TABLES),
    option(
        "--conf",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_pairs,
        help="A setting of Spark; repeats.",
        group=TABLES,
    ),
)
"""Options that select the engine."""


def in_dataset(function: Callable[..., Any]) -> Callable[..., Any]:
    """Combine a command's arguments about its files and the engine in one ``dataset`` argument."""

    @wraps(function)
    def gathered(*, files: Sequence[str], **arguments: Any) -> Any:
        names = ("files_from", "jobs", "fail_fast", "engine", "master", "conf", "table")
        chosen = {name: arguments.pop(name) for name in names if name in arguments}
        return function(dataset=Dataset(paths=tuple(files), **chosen), **arguments)

    return gathered


def dataset_options(function: F, *, changes: bool = False, findings: bool = False) -> F:
    """Add the options that all commands have for datasets, combined in one ``dataset`` argument.

    Args:
        function: the command's function.
        changes: the command changes files.
        findings: the command has findings, which ``--quiet`` doesn't leave out.
    """
    options = bundle(
        files_from_option(),
        option(
            "-j",
            "--jobs",
            type=click.IntRange(min=1),
            metavar="N",
            help="Files processed at a time.  [default: cores; 4 for each core, 8 to 32, if files are in a store]",
            group=RUN,
        ),
        option(
            "--fail-fast",
            is_flag=True,
            help="Stop at the first file that fails" + ("; change no file if one is refused." if changes else "."),
            group=RUN,
        ),
        engine_options,
        option(
            "-q",
            "--quiet",
            is_flag=True,
            help=f"Print only errors{' and findings' if findings else ''}, without progress; formats other than text"
            " are still printed.",
            group=OUTPUT,
        ),
    )

    @wraps(function)
    def with_quiet(**arguments: Any) -> Any:
        quiet_rows = arguments.pop("quiet") and "max_per_rule" not in arguments  # validate still prints findings
        if quiet_rows and arguments.get("every"):
            raise UsageError("--quiet prints no files, and --all prints all of them", hint="leave one of them out")
        return in_dataset(function)(**arguments)

    return options(with_quiet)  # type: ignore[return-value]


def run(dataset: Dataset, options: Options, form: str, *, every: bool = False, reports: Reports = ()) -> int:
    """Run a command on a dataset, print its report, write it to `reports`, and return the exit code.

    Raises:
        UsageError: contradicting options, or no files.
    """
    from bloomcli.datasets.engine import plan_files

    if dataset.table is not None and isinstance(options, WriteOptions):
        from bloomcli.tables.change import change_table
        from bloomcli.tables.opening import open_table
        from bloomcli.tables.reading import session_of

        engine = engine_of(dataset, changing=True)
        with output.Bars() as bars:
            table = open_table(session_of(engine), dataset.table.table)
            report = change_table(table, engine, options, dataset.table, fail_fast=dataset.fail_fast, progress=bars)
        return write(report, form, every=every)
    paths = named_paths(dataset)
    engine = engine_of(dataset, changing=isinstance(options, WriteOptions))
    return write(run_tasks(engine, plan_files(engine, paths, options)), form, every=every, reports=reports)


def run_tasks(engine: Engine, tasks: Sequence[Task]) -> DatasetReport:
    """Run tasks, with a progress bar. All tasks that change files are checked before the first file is changed.

    Raises:
        KeyboardInterrupt: Ctrl-C; the text is the progress of the run.
    """
    from bloomcli.datasets import engine as engines
    from bloomcli.model.dataset import Status

    done = 0
    with output.Bars() as bars:
        move_on = meter(bars, tasks)

        def on_row(row: FileRow) -> None:
            nonlocal done
            done += row.status is not Status.FAILED
            move_on(row)

        try:
            return engines.run_tasks(
                engine, tasks, on_row=on_row, on_checked=meter(bars, tasks, "checked files", "checked ")
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_far(engine, tasks, done)) from None


def _how_far(engine: Engine, tasks: Sequence[Task], done: int) -> str:
    """The number of files that a stopped run has done, and how to continue. Worker processes may have done more files
    than they have reported; Spark reports all files at the end."""
    from bloomcli.datasets.engine import LocalEngine

    here = isinstance(engine, LocalEngine)
    far = f"{done:,} of {plural(len(tasks), 'file')} done" if here else "files that are done stay done"
    if isinstance(engine, LocalEngine) and engine.jobs != 1:
        far = f"at least {far}"
    options = tasks[0].options
    if not isinstance(options, WriteOptions) or options.dry_run:
        return far if here else ""
    if isinstance(options, AddOptions) and options.replace:
        return f"{far}; each file is whole, the original or the new one; --replace starts from the first file again"
    return f"{far}; start it again to go on"


def named_paths(dataset: Dataset) -> Sequence[str]:
    """The paths in the arguments, followed by those in the list; empty for a table.

    Raises:
        UsageError: there are none.
        UnreadableError: the list can't be read.
    """
    if dataset.table is not None:
        return []
    if dataset.files_from is None:
        if not dataset.paths:
            raise click.UsageError("Missing argument 'FILE...'.")
        return dataset.paths
    # names of files are bytes, and need not be text in the locale
    paths = read_list(map(os.fsdecode, BytesIO(read_named(dataset.files_from))), dataset.paths)
    if not paths:
        raise UsageError("the list names no files", path=dataset.files_from)
    return paths


def engine_of(dataset: Dataset, *, changing: bool = False) -> Engine:
    """The engine that the options select. `changing`: the command changes files. For other commands on a table, the
    engine finds the table's files. Raises UsageError, UnsupportedError."""
    from bloomcli.datasets.engine import choose_engine

    check_engine_options(dataset, changing=changing)
    # PySpark warns about pandas' version, which bloom doesn't use; under spark-submit, the warning mixes with results
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    engine = choose_engine(
        dataset.engine,
        jobs=dataset.jobs,
        fail_fast=dataset.fail_fast,
        master=dataset.master,
        conf=dict(pair.split("=", 1) for pair in dataset.conf),
        on_tables=None if is_quiet() else _say_tables,
    )
    if dataset.table is None or changing:
        return engine
    from bloomcli.tables.reading import table_engine

    return table_engine(engine, dataset.table, dataset.engine_words)


def _say_tables(tables: Sequence[ManagedTable]) -> None:
    """Say that files of tables are read as plain files."""
    for table in tables[:_TABLES_NAMED]:
        name = table.name_to_read
        instead = "" if name is None else f"; --table {shlex.quote(name)} takes its current files"
        output.say(
            f"note: {shown(table.path)} is {table.kind.value}; its files are read as plain files, and those that it"
            f" has replaced or removed count, too{instead}",
            err=True,
        )
    if len(tables) > _TABLES_NAMED:
        output.say(f"note: the same for {plural(len(tables) - _TABLES_NAMED, 'more table')}", err=True)


def check_engine_options(dataset: Dataset, *, changing: bool) -> None:
    """Raise UsageError for options that have no meaning for the selected engine."""
    if dataset.engine == "spark":
        if dataset.jobs is not None:
            raise UsageError(
                "--jobs is for the local engine", hint="Spark's cores are set by --master local[N] or --conf"
            )
        if dataset.fail_fast and not changing:
            raise UsageError(
                "--fail-fast on Spark is for commands that change files: they check all before they change one",
                hint="leave it out: on Spark, files that fail are in the report",
            )
    elif dataset.master is not None or dataset.conf:
        raise UsageError("--master and --conf are for Spark", hint="add --engine spark")


def meter(
    bars: output.Bars, tasks: Sequence[Task], phase: str = "files", before: str = ""
) -> Callable[[FileRow], None]:
    """A function that advances a progress bar by each finished file."""
    files = len(tasks)
    sizes = {t.path: max(t.size, 0) for t in tasks} if bars.shown else {}
    total = sum(sizes.values())
    files_done = bytes_done = 0

    def on_row(row: FileRow) -> None:
        nonlocal files_done, bytes_done
        files_done += 1
        bytes_done += sizes.get(row.path, 0)
        bars.describe(phase, f"{before}{files_done:,} of {plural(files, 'file')}")
        bars(phase, bytes_done, total)

    return on_row


def write(report: DatasetReport, form: str, *, every: bool = False, reports: Reports = ()) -> int:
    """Print a dataset's report (text has all rows if `every` is true), and write it to `reports`."""
    if is_quiet() and form == "text":
        output.say_problems((row.error, row.hint) for row in report.rows if row.error is not None)
        if report.not_started:
            text = f"bloom: {plural(report.not_started, 'file')} not started: --fail-fast ended the run"
            output.say(text, err=True)
    _write(report, form, None, every=every)
    save_all(reports, lambda other, stream: _write(report, other, stream, every=every))
    return report.exit_code


def _write(report: DatasetReport, form: str, stream: TextIO | None, *, every: bool) -> None:
    """Write the report in one form to a stream, or to standard output."""
    if form == "csv" and every:
        from bloomcli.report import csv

        csv.write_rows(report, sys.stdout if stream is None else stream, every=True)
    else:
        from bloomcli.report import text_dataset

        output.write("dataset", report, form, partial(text_dataset.dataset, every=every), stream)


_CHANGES: Final = ("commit_every", "new_row_ids")
_SNAPSHOTS: Final = ("snapshot", "as_of")
_IN_PLACE: Final = "the table's own commit puts new files in place"
_INSTEAD: Final = {
    "files_from": "--where chooses some of the table's files",
    "output": _IN_PLACE,
    "in_place": _IN_PLACE,
    "force": _IN_PLACE,
    "overwrite": _IN_PLACE,
}
"""Options that select files or the place of new ones, which the table determines, with hints."""


def table_options(*, changes: bool = False, properties: bool = False, values: bool = False) -> Callable[[F], F]:
    """Add the options for tables, combined in one ``table`` argument; None without ``--table``.

    Args:
        changes: the command changes files; other commands read a snapshot.
        properties: the command has ``--from-properties``.
        values: the arguments of the command may be values instead of files.
    """
    names = ("table", "where", *(["from_properties"] * properties), *(_CHANGES if changes else _SNAPSHOTS))

    def add(function: F) -> F:
        @wraps(function)
        def gathered(**arguments: Any) -> Any:
            chosen = {name: arguments.pop(name) for name in names}
            if chosen["table"] is None:
                option_names = [name for name in names if was_given(name)]
                if option_names:
                    raise UsageError(f"{_option(option_names[0])} is for tables", hint="add --table NAME")
                return function(table=None, **arguments)
            _check(arguments, values=values, changes=changes, table=chosen["table"])
            arguments["engine"] = "spark" if changes else _reading_engine(chosen["table"], arguments)
            return function(table=TableOptions(**chosen), **arguments)

        part = options_of(TableOptions, only=[name for name in names if name != "table"], before="With --table: ")
        return bundle(options_of(TableOptions, only=["table"]), part)(gathered)  # type: ignore[return-value]

    return add


def _option(name: str) -> str:
    """The option's name for a parameter."""
    return "--" + name.replace("_", "-")


def no_files(path: str, hint: str | None = None) -> UsageError:
    """The error for --table with a file."""
    return UsageError("--table takes no files: the table's snapshot names them", path=path, hint=hint)


def _reading_engine(table: str, arguments: dict[str, Any]) -> str:
    """The engine of a command that reads a table."""
    from bloomcli.tables.without_spark import reads_with_spark

    engine = arguments["engine"] if was_given("engine") else None
    described = was_given("master") or was_given("conf")
    return "spark" if reads_with_spark(table, engine, described=described) else "local"


def _check(arguments: dict[str, Any], *, values: bool, changes: bool, table: str) -> None:
    """Raise UsageError for options that name files or their targets, or another engine."""
    if not values and arguments["files"]:
        raise no_files(arguments["files"][0], hint="--where chooses some of the table's files")
    for name, instead in _INSTEAD.items():
        if name in arguments and was_given(name):
            raise UsageError(f"--table and {_option(name)} exclude each other", hint=instead)
    if changes:
        _check_changes(arguments, table)


def _check_changes(arguments: dict[str, Any], table: str) -> None:
    """Raise UsageError for another engine than Spark, and for a table that isn't named as in Spark."""
    if was_given("engine") and arguments["engine"] != "spark":
        raise UsageError(
            "--table works on Spark: the table's catalog and its commits are those of a Spark session",
            hint="leave out --engine local",
        )
    from bloomcli.tables.names import check_named_in_sql

    context = click.get_current_context()
    words = tuple(_given_words(context.params))
    check_named_in_sql(table, str(context.info_name), arguments.get("columns") or (), words)


def _given_words(values: Mapping[str, Any]) -> Iterator[str]:
    """The other options of the running command as words, without keys and without secret values of settings."""
    for param, flag in given_options(but={"table", "columns"}):
        if getattr(param, "group", ENCRYPTION) != ENCRYPTION:
            value = values[str(param.name)]
            for word in value if isinstance(value, tuple) else (value,):
                yield flag
                if not isinstance(word, bool):
                    yield {"exclude": listed, "conf": shown_setting}.get(str(param.name), str)(word)
