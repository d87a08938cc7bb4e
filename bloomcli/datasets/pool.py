"""The worker pool: hands tasks to worker processes and yields rows as files finish.

Both the local engine (`local`) and the child Python that it may start (`child_process`) run their tasks here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Final, NamedTuple

from bloomcli.commands.options import WriteOptions
from bloomcli.datasets import task as work
from bloomcli.datasets.task import Task, module_of
from bloomcli.datasets.workers import Killed, Workers
from bloomcli.formats.registry import preload
from bloomcli.model.dataset import FileRow, Status

Rows = Generator[tuple[int, FileRow], None, None]
"""Tasks' positions and their rows, in the order in which the tasks finish."""

OnFewer = Callable[[int, str], None]
"""Called with the number of worker processes and the reason why the system can't start more."""

_LOOK_AHEAD: Final = 4
_BATCH_MOST: Final = 32
_BATCH_BYTES: Final = 1 << 20
"""The most bytes of a batch of several files."""


class Shares(NamedTuple):
    """The number of processes, and of files at a time in each."""

    workers: int
    """Processes."""
    files: int = 1
    """Files at a time in each process, in threads."""


def run_in_pool(
    tasks: Mapping[int, Task], shares: Shares, fail_fast: bool, on_fewer: OnFewer, *, run_here: bool
) -> Rows:
    """Run tasks in workers of this process, and yield rows as files finish.

    Workers are forked where that is safe. Otherwise they are spawned, and import this process's main module again.
    If the system starts fewer workers, `on_fewer` is called. If it starts none, this process runs the tasks if
    `run_here` is set; otherwise each task fails.

    A task whose worker is killed runs a second time, alone: a file that always kills its worker (out of memory)
    fails, and files that ran at the same time don't.
    """
    pool = Workers(shares.workers, shares.files)
    if pool.forks:
        _import_before_forking(tasks)
    waiting = deque(tasks)
    alone: list[int] = []
    lost: set[int] = set()
    try:
        while waiting or alone or pool.busy:
            _hand_out(pool, tasks, waiting, alone, shares)
            if pool.refused is not None:
                on_fewer(pool.count, pool.refused)
                pool.refused = None
            if pool.busy:
                positions, done = pool.next()
                rows = done or []
                if done is None:
                    rows = [killed_row(tasks[i], ", twice") for i in positions if i in lost]
                    if not rows and not pool.stopped:
                        lost.update(positions)
                        alone += positions
                yield from zip(positions, rows, strict=False)
            else:  # the system starts no process at all
                index = alone.pop() if alone else waiting.popleft()
                if index in lost:
                    rows = [killed_row(tasks[index])]
                else:
                    rows = [work.run(tasks[index]) if run_here else not_started_row(tasks[index])]
                yield index, rows[0]
            if fail_fast and any(row.status is Status.FAILED for row in rows):
                pool.stop()  # the remaining tasks have no row
                waiting.clear()
                alone.clear()
    except BaseException:
        pool.end()
        raise
    finally:
        pool.close()


def _import_before_forking(tasks: Mapping[int, Task]) -> None:
    """Import what every worker needs: forked workers share the modules of this process."""
    commands: set[str] = set()
    endings: dict[str, None] = {}
    writing = False
    for task in tasks.values():
        commands.add(task.command)
        endings[task.path[task.path.rfind(".") :]] = None
        writing = writing or isinstance(task.options, WriteOptions)
    preload(endings, writing=writing)
    for command in commands:
        module_of(command)


def _hand_out(
    pool: Workers, tasks: Mapping[int, Task], waiting: deque[int], alone: list[int], shares: Shares
) -> None:
    """Give tasks to idle workers. Tasks of `alone` run one at a time, before all others."""
    while (alone and not pool.busy) or (waiting and not alone):
        worker = pool.idle()
        if worker is None:
            return
        from_alone = bool(alone)
        positions = [alone.pop()] if alone else _batch(waiting, tasks, shares)
        try:
            pool.give(worker, positions, [tasks[i] for i in positions])
        except Killed:  # it started none of them
            if from_alone:
                alone += positions
            else:
                waiting.extendleft(reversed(positions))


def _batch(waiting: deque[int], tasks: Mapping[int, Task], shares: Shares) -> list[int]:
    """Take as many tasks as a worker runs at a time, or more if there are many small files: handing out a batch
    costs as much as a small file."""
    workers, files = shares
    least = min(files, max(-(-len(waiting) // workers), 1))
    most = max(min(len(waiting) // (workers * _LOOK_AHEAD * 2), _BATCH_MOST), least)
    positions: list[int] = []
    room = _BATCH_BYTES
    while waiting and len(positions) < most:
        size = tasks[waiting[0]].size
        if len(positions) >= least and size > room:
            break
        room -= size
        positions.append(waiting.popleft())
    return positions


def not_started_row(task: Task) -> FileRow:
    """The row of a task that needs a separate process, if the system can't start one."""
    limits = "`ulimit -u`, or the container's pids.max, says how many there may be"
    return _without_process(task, "no process can be started to work on it", limits)


def killed_row(task: Task, how_often: str = "") -> FileRow:
    """The row of a task whose process was killed."""
    memory = "out of memory? --jobs 1 and --threads 1 need the least; then start it again"
    return _without_process(task, f"the process that worked on it was killed{how_often}", memory)


def _without_process(task: Task, why: str, hint: str) -> FileRow:
    return FileRow(path=task.path, status=Status.FAILED, error=f"{task.path}: {why}", hint=hint, exit_code=3)
