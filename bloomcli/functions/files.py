"""The file argument of the package's functions: one file, or a directory, a pattern, or a list of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from datetime import datetime
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast, overload

from bloomcli.commands.option import Checked, option, split_keywords, taken_path, taken_paths
from bloomcli.commands.options import Options, TableOptions, WriteOptions
from bloomcli.concurrency.threads import Progress
from bloomcli.datasets.engine import Engine, choose_engine, plan_files, run_tasks
from bloomcli.errors import UsageError
from bloomcli.model.dataset import DatasetReport, FileRow
from bloomcli.storage.listing import is_dataset

Name = str | os.PathLike[str]
"""A path, a pattern or a URI."""

Files = Name | Sequence[Name]
"""A file, a directory, a pattern, a URI; or a list of them."""


@dataclass(frozen=True, slots=True)
class Table:
    """An Iceberg or Delta table, to read: the `path` of `inspect`, `probe`, `find`, `validate`, `gate`, `advise` and
    `trial`, as ``--table`` on the command line. Deleted rows aren't found, and removed files aren't read.

    It is read without Spark, unless `find` or `gate` gets a `session`, whose catalogs then have the name. A table's
    directory as a plain path names all files in it. `bloomcli.spark` changes tables.

    Attributes:
        name: the table's directory or URI, an Iceberg table's ``*.metadata.json``, ``delta.`/path` ``, or
            ``catalog.db.table`` of a catalog in PyIceberg's configuration.
        where: a condition in SQL: only files that may hold rows of it.
        snapshot: the snapshot's id (Iceberg) or the version (Delta); the newest if None.
        as_of: the time whose snapshot is read; in UTC without a zone.
        from_properties: `validate` requires the filters that the table's properties request.

    Raises:
        UsageError: an argument of another type, or both `snapshot` and `as_of`.
    """

    name: Name
    _: KW_ONLY
    where: str | None = None
    snapshot: int | None = None
    as_of: str | datetime | None = None
    from_properties: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        self.options()

    def options(self) -> TableOptions:
        """The options of ``--table``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return TableOptions(table=taken_path("name", values.pop("name")), **values)


OnRow = Callable[[FileRow], None]
"""Called with each file's row when the file is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Checked):
    """Options of a run over many files."""

    jobs: int | None = option(
        None,
        "For many files: files at a time.  [default: the number of cores, and more for files in stores]",
        "number",
        least=1,
        in_cli=False,
    )
    fail_fast: bool = option(
        False,
        "For many files: stop at the first file that fails, and change no file if one is refused.",
        "flag",
        in_cli=False,
    )
    on_row: OnRow | None = option(
        None, "For many files: called with each file's row when the file is done.", "callback", in_cli=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressOption(Checked):
    """How the progress of one file is reported."""

    progress: Progress | None = option(
        None,
        'For one file: called with (phase, bytes done, total bytes), from several threads. The phase is "copy",'
        ' "decode" or "check".',
        "callback",
        in_cli=False,
    )


P = ParamSpec("P")
O = TypeVar("O", bound=Options)  # noqa: E741  options
R_co = TypeVar("R_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)
One = TypeVar("One")


class FilesFunction(Protocol[P, R_co, D_co]):
    """A function that takes files. A single path names one file to a type checker; a list names several files."""

    @overload
    def __call__(self, path: Name, *args: P.args, **options: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, path: Sequence[Name] | Table, *args: P.args, **options: P.kwargs) -> D_co: ...


def takes_files(
    dataset: Callable[..., D_co],
) -> Callable[[Callable[Concatenate[Name, P], One]], FilesFunction[P, One, D_co]]:
    """Declare that a function returns the report `dataset` for a list of files. It only affects type checkers."""
    del dataset

    def declared(function: Callable[Concatenate[Name, P], One]) -> FilesFunction[P, One, D_co]:
        return cast("FilesFunction[P, One, D_co]", function)

    return declared


def run(
    path: Files | Table,
    options: O,
    keywords: Mapping[str, Any],
    single: Callable[Concatenate[Name, O, ...], One],
    dataset: Callable[[Sequence[str], O, Engine, OnRow | None], object] | None = None,
) -> One:
    """Run a command on one file, or on many files.

    Args:
        path: a text or a path names one file, unless it is a directory or a pattern. A list names many files, even if
            it has one entry.
        options: the command's options; those of commands that change files refuse a table.
        keywords: the function's keywords, of which those of `RunOptions` and `ProgressOption` are taken.
        single: runs the command on one file, with the path, the options, and `progress` if given.
        dataset: runs the command on many files; by default `run_dataset`.

    Returns:
        The report on one file or many files. `takes_files` declares which, for type checkers.

    Raises:
        UsageError: contradicting options, or no files.
    """
    of_run, of_progress = split_keywords((RunOptions, ProgressOption), keywords)
    run_options, progress = RunOptions(**of_run), ProgressOption(**of_progress).progress
    named = () if isinstance(path, Table) else taken_paths("path", path)
    if isinstance(path, str | os.PathLike) and not is_dataset(named):
        return single(path, options) if progress is None else single(path, options, progress=progress)
    if not named and not isinstance(path, Table):
        raise UsageError("no files are named")
    if progress is not None:
        raise UsageError("progress is for one file", hint="on_row is called with each file")
    engine = choose_engine(jobs=run_options.jobs, fail_fast=run_options.fail_fast)
    if isinstance(path, Table):
        engine = engine_of(path, engine, options)
    return cast("One", (dataset or run_dataset)(named, options, engine, run_options.on_row))


def engine_of(table: Table, engine: Engine, options: Options) -> Engine:
    """The engine for a table's files. Raises: as `bloomcli.tables.reading.table_engine`; UsageError if the command
    changes files."""
    if isinstance(options, WriteOptions):
        raise UsageError(
            f"{options.command} changes tables with Spark",
            path=os.fspath(table.name),
            hint="the functions of bloomcli.spark change tables",
        )
    from bloomcli.tables.reading import table_engine

    return table_engine(engine, table.options())


def options_of(kind: Callable[..., O], keywords: Mapping[str, Any], **more: Any) -> O:
    """The options of a command by the keywords of a function that are its."""
    return kind(**more, **{name: value for name, value in keywords.items() if name not in _OF_RUNS})


def run_dataset(paths: Sequence[str], options: Options, engine: Engine, on_row: OnRow | None) -> DatasetReport:
    """Run a command on many files. Raises: as `bloomcli.datasets.engine.plan_files` and `run_tasks`."""
    return run_tasks(engine, plan_files(engine, paths, options), on_row=on_row)


_OF_RUNS: Final = {field.name for kind in (RunOptions, ProgressOption) for field in fields(kind)}
