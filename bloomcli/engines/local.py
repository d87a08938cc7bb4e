"""A dataset's tasks on this machine: many files side by side, or all cores inside few large ones."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Final

from bloomcli.commands import task as work
from bloomcli.commands.progress import cores
from bloomcli.commands.task import CHANGING, Task, module_of
from bloomcli.engines import beside
from bloomcli.engines.beside import Rows
from bloomcli.formats.registry import preload
from bloomcli.rows import DatasetReport, FileRow, Status
from bloomcli.signals import stop_by_default, terminable
from bloomcli.temporary import sweep

OnRow = Callable[[FileRow], None]
"""Called in the caller's thread as files are done, in the order in which they are."""

_LOOK_AHEAD: Final = 4
_HANDFUL: Final = 32
_SMALL_BYTES: Final = 1 << 20
"""Files that are handed to a worker together have no more in all."""
_PARENT_CHECK_SECONDS: Final = 0.5


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
    found = _in_turn(planned, fail_fast) if workers == 1 else _in_processes(planned, workers, fail_fast)
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
        jobs=workers,
        seconds=time.perf_counter() - started,
        rows=tuple(rows[i] for i in range(len(tasks)) if i in rows),
    )


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
    yield from _in_processes(tasks, 1, False)


def _in_turn(tasks: dict[int, Task], fail_fast: bool) -> Rows:
    for index, task in tasks.items():
        row = work.run(task)
        yield index, row
        if fail_fast and row.status is Status.FAILED:
            return


def _can_fork() -> bool:
    """fork starts at once, and is safe on Linux with no other thread running."""
    return sys.platform == "linux" and threading.active_count() == 1


def _in_processes(tasks: dict[int, Task], workers: int, fail_fast: bool) -> Rows:
    if _can_fork():
        yield from side_by_side(tasks, workers, fail_fast)
        return
    missing = dict(tasks)
    failed = False
    for index, row in beside.rows(tasks, workers, fail_fast):
        missing.pop(index)
        failed = failed or row.status is Status.FAILED
        yield index, row
    if not (failed and fail_fast):  # else what isn't done has no row
        for index, task in missing.items():
            yield index, _killed(task)


_stop: Any = None


def _worker(stop: Any, parent: int) -> None:
    """A worker's start: Ctrl-C is for the parent, which tells by `stop`; a parent that was killed is noticed."""
    import signal

    global _stop  # noqa: PLW0603  the one thing that a worker knows besides its task
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_by_default()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)  # nobody will read the rows; temporary files are swept by the next run

    threading.Thread(target=watch, daemon=True).start()


def _stoppable(phase: str, done: int, total: int) -> None:
    del phase, done, total
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _several(tasks: list[Task]) -> list[FileRow]:
    """The tasks' rows, as far as a stop lets them be done."""
    rows: list[FileRow] = []
    try:
        for task in tasks:
            if _stop is not None and _stop.is_set():
                break
            rows.append(work.run(task, _stoppable))
    except KeyboardInterrupt:
        pass
    except SystemExit as end:  # by a signal: the file is whole, and the pool must not take the worker for a live one
        os._exit(end.code if isinstance(end.code, int) else 1)
    return rows


def _handful(waiting: list[int], tasks: dict[int, Task], workers: int) -> list[int]:
    """The last of those that wait, and some more while they are small and many: handing out costs as much as they."""
    most = max(min(len(waiting) // (workers * _LOOK_AHEAD * 2), _HANDFUL), 1)
    taken: list[int] = []
    room = _SMALL_BYTES
    while waiting and len(taken) < most and (not taken or tasks[waiting[-1]].size <= room):
        room -= tasks[waiting[-1]].size
        taken.append(waiting.pop())
    return taken


def side_by_side(tasks: dict[int, Task], workers: int, fail_fast: bool) -> Rows:
    """Rows as files are done, by workers of this process: forked ones, or spawned where its main module may be
    imported again.

    When a worker is killed the pool is lost, with what it had in hand. Each such file is tried once more, in a
    new pool and alone, so that one that always ends so (out of memory) is told from those that were beside it.
    """
    fork = _can_fork()
    context: BaseContext = multiprocessing.get_context("fork" if fork else "spawn")
    stop = context.Event()
    if fork:
        commands = {task.command for task in tasks.values()}
        preload((task.path for task in tasks.values()), writing=not commands.isdisjoint(CHANGING))
        for command in commands:
            module_of(command)

    def start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(workers, mp_context=context, initializer=_worker, initargs=(stop, os.getpid()))

    waiting = list(reversed(tasks))
    alone: list[int] = []
    lost: set[int] = set()
    running: dict[Future[list[FileRow]], list[int]] = {}
    pool = start()
    try:
        while waiting or alone or running:
            # few are handed out ahead, so that a stop has little to wait for
            while (alone and not running) or (waiting and not alone and len(running) < workers * _LOOK_AHEAD):
                following = alone or waiting
                taken = [alone.pop()] if alone else _handful(waiting, tasks, workers)
                try:
                    running[pool.submit(_several, [tasks[i] for i in taken])] = taken
                except BrokenProcessPool:
                    following += reversed(taken)
                    if running:
                        break
                    pool.shutdown(wait=True)
                    pool = start()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                taken = running.pop(future)
                try:
                    rows = future.result()
                except BrokenProcessPool:
                    rows = [_killed(tasks[i], ", twice") for i in taken if i in lost]
                    if not rows and not stop.is_set():
                        lost.update(taken)
                        alone += taken
                yield from zip(taken, rows, strict=False)
                if fail_fast and any(row.status is Status.FAILED for row in rows):
                    stop.set()  # what isn't done then has no row
                    waiting.clear()
                    alone.clear()
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _killed(task: Task, often: str = "") -> FileRow:
    return FileRow(
        path=task.path,
        status=Status.FAILED,
        error=f"{task.path}: the process that worked on it was killed{often}",
        hint="out of memory? --jobs 1 and --threads 1 need the least; then start it again",
        exit_code=3,
    )
