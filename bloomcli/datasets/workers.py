"""Worker processes of this machine, as many as the system starts.

    parent: hands out batches, waits for rows     worker: runs one batch after the other
    batch  --------------- pipe --------------->  rows

A user has only so many processes (RLIMIT_NPROC), and a container too (pids.max). The standard library's pool needs
two threads besides its processes, and waits for ever where it gets one of them and not the other. Here the parent
has no thread, a worker needs none, and the work goes on with fewer workers than requested; without any, the parent
does it.

A worker that is busy is given nothing: neither side ever writes to a pipe that nobody reads.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Final

from bloomcli.concurrency.signals import stop_by_default
from bloomcli.concurrency.threads import Threads
from bloomcli.datasets import task as work
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import FileRow

_PARENT_CHECK_SECONDS: Final = 0.5
_SHORT_LIVED_MOST: Final = 3
"""So many workers in a row may end before they are given a batch."""


class Killed(Exception):
    """A worker ended before it took its batch."""


def can_fork() -> bool:
    """Whether workers may be forked, which starts them at once: on Linux, with no other thread running."""
    return sys.platform == "linux" and threading.active_count() == 1


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process, and the parent's end of its pipe."""

    process: Any
    pipe: Connection
    positions: list[int] = field(default_factory=list)
    """Positions of the tasks that it works on."""


class Workers:
    """At most so many worker processes, which start when there is work for them. Has to be closed."""

    def __init__(self, most: int, files: int = 1) -> None:
        """`files`: how many files each worker works on at a time, in threads."""
        self._context: BaseContext = multiprocessing.get_context("fork" if can_fork() else "spawn")
        self.forks = self._context.get_start_method() == "fork"
        """Workers are forked, and have the modules that this process has imported."""
        self._stop = self._context.Event()
        self._all: list[Worker] = []
        self.most, self._files = most, files
        self.refused: str | None = None
        """Why the system starts no more workers."""
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
        """A worker without a batch; None where all are busy.

        Where all that run are busy, the missing ones are started first, all of them: a worker with a batch starts a
        thread, which counts like a process, and mustn't take the place of a worker.
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
            mine.close()
            raise
        finally:
            theirs.close()
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
        """Wait for a worker: the positions of its batch, and the rows, or None where the worker was killed."""
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
        worker.pipe.close()
        worker.process.join()
        worker.process.close()

    def stop(self) -> None:
        """Tell the workers to leave what they haven't done."""
        self._stop.set()

    def end(self) -> None:
        """Stop the workers in the middle of their files, as SIGTERM does. A file that isn't finished keeps its bytes.

        `stop` alone is noticed between column chunks, which may take many seconds each.
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
            worker.pipe.close()
        for worker in self._all:
            worker.process.join()
            worker.process.close()
        self._all.clear()


# in the worker

_stop: Any = None
_parent: int | None = None
"""The parent's process id, where no thread of the worker could be started to watch the parent."""


def _serve(pipe: Connection, inherited: list[Connection], stop: Any, parent: int, files: int) -> None:
    """A worker's main function. Ctrl-C goes to the parent, which sets `stop`; a killed parent ends the worker."""
    import signal

    global _stop, _parent  # noqa: PLW0603  what a worker knows besides its task
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_by_default()
    for other in inherited:  # else a pipe would not end when its other end is closed
        with contextlib.suppress(OSError):  # it is closed even if the system says that a signal interrupted it
            other.close()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)  # nobody will read the rows; temporary files are swept by the next run

    with contextlib.suppress(EOFError, OSError):  # the parent has closed its end, or has ended
        tasks = pipe.recv()
        try:
            threading.Thread(target=watch, daemon=True).start()
        except RuntimeError:  # the system starts no thread
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


def _rows(tasks: list[Task], files: int) -> Iterator[FileRow]:
    """The rows of a batch, made in this thread, or in several."""
    if files == 1:
        yield from map(_run_one, tasks)
        return
    with Threads(files, "bloom-file") as threads:
        futures = [threads.submit(partial(_run_one, task)) for task in tasks]
        yield from map(threads.result, futures)


def _run_batch(tasks: list[Task], files: int) -> list[FileRow]:
    """Run a batch; gives the rows of the tasks that were done before a stop."""
    rows: list[FileRow] = []
    try:
        for row in _rows(tasks, files):
            rows.append(row)  # noqa: PERF402  a stop keeps those that are there
    except KeyboardInterrupt:
        pass
    except SystemExit as end:  # by a signal: the file is whole, and the parent has to see that the worker ended
        os._exit(end.code if isinstance(end.code, int) else 1)
    return rows
