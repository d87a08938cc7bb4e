"""Builds filters ahead of the writer, or checks them, within a memory limit.

    jobs, in order     built by threads          written, in order
    f0 f1 f2 ...  ->   |<- being built, or waiting to be written: at most the ceiling           ->|  -> file

A job starts when its maximum memory and all filters in memory fit under the ceiling. The first unwritten filter is
always built, which prevents a deadlock. The writing thread does the counting; the building threads never wait for
memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Generic, NamedTuple, Self, TypeVar

from bloomcli import limits
from bloomcli.concurrency.threads import REFUSED, Future, Stop, Threads

T = TypeVar("T")

_MAX_JOBS: Final = 1024


class Job(NamedTuple, Generic[T]):
    """One result to build."""

    bytes: int
    """Maximum memory while it is built."""
    build: Callable[[], T]


class BuildQueue(Generic[T]):
    """Runs jobs in threads, and returns their results in the order of the jobs. The caller releases each result.

    Args:
        jobs: the jobs, in order. One that needs more memory than all may have is built alone.
        threads: the maximum number of threads.
        result_bytes: bytes that a result takes until it is written.
        stop: is set if the caller ends early: running jobs must check it.
        max_jobs: maximum number of started and waiting jobs, regardless of their memory.
    """

    def __init__(
        self,
        jobs: Iterable[Job[T]],
        threads: int,
        result_bytes: Callable[[T], int],
        stop: Stop | None = None,
        *,
        max_jobs: int = _MAX_JOBS,
    ) -> None:
        self._stop = stop or Stop()
        self._max_jobs = max_jobs
        self._jobs: Iterator[Job[T]] = iter(jobs)
        self._next = next(self._jobs, None)
        self._result_bytes = result_bytes
        self._running: deque[Future[T]] = deque()
        self._lock = threading.Lock()
        self._used = 0
        self._taken_bytes = 0
        self._failed = False
        self._threads = Threads(threads, "bloom-decode")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._stop.requested |= error is not None
        self._threads.close()
        self._running.clear()

    def start_jobs(self) -> None:
        """Start the jobs that fit under the ceiling. Results that were taken before must be written and released."""
        with self._lock:
            self._used -= self._taken_bytes
        self._taken_bytes = 0
        while self._next is not None and not self.full:
            job = self._next
            with self._lock:
                self._used += job.bytes
            self._running.append(self._threads.submit(partial(self._build, job)))
            self._next = next(self._jobs, None)

    @property
    def full(self) -> bool:
        """Whether the next job has to wait until finished filters are written."""
        if self._next is None or not self._running:
            return False
        too_large = self._used + self._next.bytes > limits.FILTERS_IN_FLIGHT_MAX_BYTES
        return too_large or len(self._running) >= self._max_jobs

    @property
    def ready(self) -> bool:
        """Whether the next result is ready."""
        return bool(self._running) and self._running[0].done()

    def __bool__(self) -> bool:
        """Whether results remain to be taken."""
        return bool(self._running) or self._next is not None

    def take(self) -> T:
        """Wait for the next result and return it. Raises the error of its job."""
        if not self._running:
            self.start_jobs()
        future = self._running.popleft()
        result = self._threads.result(future)
        self._taken_bytes += self._result_bytes(result)
        return result

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the user about the execution."""
        return (REFUSED,) if self._threads.refused else ()

    def failed(self) -> bool:
        """Whether a job has failed. `take` raises its error."""
        return self._failed

    def _build(self, job: Job[T]) -> T:
        try:
            result = job.build()
        except BaseException:
            self._failed = True
            raise
        with self._lock:
            self._used += self._result_bytes(result) - job.bytes
        return result


def in_order(jobs: Iterable[Job[T]], threads: int, stop: Stop) -> Iterator[T]:
    """Run jobs, one more than `threads` at a time so that no thread waits, and yield their results in order.

    `stop` is set if the caller ends early: running jobs must check it.
    """
    with BuildQueue(jobs, threads, lambda _: 0, stop, max_jobs=threads + 1) as queue:
        while queue:
            queue.start_jobs()
            yield queue.take()
