"""Results of lookups in a store that all files of one run share: which table a directory belongs to, its newest
snapshot. Outside of a run each call looks again, because a table may change at any time. Threads that ask for the
same at the same time wait for one lookup."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache, update_wrapper, wraps
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

R = TypeVar("R")

_MOST: Final = 1 << 16
"""The results of a function that are kept, those that were used last."""
_LOCK: Final = threading.Lock()
_clearing: list[Callable[[], None]] = []
_runs = 0


@contextmanager
def shared() -> Iterator[None]:
    """Share the results of `once_per_run` in all threads of this process, until the last such block ends."""
    global _runs  # noqa: PLW0603  the process's state
    with _LOCK:
        _runs += 1
    try:
        yield
    finally:
        with _LOCK:
            _runs -= 1
            for clear in _clearing if not _runs else ():
                clear()


def once_per_run(function: Callable[[str], R]) -> Callable[[str], R]:
    """Call a function of a directory once for each directory within a run. Errors aren't kept."""
    kept = one_call(_MOST)(function)
    _clearing.append(kept.cache_clear)

    @wraps(function)
    def look_up(directory: str) -> R:
        return kept(directory) if _runs else function(directory)

    return look_up


def one_call(most: int) -> Callable[[Callable[..., R]], OneCall[R]]:
    """Keep a function's results for the `most` arguments that were used last. Errors aren't kept.

    Threads that call it with the same arguments wait for the first call. Without that each would send the same
    requests.
    """
    return lambda function: OneCall(function, most)


class OneCall(Generic[R]):
    """A function that `one_call` decorates."""

    def __init__(self, function: Callable[..., R], most: int) -> None:
        self._kept = lru_cache(most)(function)
        self.cache_clear: Final = self._kept.cache_clear
        self._locks: WeakValueDictionary[object, threading.Lock] = WeakValueDictionary()
        update_wrapper(self, function)

    def __call__(self, *args: Hashable) -> R:
        with _LOCK:
            lock = self._locks.setdefault(args, threading.Lock())
        with lock:
            return self._kept(*args)
