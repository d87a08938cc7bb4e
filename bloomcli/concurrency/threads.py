"""A thread pool that works even when the system refuses to start threads (RLIMIT_NPROC, cgroup pids.max).

If the system starts fewer threads than requested, the pool uses those. If it starts none, the thread that waits for a
result does the work. The standard library's executor raises in that case, or waits for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Self, TypeVar

from bloomcli.concurrency.cancellation import Stopped

T = TypeVar("T")

REFUSED: Final = (
    "the system started fewer threads than requested: `ulimit -u`, or the container's pids.max, says how many "
    "there may be"
)
"""The remark in the report of a command that ran with fewer threads."""


class Future(Generic[T]):
    """The result of work in a pool, which may not be there yet.

    `concurrent.futures.Future` takes 4 ms to import, most of it for `logging`.
    """

    def __init__(self) -> None:
        self._finished = threading.Event()
        self._value: T
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether the work has ended, or was cancelled."""
        return self._finished.is_set()

    def result(self) -> T:
        """Wait for the work, and return what it returned, or raise what it raised; Stopped if it was cancelled."""
        self._finished.wait()
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # an error has this frame in its traceback, and the frame must not have the error

    def run(self, work: Callable[[], T]) -> None:
        """Do the work, in the thread that calls this."""
        try:
            self._value = work()
        except BaseException as error:  # noqa: BLE001  `result` raises it
            self._error = error
        self._finished.set()

    def cancel(self) -> None:
        """Give up work that hasn't started."""
        self._error = Stopped()
        self._finished.set()


def done(value: T) -> Future[T]:
    """The result of work that has been done already."""
    found: Future[T] = Future()
    found.run(lambda: value)
    return found


class Threads:
    """A pool of at most `most` threads, which start on demand. Work starts in the order of submission.

    With 0 threads, the thread that waits for a result does the work.

    Attributes:
        most: threads.
    """

    def __init__(self, most: int, name: str) -> None:
        self.most = most
        self._name = name
        self._threads: list[threading.Thread] = []
        self._refused = False
        self._idle = 0
        self._closed = False
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._change = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def refused(self) -> bool:
        """The system has refused to start a thread."""
        return self._refused

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue work for the pool; `result` returns what it returned."""
        future: Future[T] = Future()
        with self._change:
            self._waiting.append((future, work))
            wanted = len(self._waiting) > self._idle and len(self._threads) < self.most
            self._change.notify()
        if wanted and not self._refused:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}")
            try:
                thread.start()
            except RuntimeError:  # "can't start new thread"
                self._refused = True
            else:
                self._threads.append(thread)
        return future

    def result(self, future: Future[T]) -> T:
        """Return what the work returned, or raise what it raised.

        In a pool without threads, this call does the work, after the work that was submitted before it.
        """
        while not self._threads and not future.done():
            first, work = self._waiting.popleft()
            first.run(work)
        return future.result()

    def close(self) -> None:
        """Cancel the work that hasn't started, and wait for the rest. Can be called more than once."""
        with self._change:
            self._closed = True
            given_up = list(self._waiting)
            self._waiting.clear()
            self._change.notify_all()
        for future, _ in given_up:
            future.cancel()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._change:
                self._idle += 1
                while not self._waiting and not self._closed:
                    self._change.wait()
                self._idle -= 1
                if not self._waiting:
                    return
                future, work = self._waiting.popleft()
            future.run(work)
            del future, work  # drop the references: a result may be large, and belongs to the caller
