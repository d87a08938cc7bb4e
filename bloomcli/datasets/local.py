"""The local engine: several files at a time, or several cores inside a few large files.

Tasks run in turn in this process, or in a pool of worker processes (`workers`). A program that can't be forked starts
a child Python process, which has the pool:

    caller                                          child
    tasks  ---------------- pickled ------------->  a pool of workers, as on the command line
    rows   <--------------- pickled --------------  in the order in which files finish

A process with several threads must not be forked. A spawned process imports the caller's main module again: a script
without ``if __name__ == "__main__"`` would repeat all its work. The child has neither the threads nor that module.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.spawn import get_executable
from types import FrameType
from typing import IO, Final, NamedTuple, cast

from bloomcli.commands.options import WriteOptions
from bloomcli.concurrency import close_pipe
from bloomcli.concurrency.signals import terminable
from bloomcli.concurrency.threads import cores
from bloomcli.datasets import task as work
from bloomcli.datasets import workers
from bloomcli.datasets.task import OnRow, Task, module_of
from bloomcli.datasets.workers import Killed, Workers, default_jobs
from bloomcli.formats.keys import seal, use_seal
from bloomcli.formats.registry import preload
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of, sweep_for

Rows = Generator[tuple[int, FileRow], None, None]
"""Tasks' positions and their rows, in the order in which the tasks finish."""

OnFewer = Callable[[int, str], None]
"""Called with the number of worker processes and the reason why the system can't start more."""

_CHILD: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from bloomcli.datasets.local import serve; serve()"
)
_PARENT_CHECK_SECONDS: Final = 0.5
_LOOK_AHEAD: Final = 4
_BATCH_MOST: Final = 32
_BATCH_BYTES: Final = 1 << 20
"""The most bytes of a batch of several files."""


class Shares(NamedTuple):
    """The number of processes and of files at a time in each, and when they stop."""

    workers: int
    """Processes."""
    files: int = 1
    """Files at a time in each process, in threads."""
    fail_fast: bool = False
    """The first failure stops the other tasks, which then have no row."""
    run_here: bool = True
    """If the system starts no process, the process that asked for one runs the tasks; otherwise they fail."""


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
    shares = _shares([tasks[i] for i in order], at_once)._replace(fail_fast=fail_fast)
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

    indexed_rows = _in_turn(ordered, fail_fast) if at_once == 1 else _in_processes(ordered, shares, on_fewer)
    indexed_rows = _all_rows(tasks, indexed_rows)
    with terminable():
        try:
            for index, row in indexed_rows:
                rows[index] = row.reported()
                if on_row is not None:
                    on_row(row)
        finally:
            indexed_rows.close()
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


def _all_rows(tasks: Sequence[Task], rows: Rows) -> Rows:
    """Yield the rows that were set before the run, then the others. System errors of the engine itself (semaphores,
    pipes) become errors of bloomcli; errors of `on_row` pass through unchanged."""
    yield from ((i, task.row) for i, task in enumerate(tasks) if task.row is not None)
    with convert_os_errors():
        yield from rows


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

    yield from _in_processes(tasks, Shares(1, run_here=False), on_fewer)


def _in_turn(tasks: Mapping[int, Task], fail_fast: bool) -> Rows:
    for index, task in tasks.items():
        row = work.run(task)
        yield index, row
        if fail_fast and row.status is Status.FAILED:
            return


def _in_processes(tasks: Mapping[int, Task], shares: Shares, on_fewer: OnFewer) -> Rows:
    """Run tasks in a pool of this process if it can fork, else in the pool of a child Python."""
    if workers.can_fork():
        yield from run_in_pool(tasks, shares, on_fewer)
        return
    missing = dict.fromkeys(tasks)
    failed = False
    try:
        for index, row in _rows_of_child(tasks, shares, on_fewer):
            del missing[index]
            failed = failed or row.status is Status.FAILED
            yield index, row
    except _NotStarted as error:
        on_fewer(0, str(error))
        if shares.run_here:
            yield from _in_turn(tasks, shares.fail_fast)
        else:
            yield from ((i, _not_started_row(task)) for i, task in tasks.items())
        return
    if not (failed and shares.fail_fast):  # otherwise, tasks that didn't run have no row
        yield from ((i, _killed_row(tasks[i])) for i in missing)


class _NotStarted(Exception):
    """The system can't start the child process; the message says why."""


