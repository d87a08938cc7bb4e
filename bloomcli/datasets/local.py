"""A dataset's tasks on this machine: many files side by side, or all cores inside few large ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bloomcli.commands.progress import cores
from bloomcli.concurrency.signals import terminable
from bloomcli.datasets import child_process
from bloomcli.datasets import task as work
from bloomcli.datasets import workers as processes
from bloomcli.datasets.child_process import Rows, Told
from bloomcli.datasets.task import CHANGING, Task, module_of
from bloomcli.datasets.workers import Killed, Workers
from bloomcli.formats.registry import preload
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.local.temporary import sweep
from bloomcli.storage.os_errors import refused

OnRow = Callable[[FileRow], None]
"""Called in the caller's thread as files are done, in the order in which they are."""

_LOOK_AHEAD: Final = 4
_HANDFUL: Final = 32
_SMALL_BYTES: Final = 1 << 20
"""Files that are handed to a worker together have no more in all."""


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> DatasetReport:
    """Run the tasks, largest file first; rows come back in the order of the tasks.

    Cores work inside the files where there are fewer of these than `jobs`, or one outweighs the others. With
    `fail_fast` tasks that aren't done when one fails are stopped or not run, and have no row. Temporary files of
    runs and workers that were killed are removed.
    """
    started = time.perf_counter()
    workers = max(min(jobs or cores(), len(tasks)), 1)
    ordered = sorted(range(len(tasks)), key=lambda i: -tasks[i].size)
    threads = _threads([task.size for task in tasks], jobs or cores(), workers)
    planned = {i: replace(tasks[i], threads=threads[i]) for i in ordered}
    _sweep(tasks)
    rows: dict[int, FileRow] = {}
    remarks: list[str] = []
    jobs_done = workers

    def told(count: int, reason: str) -> None:
        nonlocal jobs_done
        jobs_done = min(jobs_done, max(count, 1))
        remarks.append(
            f"{count} of {workers} worker processes could be started ({reason.lower()}): `ulimit -u`, or the "
            "container's pids.max, says how many there may be"
        )

    alone = workers == 1
    found = _in_turn(planned, fail_fast) if alone else _in_processes(planned, workers, fail_fast, told, here=True)
    found = _refused(found)
    with terminable():
        try:
            for index, row in found:
                rows[index] = row
                if on_row is not None:
                    on_row(row)
        finally:
            found.close()
            _sweep(tasks)
    return DatasetReport(
        command=tasks[0].command if tasks else "",
        engine="local",
        jobs=jobs_done,
        seconds=time.perf_counter() - started,
        rows=tuple(rows[i] for i in range(len(tasks)) if i in rows),
        remarks=tuple(remarks),
    )


def _refused(found: Rows) -> Rows:
    """What the system refuses to the work itself (semaphores, pipes), but not to whoever takes the rows."""
    with refused():
        yield from found


