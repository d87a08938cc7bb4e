"""bloomcli.index_build, bloomcli.index_update and bloomcli.index_inspect: an index of many files' filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bloomcli.commands.option import taken_path, taken_paths
from bloomcli.commands.options import FPP
from bloomcli.formats.keys import Keys
from bloomcli.functions.files import Files, Name, OnRow, RunOptions
from bloomcli.model.index import IndexFacts, IndexReport

if TYPE_CHECKING:
    from bloomcli.datasets.engine import Engine
    from bloomcli.indexing.build import OnTasks


def index_build(
    path: Files,
    columns: Sequence[str],
    *,
    output: Name | None = None,
    fpp: float = FPP,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
    session: Any = None,
    keys: Keys | None = None,
    allow_plaintext_index: bool = False,
) -> IndexReport:
    """Build an index of columns of many files, for `bloomcli.find(index=...)`.

    It uses the filters of Parquet and Mosaic files. A column without a filter that can be used is read, and so are
    the columns of ORC files. The files aren't changed.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths. A file needn't have all of them.
        output: the index, a path or a URI. It may be left out in a dry run.
        fpp: the mean false-positive rate of the index's filters, as far as the files' filters have it.
        overwrite: replace an existing file.
        force: replace an object that loses an object lock by it, and use a store that can't refuse the replacement
            when another program replaces the object at the same time.
        dry_run: write nothing; report, from the files' footers, what would be read.
        jobs: files at a time; by default the number of cores, and more for files in stores.
        keys: the keys of encrypted files: a `Keys`, or a mapping of its fields.
        allow_plaintext_index: index encrypted columns, too: anybody who reads the index can then test whether they
            have a value.
        fail_fast: stop at the first file that fails, and write nothing.
        on_row: called with each file's row when the file is done.
        session: a Spark session to run on, whose executors read the files.

    Returns:
        The report, with the rows of the files that failed: they don't raise, and aren't indexed.

    Raises:
        UsageError: no columns, no files, nowhere to write to, an existing file without `overwrite`.
        UnknownColumn: no file has one of the columns.
        UnreadableError: a directory can't be listed.
        WriteError: the index can't be written; an old one isn't changed.
    """
    from bloomcli.commands.options import IndexOptions, IndexTarget
    from bloomcli.indexing import build

    options = IndexOptions(
        columns=columns,
        fpp=fpp,
        dry_run=dry_run,
        allow_plaintext_index=allow_plaintext_index,
        keys=keys,
    )
    target = IndexTarget(output=output, overwrite=overwrite, force=force).checked(dry_run=dry_run)
    engine = _engine(RunOptions(jobs=jobs, fail_fast=fail_fast, on_row=on_row), session)
    return build.build(engine, taken_paths("path", path), options, target, on_tasks=_progress_of(on_row))


def index_update(
    path: Files,
    index: Name,
    *,
    force: bool = False,
    dry_run: bool = False,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
    session: Any = None,
    keys: Keys | None = None,
    allow_plaintext_index: bool = False,
) -> IndexReport:
    """Bring an index up to date with the files that paths name: only those that are new or changed are read.

    Files that don't exist any more, or that the paths don't name, are dropped. No file is dropped if a path doesn't
    exist or has no files. The new index replaces the old one when it is complete.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        index: the index, a path or a URI.

    The other arguments mean what they mean to `index_build`: force, dry_run, jobs, keys,
    allow_plaintext_index, fail_fast, on_row, session.

    Returns:
        The report.

    Raises:
        UsageError: no files.
        UnreadableError, CorruptFile: the index can't be read, or is damaged.
        SourceChanged: another program has replaced the index, which isn't changed.
        WriteError: the index can't be written; the old one isn't changed.
    """
    from bloomcli.commands.options import IndexTarget
    from bloomcli.indexing import build

    engine = _engine(RunOptions(jobs=jobs, fail_fast=fail_fast, on_row=on_row), session)
    target = IndexTarget(output=taken_path("index", index), overwrite=True, force=force)
    return build.update(
        engine,
        taken_paths("path", path),
        target,
        dry_run=dry_run,
        keys=keys,
        allow_plaintext_index=allow_plaintext_index,
        on_tasks=_progress_of(on_row),
    )


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
    from bloomcli.storage.registry import open_source

    with open_source(taken_path("index", index)) as source:
        return Index(source).facts()


def _engine(options: RunOptions, session: Any) -> Engine:
    from bloomcli.datasets.engine import choose_engine

    return choose_engine(jobs=options.jobs, fail_fast=options.fail_fast, session=session)


def _progress_of(on_row: OnRow | None) -> OnTasks | None:
    return None if on_row is None else lambda _: on_row
