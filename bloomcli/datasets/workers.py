"""Worker processes of this machine, as many as the system can start.

    parent: hands out batches, waits for rows     worker: runs one batch after the other
    batch  --------------- pipe --------------->  rows

The number of processes is limited for a user (RLIMIT_NPROC) and for a container (pids.max). The standard library's
pool needs two threads in addition to its processes, and waits forever if only one of them starts. Here the parent has
no thread, a worker needs none, and the run continues with fewer workers than requested; without any, the parent runs
the tasks.

A busy worker is given no batch, so that neither side writes to a pipe that the other doesn't read.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Final

from bloomcli.concurrency import close_pipe
from bloomcli.concurrency.signals import stop_by_default
from bloomcli.concurrency.threads import Threads, cores, start
from bloomcli.datasets import task as work
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import FileRow
from bloomcli.storage.lookups import shared

_JOBS_FOR_CORE: Final = 4
"""A store answers a request after about 20 ms; `inspect` needs about 5 ms of processor time for a small file."""
_REMOTE_JOBS: Final = (8, 32)
"""Fewest and most. Each job is a process, which takes about 40 MB with a vendor's SDK."""


def default_jobs(*, remote: bool) -> int:
    """Files at a time if the options don't say: one for each core; with files in remote stores four for each core,
    from 8 to 32."""
    return min(max(_JOBS_FOR_CORE * cores(), _REMOTE_JOBS[0]), _REMOTE_JOBS[1]) if remote else cores()


_PARENT_CHECK_SECONDS: Final = 0.5
_SHORT_LIVED_MOST: Final = 3
"""After this many workers in a row end before they get a batch, no more are started."""


class Killed(Exception):
    """A worker ended before it took its batch."""


def can_fork() -> bool:
    """Whether workers can be forked, which starts them immediately: on Linux, with no other thread running.

    Threads of libraries count, such as those of Arrow's and DuckDB's pools, which Python doesn't know: a forked
    process has none of them, and waits for ever for a lock that one of them held.
    """
    return sys.platform == "linux" and len([*Path("/proc/self/task").glob("*")]) == 1


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process, and the parent's end of its pipe."""

    process: Any
    pipe: Connection
    positions: list[int] = field(default_factory=list)
    """Positions of the tasks that it works on."""


