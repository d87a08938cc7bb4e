"""Plans a task for each file of a dataset: its output, and its row if the file can't be worked on. Checks every file
before the first one is changed: files that are refused, or need no change, get their row then.

    plan -> check: a dry run of each task -> run the remaining tasks

With an output directory, outputs mirror the tree of the inputs below it, from any store to any other. Files of
tables are detected here for remote stores, where a check is a request; for local files, the task detects them.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Final

from bloomcli.commands.options import Options, WriteOptions
from bloomcli.datasets.task import DryRunRequests, OnRow, Task, failed_row
from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.model.change import OUTPUT_EXISTS
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.paths import shown
from bloomcli.model.traffic import traffic_of
from bloomcli.storage.base import FileEntry, ManagedTable, Store
from bloomcli.storage.listing import expand, spelling
from bloomcli.storage.managed_tables import TableSearch, table_error, tables_of
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of
from bloomcli.storage.traffic import Meter, counted_by, current

_PATH_OF_URI: Final = re.compile(r"[a-z][a-z0-9+.-]+:/(?!/)")
"""A URI as `pathlib.Path` spells it, with one slash."""


OnTables = Callable[[Sequence[ManagedTable]], object]
"""A function that is called with the tables that the listed files belong to, if there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEngine(ABC):
    """An engine for the files that paths name: see `engine.Engine`."""

    fail_fast: bool = False
    """Change nothing if the check refuses a file. The local engine stops at the first file that fails."""
    on_tables: OnTables | None = None
    meter: Meter = field(default_factory=Meter, init=False, repr=False, compare=False)
    """Requests to stores that no file's row counts."""

    def find(self, paths: Sequence[str], options: Options) -> Sequence[FileEntry]:
        """List the files that paths name.

        `on_tables` isn't called for a command that changes files in place, because it refuses files of tables, nor if
        a store can't tell to which tables the files belong. None saves the lookups.
        """
        with counted_by(self.meter):
            if self.on_tables is None or (isinstance(options, WriteOptions) and options.output is None):
                return expand(paths)
            managed: set[ManagedTable] = set()
            listed = expand(paths, managed)
            with suppress(UnreadableError):
                tables = tables_of(paths, listed, managed)
                if tables:
                    self.on_tables(tables)
            return listed

    def plan(self, listed: Sequence[FileEntry], options: Options) -> Sequence[Task]:
        """Make a task for each file."""
        with counted_by(self.meter):
            return plan(listed, options)

    def check(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> Sequence[Task]:
        """Check every file to change."""
        with counted_by(self.meter):
            return check(tasks, partial(self._run, fail_fast=False, on_row=on_row), fail_fast=self.fail_fast)

    def run(self, tasks: Sequence[Task], *, on_row: OnRow | None = None) -> DatasetReport:
        """Run the tasks."""
        with counted_by(self.meter):
            report = self._run(tasks, fail_fast=self.fail_fast, on_row=on_row)
        return replace(report, besides=self.meter.total or None)

    @abstractmethod
    def _run(self, tasks: Sequence[Task], *, fail_fast: bool, on_row: OnRow | None) -> DatasetReport:
        """Run the tasks."""


def plan(listed: Iterable[FileEntry], options: Options) -> Sequence[Task]:
    """Make a task for each file. With an output directory, outputs mirror the tree of the inputs below it.

    Raises:
        UsageError: options contradict each other or fit no file; there is no target, or there are two; two files have
            the same output.
    """
    with convert_os_errors():
        options, files = options.checked(), listed if isinstance(listed, Sequence) else list(listed)
        if isinstance(options, WriteOptions):
            _check_target(options)
            if options.output is not None:
                return list(_mirrored(files, options, os.fspath(options.output)))
        several = len(files) > 1
        tasks = [_task(item, options, several=several) for item in files]
        if isinstance(options, WriteOptions):  # in place, or a dry run of that
            tasks = list(_each_once(files, tasks))
            if not options.force:
                tasks = _without_tables(tasks)
        return tasks


def _mirrored(listed: Sequence[FileEntry], options: WriteOptions, output: str) -> Iterator[Task]:
    """Yield tasks with their outputs. Files that an earlier run wrote are left out."""
    store, spell = store_of(output), spelling()
    # files of one tree have distinct paths below it, and so do their outputs
    one_tree = len({item.path.removesuffix(item.relative) for item in listed}) == 1

    @cache
    def directory(path: str) -> str:
        return spell(path + "file").removesuffix("file")

    home = directory(store.mirrored(output, "file").removesuffix("file"))
    outputs: dict[str, str] = {}
    for item in listed:
        task = _task(item, options, several=len(listed) > 1)
        if task.row is not None:
            yield task
            continue
        try:
            target = store.mirrored(output, item.relative)
        except UsageError as error:
            error.path = shown(item.path)
            yield replace(task, row=failed_row(item.path, error))
            continue
        real_path = spell(item.path)
        if real_path == spell(target):
            raise UsageError("the output is the input", path=item.path, hint="--in-place replaces files safely")
        if (item.walked or item.matched) and real_path.startswith(home):
            above = directory(item.path.removesuffix(item.relative))
            if home != above and home.startswith(above):
                continue  # an earlier run wrote it: the output directory lies below the input directory
        other = item.path if one_tree else outputs.setdefault(target, item.path)
        if other != item.path:
            raise UsageError(
                f"{other} and {item.path} would both become {target}", hint="name the directory above them"
            )
        yield replace(task, output=target)


def _check_target(options: WriteOptions) -> None:
    """Raise UsageError unless the options name exactly one target."""
    if options.output is not None and options.in_place:
        raise UsageError("--output and --in-place exclude each other", hint="leave one of them out")
    if options.output is None and not options.in_place and not options.dry_run:
        raise UsageError(
            "nowhere to write to",
            hint="give -o DIRECTORY, or --in-place to replace the files, or --dry-run to only see what would be done",
        )
    if options.output is not None and _PATH_OF_URI.match(os.fspath(options.output)):
        raise UsageError(
            "a URI has two slashes after its scheme",
            path=os.fspath(options.output),
            hint="give it as text: pathlib.Path drops one of them",
        )


def _task(item: FileEntry, options: Options, *, several: bool) -> Task:
    row = None
    if item.problem is not None:
        row = failed_row(item.path, item.problem)
    elif item.skip_reason is not None:
        row = FileRow(path=item.path, status=Status.SKIPPED, reason=item.skip_reason)
    return Task(
        options=options,
        path=item.path,
        size=item.size,
        walked=item.walked or (several and item.path.rpartition("/")[2].startswith((".", "_"))),
        row=row,
    )


def _each_once(listed: Sequence[FileEntry], tasks: Iterable[Task]) -> Iterator[Task]:
    """If symbolic links give a file several names, keep the task of the file's own name, or of the first link."""
    led_to = {link for item in listed if (link := store_of(item.path).link_target(item.path)) is not None}
    if not led_to:
        yield from tasks
        return
    spell = spelling()
    own = ((spell(item.path), item.path) for item in listed if store_of(item.path).link_target(item.path) is None)
    paths = {spelled: path for spelled, path in own if spelled in led_to}
    for task in tasks:
        other = task.path
        link = None if task.row is not None else store_of(task.path).link_target(task.path)
        if link is not None:
            other = paths.setdefault(link, task.path)
        if other == task.path:
            yield task
        else:
            row = FileRow(path=task.path, status=Status.SKIPPED, reason=f"a link to the same file as {other}")
            yield replace(task, row=row)


def _without_tables(tasks: Sequence[Task]) -> list[Task]:
    """The tasks. Remote files that belong to tables get the row of a failure."""
    of_store: dict[Store, list[str]] = {}
    for task in tasks:
        store = store_of(task.path)
        if store.remote and task.row is None:
            of_store.setdefault(store, []).append(task.path)
    searches = {store: TableSearch(store, paths) for store, paths in of_store.items()}
    return [_with_table(task, searches.get(store_of(task.path))) for task in tasks]


def _with_table(task: Task, tables: TableSearch | None) -> Task:
    if tables is None or task.row is not None:
        return task
    try:
        table = tables.above(task.path)
    except BloomError as error:
        return replace(task, row=failed_row(task.path, error))
    if table is not None and table.keeps_filters:
        return task  # the command decides, with the file's filters
    if table is not None:
        columns = task.options.columns if isinstance(task.options, WriteOptions) else ()
        return replace(task, row=failed_row(task.path, table_error(task.path, table, task.command, columns)))
    return replace(task, no_table=True)


def check(
    tasks: Sequence[Task], run: Callable[[Sequence[Task]], DatasetReport], *, fail_fast: bool
) -> Sequence[Task]:
    """Dry-run the tasks. A task whose file is refused or needs no change gets its row.

    The check reads footers, and existing filters if the command measures them. It doesn't see damage in a column's
    pages, or later changes of a file. A plan that has to read columns is made once, with the change, unless the first
    failure ends the run.

    Args:
        tasks: tasks that change files. A single task isn't checked: its file is planned before it is changed anyway.
        run: an engine's function that runs tasks and returns a row for each.
        fail_fast: nothing is changed if a file is refused.

    The requests of the check are counted at `storage.traffic.current()`, except those of files that got their row:
    the row has them. In a dry run, rows have the requests of both the check and the change.
    """
    open_, dry_run = 0, False
    for task in tasks:
        if not isinstance(task.options, WriteOptions):
            return tasks
        open_ += task.row is None and (fail_fast or not task.options.reads_to_plan)
        dry_run = dry_run or task.dry_run
    if open_ < 2:
        return tasks
    if dry_run:
        return [replace(task, dry_run_requests=DryRunRequests.CHANGE_AND_CHECK) for task in tasks]
    return list(_with_check_rows(tasks, run(list(_dry_runs(tasks))).rows))


def _with_check_rows(tasks: Sequence[Task], rows: Sequence[FileRow]) -> Iterator[Task]:
    for task, row in zip(tasks, rows, strict=True):
        copied = row.output is not None and row.reason != OUTPUT_EXISTS
        if row.status is Status.FAILED or (row.status is Status.SKIPPED and not copied):
            yield replace(task, row=row)
            continue
        if task.row is None and (traffic := traffic_of(row)) is not None:
            current().add(traffic)  # the row of the change only counts the change
        yield task


def _dry_runs(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks as dry runs. Tasks that share their options share the new ones."""
    new: dict[int, WriteOptions] = {}
    for task in tasks:
        options = task.options
        assert isinstance(options, WriteOptions)  # noqa: S101  the caller has checked it
        if id(options) not in new:
            new[id(options)] = replace(options, dry_run=True)
        yield replace(task, options=new[id(options)], dry_run_requests=DryRunRequests.CHECK)
