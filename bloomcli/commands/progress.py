"""Progress of long operations, and the number of threads that they use."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock

Progress = Callable[[str, int, int], None]
"""Called with a phase's name, the bytes done and the total bytes."""


class Meter:
    """Adds up the progress of several threads, and reports it."""

    def __init__(self, progress: Progress | None, phase: str, total: int) -> None:
        self._progress = progress
        self._phase = phase
        self._total = total
        self._done = 0
        self._lock = Lock()

    def tick(self, count: int) -> None:
        """Count more bytes as done."""
        if self._progress is not None:
            with self._lock:
                self._done += count
                self._progress(self._phase, min(self._done, self._total), self._total)


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
