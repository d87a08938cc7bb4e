"""Checks every file before the first one is changed. Files that are refused, or need no change, don't run again.

    plan -> check: a dry run of each task -> run the remaining tasks

The check reads footers, and existing filters if the command measures them. It doesn't see damage in a
column's pages, or later changes of a file. A plan that has to read columns is made once, with the change, unless the
first failure ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bloomcli.commands.change import OUTPUT_EXISTS
from bloomcli.commands.options import WriteOptions
from bloomcli.datasets.task import DryRunRequests, Task
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.traffic import traffic_of
from bloomcli.storage.traffic import current


def check(
    tasks: Sequence[Task], run: Callable[[Sequence[Task]], DatasetReport], *, fail_fast: bool
) -> Sequence[Task]:
    """Dry-run the tasks. A task whose file is refused or needs no change gets its row.

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
