"""The file argument of the package's functions: one file, or a directory, a pattern, or a list of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from bloomcli.errors import UsageError
from bloomcli.model.dataset import FileRow
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bloomcli.commands.options_base import Options
    from bloomcli.commands.progress import Progress
    from bloomcli.datasets.engine import Engine
    from bloomcli.model.dataset import DatasetReport

Name = str | os.PathLike[str]
"""A path, a pattern or a URI."""

Files = Name | Sequence[Name]
"""A file, a directory, a pattern, a URI; or a list of them."""

OnRow = Callable[[FileRow], None]
"""Called with each file's row when the file is done."""


class RunOptions(NamedTuple):
    """Options of a run over many files, as in `bloomcli.add`."""

    jobs: int | None
    fail_fast: bool
    on_row: OnRow | None


P = ParamSpec("P")
O = TypeVar("O", bound="Options")  # noqa: E741  options
R_co = TypeVar("R_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)
One = TypeVar("One")


class FilesFunction(Protocol[P, R_co, D_co]):
    """A function that takes files. A single path names one file to a type checker; a list names several files."""

    @overload
    def __call__(self, path: Name, *args: P.args, **options: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, path: Sequence[Name], *args: P.args, **options: P.kwargs) -> D_co: ...


def takes_files(
    dataset: Callable[..., D_co],
) -> Callable[[Callable[Concatenate[Name, P], One]], FilesFunction[P, One, D_co]]:
    """Declare that a function returns the report `dataset` for a list of files. It only affects type checkers."""
    del dataset

    def declared(function: Callable[Concatenate[Name, P], One]) -> FilesFunction[P, One, D_co]:
        return cast("FilesFunction[P, One, D_co]", function)

    return declared


def run(
    path: Files,
    options: O,
    single: Callable[Concatenate[Name, O, ...], One],
    run_options: RunOptions,
    *,
    progress: Progress | None = None,
    dataset: Callable[[Sequence[str], O, Engine, OnRow | None], object] | None = None,
) -> One:
    """Run a command on one file, or on many files.

    Args:
        path: a text or a path names one file, unless it is a directory or a pattern. A list names many files, even if
            it has one entry.
        options: the command's options.
        single: runs the command on one file, with the path, the options, and `progress` if given.
        run_options: options for many files.
        progress: called with the progress of one file.
        dataset: runs the command on many files; by default `run_dataset`.

    Returns:
        The report on one file or many files. `takes_files` declares which, for type checkers.

    Raises:
        UsageError: contradicting options, or no files.
    """
    from bloomcli.datasets.engine import choose_engine
    from bloomcli.storage.listing import is_dataset

    if isinstance(path, str | os.PathLike):
        if not is_dataset([os.fspath(path)]):
            return single(path, options) if progress is None else single(path, options, progress=progress)
        named = [os.fspath(path)]
    else:
        named = [os.fspath(one) for one in path]
    if not named:
        raise UsageError("no files are named")
    if progress is not None:
        raise UsageError("progress is for one file", hint="on_row is called with each file")
    engine = choose_engine(jobs=run_options.jobs, fail_fast=run_options.fail_fast)
    return cast("One", (dataset or run_dataset)(named, options, engine, run_options.on_row))


def run_dataset(paths: Sequence[str], options: Options, engine: Engine, on_row: OnRow | None) -> DatasetReport:
    """Run a command on many files. Raises: as `bloomcli.datasets.engine.plan_files` and `run_tasks`."""
    from bloomcli.datasets.engine import plan_files, run_tasks

    return run_tasks(engine, plan_files(engine, paths, options), on_row=on_row)