def _rows_of_child(tasks: Mapping[int, Task], shares: Shares, on_fewer: OnFewer) -> Rows:
    """Yield the tasks' rows; fewer rows than tasks if the child is killed. Closing ends the child and its workers.

    Raises:
        _NotStarted: the system can't start the child.
    """
    try:
        started = subprocess.Popen(  # noqa: S603  this Python
            [os.fsdecode(get_executable()), "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C goes to the caller, which ends the child
        )
    except OSError as error:
        raise _NotStarted(error.strerror or str(error)) from None
    with started as child:
        to_child, from_child = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            try:
                with to_child:
                    pickle.dump((os.getpid(), shares, seal()), to_child)
                    pickle.dump(dict(tasks), to_child)
            except BrokenPipeError:  # the child was killed
                return
            while (message := _next(from_child)) is not None:
                if isinstance(message[1], str):
                    on_fewer(message[0], message[1])
                else:
                    yield message[0], message[1]
        except BaseException:
            child.terminate()
            raise
        finally:
            close_pipe(from_child)
            child.wait()


def _next(stream: IO[bytes]) -> tuple[int, FileRow | str] | None:
    try:
        message: tuple[int, FileRow | str] | None = pickle.load(stream)  # noqa: S301  from our own child
    except (EOFError, pickle.UnpicklingError):  # the child was killed
        return None
    return message


def serve() -> None:
    """The child's main function: reads tasks from standard input and writes rows to standard output."""
    pipe = os.dup(1)
    os.dup2(2, 1)  # other output must not mix with the rows
    parent, shares, of_parent = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own parent
    use_seal(of_parent)
    tasks: dict[int, Task] = pickle.load(sys.stdin.buffer)  # noqa: S301

    def watch(number: int, frame: FrameType | None) -> None:
        del number, frame
        if os.getppid() != parent:  # the parent was killed, and nothing reads the rows
            raise SystemExit(1)

    def on_fewer(count: int, reason: str) -> None:
        _send(pipe, (count, reason))

    rows = run_in_pool(tasks, shares, on_fewer)
    with terminable():
        signal.signal(signal.SIGALRM, watch)
        signal.setitimer(signal.ITIMER_REAL, _PARENT_CHECK_SECONDS, _PARENT_CHECK_SECONDS)
        try:
            for row in rows:
                _send(pipe, row)
            _send(pipe, None)
        except BrokenPipeError:  # the parent has ended
            sys.exit(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            rows.close()


def _send(pipe: int, item: tuple[int, FileRow | str] | None) -> None:
    """Write without a buffer: when a signal ends the child, no data may wait for the parent."""
    data = pickle.dumps(item)
    while data:
        data = data[os.write(pipe, data) :]


def run_in_pool(tasks: Mapping[int, Task], shares: Shares, on_fewer: OnFewer) -> Rows:
    """Run tasks in workers of this process, and yield rows as files finish.

    Workers are forked where that is safe. Otherwise they are spawned, and import this process's main module again.
    If the system starts fewer workers, `on_fewer` is called.

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
                    rows = [_killed_row(tasks[i], ", twice") for i in positions if i in lost]
                    if not rows and not pool.stopped:
                        lost.update(positions)
                        alone += positions
                yield from zip(positions, rows, strict=False)
            else:  # the system starts no process at all
                index = alone.pop() if alone else waiting.popleft()
                if index in lost:
                    rows = [_killed_row(tasks[index])]
                else:
                    rows = [work.run(tasks[index]) if shares.run_here else _not_started_row(tasks[index])]
                yield index, rows[0]
            if shares.fail_fast and any(row.status is Status.FAILED for row in rows):
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
    least = min(shares.files, max(-(-len(waiting) // shares.workers), 1))
    most = max(min(len(waiting) // (shares.workers * _LOOK_AHEAD * 2), _BATCH_MOST), least)
    positions: list[int] = []
    room = _BATCH_BYTES
    while waiting and len(positions) < most:
        size = tasks[waiting[0]].size
        if len(positions) >= least and size > room:
            break
        room -= size
        positions.append(waiting.popleft())
    return positions


def _not_started_row(task: Task) -> FileRow:
    """The row of a task that needs a separate process, if the system can't start one."""
    limits = "`ulimit -u`, or the container's pids.max, says how many there may be"
    return _without_process(task, "no process can be started to work on it", limits)


def _killed_row(task: Task, how_often: str = "") -> FileRow:
    """The row of a task whose process was killed."""
    memory = "out of memory? --jobs 1 and --threads 1 need the least; then start it again"
    return _without_process(task, f"the process that worked on it was killed{how_often}", memory)


def _without_process(task: Task, why: str, hint: str) -> FileRow:
    return FileRow(path=task.path, status=Status.FAILED, error=f"{task.path}: {why}", hint=hint, exit_code=3)
