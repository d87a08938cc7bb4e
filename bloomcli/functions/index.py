"""bloomcli.index_build, bloomcli.index_update and bloomcli.index_inspect: an index of many files' filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from bloomcli.commands.keywords import IndexBuildKeywords, IndexUpdateKeywords
from bloomcli.commands.option import split_keywords, taken_path, taken_paths, takes_options
from bloomcli.commands.options import OF_NEW_INDEXES, IndexOptions, IndexTarget
from bloomcli.datasets.engine import Engine, choose_engine
from bloomcli.functions.files import Files, Name, RunOptions
from bloomcli.model.index import IndexFacts, IndexReport
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    from bloomcli.indexing.build import OnTasks


@takes_options(IndexOptions, IndexTarget, RunOptions)
def index_build(
    path: Files, columns: Sequence[str], *, session: Any = None, **options: Unpack[IndexBuildKeywords]
) -> IndexReport:
    """Build an index of columns of many files, for `bloomcli.find(index=...)`.

    It uses the filters of Parquet and Mosaic files. A column without a filter that can be used is read, and so are
    the columns of ORC files. The files aren't changed.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths. A file needn't have all of them.
        session: a Spark session to run on, whose executors read the files.
        output: the index, a path or a URI. It may be left out in a dry run.
        {options}

    Returns:
        The report, with the rows of the files that failed: they don't raise, and aren't indexed.

    Raises:
        UsageError: no columns, no files, nowhere to write to, an existing file without `overwrite`.
        UnknownColumn: no file has one of the columns.
        UnreadableError: a directory can't be listed.
        WriteError: the index can't be written; an old one isn't changed.
    """
    from bloomcli.indexing import build

    of_index, of_target, of_run = split_keywords((IndexOptions, IndexTarget, RunOptions), options)
    chosen = IndexOptions(columns=columns, **of_index)
    target = IndexTarget(**of_target).checked(dry_run=chosen.dry_run)
    engine, on_tasks = _engine(RunOptions(**of_run), session)
    return build.build(engine, taken_paths("path", path), chosen, target, on_tasks=on_tasks)


@takes_options(IndexOptions, IndexTarget, RunOptions, without=OF_NEW_INDEXES)
def index_update(
    path: Files, index: Name, *, session: Any = None, **options: Unpack[IndexUpdateKeywords]
) -> IndexReport:
    """Bring an index up to date with the files that paths name: only those that are new or changed are read.

    Files that don't exist any more, or that the paths don't name, are dropped. No file is dropped if a path doesn't
    exist or has no files. The new index replaces the old one when it is complete.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        index: the index, a path or a URI.
        session: a Spark session to run on, whose executors read the files.
        {options}

    Returns:
        The report.

    Raises:
        UsageError: no files.
        UnreadableError, CorruptFile: the index can't be read, or is damaged.
        SourceChanged: another program has replaced the index, which isn't changed.
        WriteError: the index can't be written; the old one isn't changed.
    """
    from bloomcli.indexing import build

    of_index, of_target, of_run = split_keywords((IndexOptions, IndexTarget, RunOptions), options)
    target = IndexTarget(output=taken_path("index", index), overwrite=True, **of_target)
    engine, on_tasks = _engine(RunOptions(**of_run), session)
    return build.update(engine, taken_paths("path", path), target, on_tasks=on_tasks, **of_index)


def index_inspect(index: Name) -> IndexFacts:
    """Describe an index: its columns, the size and the measured rate of their filters, and its parts.

    Args:
        index: the index, a path or a URI.

    Returns:
        The facts, from the footer and the tables; no filter is read.

    Raises:
        UnreadableError, CorruptFile: the index can't be read, or is damaged.
        UnsupportedError: it was written for a later version of the format.
    """
    from bloomcli.index.reader import Index

    with open_source(taken_path("index", index)) as source:
        return Index(source).facts()


def _engine(options: RunOptions, session: Any) -> tuple[Engine, OnTasks | None]:
    """The engine, and what is called with its tasks."""
    engine = choose_engine(jobs=options.jobs, fail_fast=options.fail_fast, session=session)
    on_row = options.on_row
    return engine, None if on_row is None else lambda _: on_row
