"""The look at every file before the first one is changed: all refusals are known, and settled files aren't run again.

    plan -> check: a dry run of each task -> run the tasks that are left

The check reads footers, and existing filters where the command has to measure them. What shows only in a column's
pages, and what happens to a file later, isn't known to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bloomcli.commands.change import WOULD_BE_COPIED
from bloomcli.commands.options import WriteOptions
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import DatasetReport, FileRow, Status


def check(tasks: Sequence[Task], run: Callable[[Sequence[Task]], DatasetReport]) -> list[Task]:
    """The tasks, with their rows where the check settles them: the file is refused, or has nothing to change.

    Args:
        tasks: tasks that change files. A single one isn't checked: its file is planned before it is changed anyway.
        run: an engine's function that runs tasks and gives a row for each.
    """
    if sum(task.row is None for task in tasks) < 2 or not _change_files(tasks):
        return list(tasks)
    return [_settled(task, row) for task, row in zip(tasks, run(_dry(tasks)).rows, strict=True)]


def _change_files(tasks: Sequence[Task]) -> bool:
    return all(isinstance(task.options, WriteOptions) and not task.dry_run for task in tasks)


def _dry(tasks: Sequence[Task]) -> list[Task]:
    """The tasks as dry runs. Tasks that share their options share the new ones."""
    new: dict[int, WriteOptions] = {}
    dry: list[Task] = []
    for task in tasks:
        options = task.options
        assert isinstance(options, WriteOptions)  # noqa: S101  the caller has looked
        if id(options) not in new:
            new[id(options)] = replace(options, dry_run=True)
        dry.append(replace(task, options=new[id(options)]))
    return dry


def _settled(task: Task, row: FileRow) -> Task:
    if row.status is Status.FAILED:
        return replace(task, row=row)
    if row.status is Status.SKIPPED and not (row.reason or "").endswith(WOULD_BE_COPIED):
        return replace(task, row=row)
    return task
