"""A thread pool that works even when the system refuses to start threads (RLIMIT_NPROC, cgroup pids.max).

If the system starts fewer threads than requested, the pool uses these. If it starts none, the thread that waits for a
result does the work. The standard library's executor raises an exception in that case, or waits forever.

An exception that a signal raises (Ctrl-C) never leaves a lock locked, because all waits and locks are in C.
`threading.Condition` and `Event` are written in Python: a signal just before their unlock left them locked, and
`close` waited forever for a thread that waited for the lock.

`Stop` cancels work in other threads: only the main thread handles signals, and it can't interrupt compiled code.
`Meter` adds up the progress of several threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Self, TypeVar

from bloomcli.concurrency.signals import deferred


class Stopped(Exception):
    """The work was cancelled because its caller stopped."""


class Stop:
    """A cancellation flag. Work in other threads checks it after each piece of bounded size."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested = False

    def check(self) -> None:
        """Raise Stopped if cancellation was requested."""
        if self.requested:
            raise Stopped


T = TypeVar("T")
Item = TypeVar("Item")

REFUSED: Final = (
    "the system started fewer threads than requested: `ulimit -u`, or the container's pids.max, says how many "
    "there may be"
)
"""The remark in the report of a command that ran with fewer threads."""


class Future(Generic[T]):
    """The result of work in a pool, which may still be pending.

    `concurrent.futures.Future` takes 4 ms to import, most of it for `logging`.
    """

    def __init__(self) -> None:
        self._unfinished = threading.Lock()
        self._unfinished.acquire()
        self._done = False
        self._value: T
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether the work has finished or was cancelled."""
        return self._done

    def result(self) -> T:
        """Wait for the work, and return its result or raise its exception; Stopped if it was cancelled."""
        if not self._done:
            with self._unfinished:
                pass
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # the error's traceback refers to this frame, so the frame must not refer to the error

    def run(self, work: Callable[[], T]) -> None:
        """Do the work in the calling thread."""
        try:
            self._value = work()
        except BaseException as error:  # noqa: BLE001  `result` raises it
            self._error = error
        self._finish()

    def cancel(self) -> None:
        """Cancel work that hasn't started."""
        self._error = Stopped()
        self._finish()

    def _finish(self) -> None:
        self._done = True
        self._unfinished.release()


def done(value: T) -> Future[T]:
    """A finished future with this value."""
    future: Future[T] = Future()
    future.run(lambda: value)
    return future


_START_SECONDS: Final = 3


def start(thread: threading.Thread) -> bool:
    """Start a thread, and return whether it has started: the system may refuse it, or have no memory left for it.

    A thread for which no memory is left ends before it says that it has started, and CPython's ``Thread.start`` waits
    for that forever. A thread that hasn't started after some seconds may still do so.
    """
    started: Any = getattr(thread, "_started")  # noqa: B009  CPython's, without a public name
    started.wait = partial(started.wait, _START_SECONDS)
    with suppress(RuntimeError):  # "can't start new thread"
        thread.start()
    return bool(started.is_set())


class Threads:
    """A pool of at most `most` threads, which start on demand. Work starts in the order of submission.

    With 0 threads, the thread that waits for a result does the work.

    Attributes:
        most: the maximum number of threads.
        refused: the system has refused to start a thread.
    """

    def __init__(self, most: int, name: str) -> None:
        self.most = most
        self._name = name
        self._threads: list[threading.Thread] = []
        self.refused = False
        self._late: threading.Thread | None = None
        """The thread that hasn't started. It may still start, and does work then."""
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        """None ends a thread."""
        self._lock = threading.Lock()
        self._unfinished = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue work for the pool. `result` returns its result."""
        future: Future[T] = Future()
        with self._lock:
            self._unfinished += 1
            wanted = self._unfinished > len(self._threads) and len(self._threads) < self.most
        self._jobs.put((future, work))
        if wanted and not self.refused:
            with deferred():
                thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}")
                if start(thread):
                    self._threads.append(thread)
                else:
                    self.refused, self._late = True, thread
        return future

    def result(self, future: Future[T]) -> T:
        """Return the result of the work, or raise its exception.

        In a pool without threads, this call does the work, after the work that was submitted before it.
        """
        while not self._threads and not future.done():
            try:
                job = self._jobs.get_nowait()
            except Empty:  # a late thread does the work
                break
            assert job is not None  # noqa: S101  None ends a thread, and the pool has none
            first, work = job
            first.run(work)
        return future.result()

    def map(self, work: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
        """Do the work for several items at a time. Returns the results in the items' order.

        Raises the exception of the first item whose work failed.
        """
        futures = [self.submit(partial(work, item)) for item in items]
        return [self.result(future) for future in futures]

    def close(self) -> None:
        """Cancel the work that hasn't started, and wait for the rest. Can be called more than once."""
        with suppress(Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job[0].cancel()
        threads = self._threads if self._late is None else [*self._threads, self._late]
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            if thread.is_alive():  # a late thread that hasn't started can't be joined
                thread.join()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            future, work = job
            future.run(work)
            del job, future, work  # drop the references: a result may be large, and belongs to the caller
            with self._lock:
                self._unfinished -= 1


Progress = Callable[[str, int, int], None]
"""Called with a phase's name, the bytes done and the total bytes."""


class Meter:
    """Adds up the progress of several threads, and reports it."""

    def __init__(self, progress: Progress | None, phase: str, total: int) -> None:
        self._progress = progress
        self._phase = phase
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def tick(self, count: int) -> None:
        """Count more bytes as done."""
        if self._progress is not None:
            with self._lock:
                self._done += count
                self._progress(self._phase, min(self._done, self._total), self._total)


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