class Workers:
    """At most `most` worker processes, which start when they get work. Must be closed."""

    def __init__(self, most: int, files: int = 1) -> None:
        """`files`: the number of files that each worker processes at a time, in threads."""
        self._context: BaseContext = multiprocessing.get_context("fork" if can_fork() else "spawn")
        self.forks = self._context.get_start_method() == "fork"
        """Workers are forked, and share the modules that this process has imported."""
        self._stop = self._context.Event()
        self._all: list[Worker] = []
        self.most, self._files = most, files
        self.refused: str | None = None
        """Why the system can't start more workers; None if it can."""
        self._short_lived = 0

    @property
    def busy(self) -> list[Worker]:
        """The workers that have a batch."""
        return [w for w in self._all if w.positions]

    @property
    def count(self) -> int:
        """The number of workers."""
        return len(self._all)

    def idle(self) -> Worker | None:
        """A worker without a batch; None if all are busy.

        If all running workers are busy, all workers up to `most` are started first: a worker with a batch starts a
        thread, which counts as a process, and would take the place of a worker.
        """
        free = next((w for w in self._all if not w.positions), None)
        while free is None and len(self._all) < self.most:
            try:
                self._start()
            except OSError as error:  # EAGAIN: no more processes; ENOMEM; EMFILE: no more pipes
                self._stop_starting(error.strerror or str(error))
        return free or next((w for w in self._all if not w.positions), None)

    def _stop_starting(self, reason: str) -> None:
        self.refused = reason
        self.most = len(self._all)

    def _start(self) -> None:
        mine, theirs = self._context.Pipe()
        inherited = [mine, *(w.pipe for w in self._all)] if self.forks else []
        try:
            process: Any = self._context.Process(  # type: ignore[attr-defined]  # a context of one method has it
                target=_serve, args=(theirs, inherited, self._stop, os.getpid(), self._files), name="bloom-worker"
            )
            process.start()
        except BaseException:
            close_pipe(mine)
            raise
        finally:
            close_pipe(theirs)
        self._all.append(Worker(process, mine))

    def give(self, worker: Worker, positions: list[int], tasks: list[Task]) -> None:
        """Give a batch to an idle worker. Raises Killed."""
        try:
            worker.pipe.send(tasks)
        except OSError:
            self._discard(worker)
            self._short_lived += 1
            if self._short_lived >= _SHORT_LIVED_MOST:
                self._stop_starting("they end as soon as they have started")
            raise Killed from None
        self._short_lived = 0
        worker.positions = positions

    def next(self) -> tuple[list[int], list[FileRow] | None]:
        """Wait for a worker. Returns the positions of its batch, and the rows, or None if the worker was killed."""
        ready = set(wait([w.pipe for w in self.busy]))
        worker = next(w for w in self.busy if w.pipe in ready)
        positions, worker.positions = worker.positions, []
        try:
            rows: list[FileRow] = worker.pipe.recv()
        except (EOFError, OSError):
            self._discard(worker)
            return positions, None
        return positions, rows

    def _discard(self, worker: Worker) -> None:
        self._all.remove(worker)
        close_pipe(worker.pipe)
        worker.process.join()
        worker.process.close()

    def stop(self) -> None:
        """Signal the workers to skip the rest of their batches."""
        self._stop.set()

    def end(self) -> None:
        """Terminate the workers in the middle of their files. An unfinished file keeps its original bytes.

        Workers notice `stop` only between column chunks, which may take many seconds each.
        """
        for worker in self._all:
            worker.process.terminate()
        self.stop()

    @property
    def stopped(self) -> bool:
        """`stop` was called."""
        return bool(self._stop.is_set())

    def close(self) -> None:
        """Wait until all workers have ended. They finish their batches first, unless `stop` was called."""
        for worker in self._all:
            close_pipe(worker.pipe)
        for worker in self._all:
            worker.process.join()
            worker.process.close()
        self._all.clear()


# in the worker

_stop: Any = None
_parent: int | None = None
"""The parent's process id, if the worker couldn't start a thread that watches the parent."""


def _serve(pipe: Connection, inherited: list[Connection], stop: Any, parent: int, files: int) -> None:
    """A worker's main function. Ctrl-C goes to the parent, which sets `stop`; a killed parent ends the worker."""
    import signal

    global _stop, _parent  # noqa: PLW0603  the worker's state
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_by_default()
    for other in inherited:  # otherwise a pipe wouldn't end when its other end is closed
        close_pipe(other)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)  # nothing reads the rows; the next run removes temporary files

    with contextlib.suppress(EOFError, OSError), shared():  # the parent has closed its end, or has ended
        tasks = pipe.recv()
        if not start(threading.Thread(target=watch, daemon=True)):
            _parent = parent
        while True:
            pipe.send(_run_batch(tasks, files))
            tasks = pipe.recv()


def _stoppable(phase: str, done: int, total: int) -> None:
    del phase, done, total
    if _parent is not None and os.getppid() != _parent:
        os._exit(1)
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _run_one(task: Task) -> FileRow:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt
    return work.run(task, _stoppable)


def _run_batch(tasks: list[Task], files: int) -> list[FileRow]:
    """Run a batch in this thread or in several. Returns the rows of the tasks that finished before a stop."""
    rows: list[FileRow] = []
    try:
        with Threads(files if files > 1 else 0, "bloom-file") as threads:
            futures = [threads.submit(partial(_run_one, task)) for task in tasks]
            for future in futures:
                rows.append(threads.result(future))  # noqa: PERF401  a stop keeps the rows so far
    except KeyboardInterrupt:
        pass
    except SystemExit as end:  # raised by a signal: the file is intact, and the parent must see that the worker ended
        os._exit(end.code if isinstance(end.code, int) else 1)
    return rows
