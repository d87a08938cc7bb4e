"""The engine of this machine: several files at a time, or all cores inside a few large files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from bloomcli.commands.progress import cores
from bloomcli.concurrency.signals import terminable
from bloomcli.datasets import child_process, pool, workers
from bloomcli.datasets import task as work
from bloomcli.datasets.pool import OnFewer, Rows
from bloomcli.datasets.task import OnRow, Task
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.os_errors import refused
from bloomcli.storage.registry import store_of, sweep_for

_JOBS_FOR_CORE: Final = 4
"""A request takes some 20 ms until its answer comes, and what `inspect` does with a small file some 5 ms."""

_REMOTE_JOBS: Final = (8, 32)
"""Each is a process, of some 40 MB of its own with a vendor's SDK."""


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> DatasetReport:
    """Run the tasks, largest file first. The report's rows are in the order of the tasks.

    Where there are fewer files than `jobs`, or one is much larger than the others, several cores work inside a
    file. With `fail_fast`, tasks that aren't done when one fails are stopped or not started, and have no row; where
    one has failed before (its row is known), none is started. Temporary files that killed runs and workers left are
    removed.
    """
    started = time.perf_counter()
    known = {i: task.row for i, task in enumerate(tasks) if task.row is not None}
    ended = fail_fast and any(row.status is Status.FAILED for row in known.values())
    ordered = [] if ended else sorted(set(range(len(tasks))) - known.keys(), key=lambda i: (-tasks[i].size, i))
    processes = max(min(jobs or default_jobs(tasks), len(ordered)), 1)
    threads = _threads([tasks[i].size for i in ordered], jobs or cores(), processes)
    planned = {i: replace(tasks[i], threads=share) for i, share in zip(ordered, threads, strict=True)}
    rows: dict[int, FileRow] = {}
    remarks = [*sweep_for(targets(tasks)).remarks]
    jobs_done = processes

    def on_fewer(count: int, reason: str) -> None:
        nonlocal jobs_done
        jobs_done = min(jobs_done, max(count, 1))
        remarks.append(
            f"{count} of {processes} worker processes could be started ({reason.lower()}): `ulimit -u`, or the "
            "container's pids.max, says how many there may be"
        )

    if processes == 1:
        found = _in_turn(planned, fail_fast)
    else:
        found = _in_processes(planned, processes, fail_fast, on_fewer, run_here=True)
    found = _with_system_errors(_after_known(known, found))
    with terminable():
        try:
            for index, row in found:
                rows[index] = row
                if on_row is not None:
                    on_row(row)
        finally:
            found.close()
            sweep_for(targets(tasks))
    return DatasetReport(
        command=tasks[0].command if tasks else "",
        engine="local",
        jobs=jobs_done,
        seconds=time.perf_counter() - started,
        rows=tuple(rows[i] for i in range(len(tasks)) if i in rows),
        remarks=tuple(remarks),
        dry_run=any(task.dry_run for task in tasks),
        not_started=len(tasks) - len(rows),
    )


def default_jobs(tasks: Iterable[Task]) -> int:
    """Files at a time where the options don't say: as many as cores; where a file lies in a store whose answers take
    time, four times as many, from 8 to 32."""
    remote = any(store_of(path).remote for task in tasks for path in (task.path, task.output) if path is not None)
    return min(max(_JOBS_FOR_CORE * cores(), _REMOTE_JOBS[0]), _REMOTE_JOBS[1]) if remote else cores()


def _after_known(known: dict[int, FileRow], found: Rows) -> Rows:
    """The rows that are known before any work, then the others."""
    yield from known.items()
    yield from found


def _with_system_errors(found: Rows) -> Rows:
    """Turn system errors of the engine itself (semaphores, pipes) into errors of bloomcli. Errors of `on_row` pass
    unchanged."""
    with refused():
        yield from found


def _threads(sizes: Sequence[int], jobs: int, processes: int) -> list[int]:
    """Threads for each file: its share of the cores by its size, so that the largest isn't the last by far."""
    least = max(jobs // processes, 1)
    total = max(sum(max(size, 0) for size in sizes), 1)
    return [max(least, round(size * jobs / total)) for size in sizes]


def targets(tasks: Sequence[Task]) -> list[str]:
    """The files that the tasks write, or have written in an earlier run: none in a dry run."""
    writing = (t for t in tasks if not t.dry_run and (t.row is None or t.row.status is Status.SKIPPED))
    return [t.output or t.path for t in writing if t.output is not None or t.in_place]


def run_isolated(tasks: dict[int, Task]) -> Rows:
    """Run each task in a process other than this one, so that a task that kills its process is a row too."""

    def on_fewer(count: int, reason: str) -> None:
        del count, reason  # the task's row says so

    yield from _in_processes(tasks, 1, False, on_fewer, run_here=False)


def _in_turn(tasks: dict[int, Task], fail_fast: bool) -> Rows:
    for index, task in tasks.items():
        row = work.run(task)
        yield index, row
        if fail_fast and row.status is Status.FAILED:
            return


def _in_processes(
    tasks: dict[int, Task], processes: int, fail_fast: bool, on_fewer: OnFewer, *, run_here: bool
) -> Rows:
    """Run tasks in a pool of this process where it can fork, else in the pool of a child Python."""
    if workers.can_fork():
        yield from pool.run_in_pool(tasks, processes, fail_fast, on_fewer, run_here=run_here)
        return
    missing = dict(tasks)
    failed = False
    try:
        for index, row in child_process.rows(tasks, processes, fail_fast, on_fewer, run_here=run_here):
            missing.pop(index)
            failed = failed or row.status is Status.FAILED
            yield index, row
    except child_process.NotStarted as error:
        on_fewer(0, str(error))
        if run_here:
            yield from _in_turn(tasks, fail_fast)
        else:
            yield from ((i, pool.not_started(task)) for i, task in tasks.items())
        return
    if not (failed and fail_fast):  # else tasks that aren't done have no row
        for index, task in missing.items():
            yield index, pool.killed(task)
