"""The local engine: several files at a time, or several cores inside a few large files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bloomcli.commands.progress import cores
from bloomcli.concurrency.signals import terminable
from bloomcli.datasets import child_process, pool, workers
from bloomcli.datasets import task as work
from bloomcli.datasets.pool import OnFewer, Rows, Shares
from bloomcli.datasets.task import OnRow, Task
from bloomcli.datasets.workers import default_jobs
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of, sweep_for


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> DatasetReport:
    """Run the tasks, largest file first. The report's rows are in the order of the tasks.

    If there are fewer files than `jobs`, or one is much larger than the others, several cores work inside a file.
    With `fail_fast`, the first failure stops the other tasks, which then have no row; if a row that was set before
    the run is a failure, no task starts. Temporary files of killed runs and workers are removed.
    """
    started = time.perf_counter()
    order = largest_first(tasks)
    if fail_fast and any(task.row is not None and task.row.status is Status.FAILED for task in tasks):
        order = []
    at_once = max(min(jobs or default_jobs(remote=any_remote(tasks)), len(order)), 1)
    shares = _shares([tasks[i] for i in order], at_once)
    total = sum(max(tasks[i].size, 0) for i in order)
    threads = {i: _threads(total, jobs or cores(), at_once, tasks[i].size) for i in order}
    ordered = {i: replace(tasks[i], threads=threads[i]) for i in order}
    written = targets(tasks)
    rows: dict[int, FileRow] = {}
    remarks = [*sweep_for(written).remarks]
    jobs_done = min(at_once, shares.workers * shares.files)

    def on_fewer(count: int, reason: str) -> None:
        nonlocal jobs_done
        jobs_done = min(jobs_done, max(count, 1) * shares.files)
        remarks.append(
            f"{count} of {shares.workers} worker processes could be started ({reason.lower()}): `ulimit -u`, or the "
            "container's pids.max, says how many there may be"
        )

    if at_once == 1:
        found = _in_turn(ordered, fail_fast)
    else:
        found = _in_processes(ordered, shares, fail_fast, on_fewer, run_here=True)
    found = _all_rows(tasks, found)
    with terminable():
        try:
            for index, row in found:
                rows[index] = row.reported()
                if on_row is not None:
                    on_row(row)
        finally:
            found.close()
            sweep_for(written)
    return DatasetReport(
        command=tasks[0].command if tasks else "",
        engine="local",
        jobs=jobs_done,
        seconds=time.perf_counter() - started,
        rows=tuple(rows[i] for i in sorted(rows)),
        remarks=tuple(remarks),
        dry_run=any(task.dry_run for task in tasks),
        not_started=len(tasks) - len(rows),
    )


def largest_first(tasks: Sequence[Task]) -> list[int]:
    """Positions of the tasks without a row, by descending size: a large file that starts last would keep one worker
    busy while the others wait."""
    return sorted((i for i, task in enumerate(tasks) if task.row is None), key=lambda i: -tasks[i].size)


def any_remote(tasks: Sequence[Task]) -> bool:
    """Whether some file is read from or written to a remote store."""
    paths = (path for task in tasks for path in (task.path, task.output) if path is not None)
    return any(store_of(path).remote for path in paths)


def _shares(tasks: Sequence[Task], at_once: int) -> Shares:
    """One process for each file. If all tasks are light and read from remote stores, one process for each core, with
    threads: most of the time is spent waiting, and waking a process per answer takes twice the processor time."""
    if not all(task.is_light and store_of(task.path).remote for task in tasks):
        return Shares(at_once)
    workers = min(at_once, cores())
    return Shares(workers, -(-at_once // workers) if at_once == len(tasks) else at_once // workers)


def _all_rows(tasks: Sequence[Task], found: Rows) -> Rows:
    """Yield the rows that were set before the run, then the others. System errors of the engine itself (semaphores,
    pipes) become errors of bloomcli; errors of `on_row` pass through unchanged."""
    yield from ((i, task.row) for i, task in enumerate(tasks) if task.row is not None)
    with convert_os_errors():
        yield from found


def _threads(total: int, jobs: int, processes: int, size: int) -> int:
    """Threads for a file: its share of the cores by size, so that the largest doesn't finish long after the others.

    Args:
        total: bytes of all files.
        jobs: cores to use.
        processes: files at a time.
        size: bytes of the file.
    """
    return max(jobs // processes, 1, round(size * jobs / max(total, 1)))


def targets(tasks: Sequence[Task]) -> list[str]:
    """The files that tasks write, or wrote in an earlier run; none in a dry run."""
    writing = (t.target for t in tasks if t.row is None or t.row.status is Status.SKIPPED)
    return [path for path in writing if path is not None]


def run_isolated(tasks: Mapping[int, Task]) -> Rows:
    """Run each task in another process, so that a task that kills its process still gets a row."""

    def on_fewer(count: int, reason: str) -> None:
        del count, reason  # the task's row reports it

    yield from _in_processes(tasks, Shares(1), False, on_fewer, run_here=False)


def _in_turn(tasks: Mapping[int, Task], fail_fast: bool) -> Rows:
    for index, task in tasks.items():
        row = work.run(task)
        yield index, row
        if fail_fast and row.status is Status.FAILED:
            return


def _in_processes(
    tasks: Mapping[int, Task], shares: Shares, fail_fast: bool, on_fewer: OnFewer, *, run_here: bool
) -> Rows:
    """Run tasks in a pool of this process if it can fork, else in the pool of a child Python."""
    if workers.can_fork():
        yield from pool.run_in_pool(tasks, shares, fail_fast, on_fewer, run_here=run_here)
        return
    missing = dict.fromkeys(tasks)
    failed = False
    try:
        for index, row in child_process.rows(tasks, shares, fail_fast, on_fewer, run_here=run_here):
            del missing[index]
            failed = failed or row.status is Status.FAILED
            yield index, row
    except child_process.NotStarted as error:
        on_fewer(0, str(error))
        if run_here:
            yield from _in_turn(tasks, fail_fast)
        else:
            yield from ((i, pool.not_started_row(task)) for i, task in tasks.items())
        return
    if not (failed and fail_fast):  # otherwise, tasks that didn't run have no row
        yield from ((i, pool.killed_row(tasks[i])) for i in missing)
