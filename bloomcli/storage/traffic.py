"""Counts the requests to object stores and their bytes, for the command that caused them.

A command opens `measured` around its work on a file. A store's client counts each request at `current`, the meter of
the work that the request belongs to. Threads don't inherit it: what works in other threads takes the meter along, and
opens `counted_by` around its requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bloomcli.model.traffic import Traffic


class Meter:
    """Adds up requests and bytes. Threads may count at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = Traffic()

    def count(self, *, requests: int = 1, downloaded: int = 0, uploaded: int = 0, copied: int = 0) -> None:
        """Add requests, and bytes of content that they moved."""
        with self._lock:
            self._total += Traffic(requests, downloaded, uploaded, copied)

    @property
    def total(self) -> Traffic:
        """The sum so far."""
        return self._total


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current() -> Meter:
    """The meter of the work at hand; one that nobody reads where none was opened."""
    return _METER.get() or Meter()


@contextmanager
def measured() -> Iterator[Meter]:
    """Count what happens within, in this thread, with a new meter. Its sum is added to an outer meter at the end."""
    outer, meter = _METER.get(), Meter()
    try:
        with counted_by(meter):
            yield meter
    finally:
        if outer is not None:
            total = meter.total
            outer.count(
                requests=total.requests,
                downloaded=total.bytes_downloaded,
                uploaded=total.bytes_uploaded,
                copied=total.bytes_copied_by_store,
            )


@contextmanager
def counted_by(meter: Meter) -> Iterator[None]:
    """Count what happens within, in this thread, with a meter that exists."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)
