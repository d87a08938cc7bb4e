"""Worker processes of this machine, as many as the system starts.

    parent: hands out, waits for rows         worker: one handful after the other
    handful  ------------ pipe ------------>  rows

A user has only so many processes (RLIMIT_NPROC), and a container too (pids.max). The standard library's pool needs
two threads besides its processes, and waits for ever where it gets one of them and not the other. Here the parent
has no thread, a worker needs none, and fewer workers than were asked for do the work; without any the parent does.

Nothing is handed to a worker that still works: neither side ever writes to a pipe that nobody reads.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Final

from bloomcli.concurrency.signals import stop_by_default
from bloomcli.datasets import task as work
from bloomcli.datasets.task import Task
from bloomcli.model.dataset import FileRow

_PARENT_CHECK_SECONDS: Final = 0.5
_SHORT_LIVED_MOST: Final = 3
"""Workers in a row that ended before they could be given something."""


class Killed(Exception):
    """A worker is gone, with what it had in hand."""


def can_fork() -> bool:
    """fork starts at once, and is safe on Linux with no other thread running."""
    return sys.platform == "linux" and threading.active_count() == 1


@dataclass(slots=True, eq=False)
class Worker:
    """One process, and this end of its pipe."""

    process: Any
    pipe: Connection
    taken: list[int] = field(default_factory=list)
    """Positions of the files that it has in hand."""


class Workers:
    """Processes that start as work comes, at most so many. To be closed."""

    def __init__(self, most: int) -> None:
        self._context: BaseContext = multiprocessing.get_context("fork" if can_fork() else "spawn")
        self.forks = self._context.get_start_method() == "fork"
        """They have what this process has imported."""
        self._stop = self._context.Event()
        self._all: list[Worker] = []
        self.most = most
        self.refused: str | None = None
        """Why there are no more."""
        self._short_lived = 0

    @property
    def busy(self) -> list[Worker]:
        """Those that have something in hand."""
        return [w for w in self._all if w.taken]

    @property
    def count(self) -> int:
        """Those that there are."""
        return len(self._all)

    def idle(self) -> Worker | None:
        """One that can be given something; a new one if there may be more, None where there is none."""
        free = next((w for w in self._all if not w.taken), None)
        if free is not None or len(self._all) >= self.most:
            return free
        try:
            return self._started()
        except OSError as error:  # EAGAIN: no more processes; ENOMEM; EMFILE: no more pipes
            self._no_more(error.strerror or str(error))
            return None

    def _no_more(self, reason: str) -> None:
        self.refused = reason
        self.most = len(self._all)

    def _started(self) -> Worker:
        mine, theirs = self._context.Pipe()
        inherited = [mine, *(w.pipe for w in self._all)] if self.forks else []
        try:
            process: Any = self._context.Process(  # type: ignore[attr-defined]  # a context of one method has it
                target=_serve, args=(theirs, inherited, self._stop, os.getpid()), name="bloom-worker"
            )
            process.start()
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
        worker = Worker(process, mine)
        self._all.append(worker)
        return worker

    def give(self, worker: Worker, taken: list[int], tasks: list[Task]) -> None:
        """Hand files to a worker that has none. Raises Killed."""
        try:
            worker.pipe.send(tasks)
        except OSError:
            self._gone(worker)
            self._short_lived += 1
            if self._short_lived >= _SHORT_LIVED_MOST:
                self._no_more("they end as soon as they have started")
            raise Killed from None
        self._short_lived = 0
        worker.taken = taken

    def next(self) -> tuple[list[int], list[FileRow] | None]:
        """What some worker had in hand, and its rows, as soon as they are there; None where it was killed."""
        ready = set(wait([w.pipe for w in self.busy]))
        worker = next(w for w in self.busy if w.pipe in ready)
        taken, worker.taken = worker.taken, []
        try:
            rows: list[FileRow] = worker.pipe.recv()
        except (EOFError, OSError):
            self._gone(worker)
            return taken, None
        return taken, rows

    def _gone(self, worker: Worker) -> None:
        self._all.remove(worker)
        worker.pipe.close()
        worker.process.join()
        worker.process.close()

    def stop(self) -> None:
        """Have them leave what they haven't done."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """They were told to stop."""
        return bool(self._stop.is_set())

    def close(self) -> None:
        """Wait until all have ended; what they still have in hand is finished, or left after a stop."""
        for worker in self._all:
            worker.pipe.close()
        for worker in self._all:
            worker.process.join()
            worker.process.close()
        self._all.clear()


# in the worker

_stop: Any = None
_parent: int | None = None
"""To be looked after where no thread does."""


def _serve(pipe: Connection, inherited: list[Connection], stop: Any, parent: int) -> None:
    """A worker: Ctrl-C is for the parent, which tells by `stop`; a parent that was killed is noticed."""
    import signal

    global _stop, _parent  # noqa: PLW0603  what a worker knows besides its task
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_by_default()
    for other in inherited:  # else a pipe whose other end is gone would not be at its end
        other.close()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)  # nobody will read the rows; temporary files are swept by the next run

    try:
        threading.Thread(target=watch, daemon=True).start()
    except RuntimeError:  # no thread to be had
        _parent = parent
    with contextlib.suppress(EOFError, OSError):  # the parent has closed its end, or is gone
        while True:
            pipe.send(_several(pipe.recv()))


def _stoppable(phase: str, done: int, total: int) -> None:
    del phase, done, total
    if _parent is not None and os.getppid() != _parent:
        os._exit(1)
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
    except (
        SystemExit
    ) as end:  # by a signal: the file is whole, and the parent must not take the worker for a live one
        os._exit(end.code if isinstance(end.code, int) else 1)
    return rows