def _threads(sizes: Sequence[int], jobs: int, workers: int) -> list[int]:
    """Threads for each file: its share of the cores by its size, so that the largest isn't the last by far."""
    least = max(jobs // workers, 1)
    total = max(sum(max(size, 0) for size in sizes), 1)
    return [max(least, round(size * jobs / total)) for size in sizes]


def targets(tasks: Sequence[Task]) -> set[Path]:
    """The directories of the files that are to be written."""
    return {Path(t.output or t.path).parent for t in tasks if t.output is not None or t.in_place}


def _sweep(tasks: Sequence[Task]) -> None:
    """What killed runs left beside the files that are to be written."""
    for folder in targets(tasks):
        sweep(folder)


def apart(tasks: dict[int, Task]) -> Generator[tuple[int, FileRow], None, None]:
    """Each task in a process beside this one, so that one that takes its process down is a row too."""

    def told(count: int, reason: str) -> None:
        del count, reason  # the task's row says so

    yield from _in_processes(tasks, 1, False, told, here=False)


def _in_turn(tasks: dict[int, Task], fail_fast: bool) -> Rows:
    for index, task in tasks.items():
        row = work.run(task)
        yield index, row
        if fail_fast and row.status is Status.FAILED:
            return


def _in_processes(tasks: dict[int, Task], workers: int, fail_fast: bool, told: Told, *, here: bool) -> Rows:
    if processes.can_fork():
        yield from side_by_side(tasks, workers, fail_fast, told, here=here)
        return
    missing = dict(tasks)
    failed = False
    try:
        for index, row in child_process.rows(tasks, workers, fail_fast, told, here=here):
            missing.pop(index)
            failed = failed or row.status is Status.FAILED
            yield index, row
    except child_process.NotStarted as error:
        told(0, str(error))
        yield from _in_turn(tasks, fail_fast) if here else ((i, _unstarted(task)) for i, task in tasks.items())
        return
    if not (failed and fail_fast):  # else what isn't done has no row
        for index, task in missing.items():
            yield index, _killed(task)


def _handful(waiting: list[int], tasks: dict[int, Task], workers: int) -> list[int]:
    """The last of those that wait, and some more while they are small and many: handing out costs as much as they."""
    most = max(min(len(waiting) // (workers * _LOOK_AHEAD * 2), _HANDFUL), 1)
    taken: list[int] = []
    room = _SMALL_BYTES
    while waiting and len(taken) < most and (not taken or tasks[waiting[-1]].size <= room):
        room -= tasks[waiting[-1]].size
        taken.append(waiting.pop())
    return taken


def side_by_side(tasks: dict[int, Task], workers: int, fail_fast: bool, told: Told, *, here: bool) -> Rows:
    """Rows as files are done, by workers of this process: forked ones, or spawned where its main module may be
    imported again. Where the system starts fewer, `told` is given how many and why; where it starts none, this
    process does the work if it may be done `here`.

    A file whose worker is killed is tried once more, alone, so that one that always ends so (out of memory) is told
    from those that were beside it.
    """
    crew = Workers(workers)
    if crew.forks:
        commands = {task.command for task in tasks.values()}
        preload((task.path for task in tasks.values()), writing=not commands.isdisjoint(CHANGING))
        for command in commands:
            module_of(command)
    waiting = list(reversed(tasks))
    alone: list[int] = []
    lost: set[int] = set()
    try:
        while waiting or alone or crew.busy:
            while (alone and not crew.busy) or (waiting and not alone):
                worker = crew.idle()
                if worker is None:
                    break
                following = alone or waiting
                taken = [alone.pop()] if alone else _handful(waiting, tasks, workers)
                try:
                    crew.give(worker, taken, [tasks[i] for i in taken])
                except Killed:  # it has begun none of them
                    following += reversed(taken)
            if crew.refused is not None:
                told(crew.count, crew.refused)
                crew.refused = None
            if crew.busy:
                taken, done = crew.next()
                rows = done or []
                if done is None:
                    rows = [_killed(tasks[i], ", twice") for i in taken if i in lost]
                    if not rows and not crew.stopped:
                        lost.update(taken)
                        alone += taken
                yield from zip(taken, rows, strict=False)
            else:  # not one process is to be had
                index = (alone or waiting).pop()
                if index in lost:
                    rows = [_killed(tasks[index])]
                else:
                    rows = [work.run(tasks[index]) if here else _unstarted(tasks[index])]
                yield index, rows[0]
            if fail_fast and any(row.status is Status.FAILED for row in rows):
                crew.stop()  # what isn't done then has no row
                waiting.clear()
                alone.clear()
    except BaseException:
        crew.stop()
        raise
    finally:
        crew.close()


def _unstarted(task: Task) -> FileRow:
    return FileRow(
        path=task.path,
        status=Status.FAILED,
        error=f"{task.path}: no process can be started to work on it",
        hint="`ulimit -u`, or the container's pids.max, says how many there may be",
        exit_code=3,
    )


def _killed(task: Task, often: str = "") -> FileRow:
    return FileRow(
        path=task.path,
        status=Status.FAILED,
        error=f"{task.path}: the process that worked on it was killed{often}",
        hint="out of memory? --jobs 1 and --threads 1 need the least; then start it again",
        exit_code=3,
    )
