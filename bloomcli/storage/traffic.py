"""Counts the requests to object stores and their bytes, for the command that caused them.

A command opens `measured` around its work on a file. A store's client counts each request with `current`, the meter
of that work. Threads don't inherit the meter: code that runs in another thread receives it, and opens `counted_by`
around its requests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from bloomcli.model.traffic import Traffic

P = ParamSpec("P")
R = TypeVar("R", bound=Any)


class Meter:
    """Adds up requests and bytes. Several threads may count at the same time.

    Attributes:
        total: the sum so far.
        remarks: remarks on the requests, for the report.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.total = Traffic()
        self.remarks: list[str] = []

    def count(self, *, requests: int = 1, downloaded: int = 0, uploaded: int = 0, copied: int = 0) -> None:
        """Add requests, and the bytes of content that they transferred."""
        with self._lock:
            self.total += Traffic(requests, downloaded, uploaded, copied)

    def remark(self, *texts: str) -> None:
        """Add remarks for the report."""
        self.remarks += texts

    def add(self, traffic: Traffic) -> None:
        """Add another meter's total."""
        with self._lock:
            self.total += traffic


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current() -> Meter:
    """The meter of the current work; a new, unused one if none is open."""
    return _METER.get() or Meter()


@contextmanager
def measured() -> Iterator[Meter]:
    """Count the requests of a block in this thread with a new meter, whose total is then added to the outer one."""
    outer, meter = _METER.get(), Meter()
    try:
        with counted_by(meter):
            yield meter
    finally:
        if outer is not None:
            outer.add(meter.total)
            outer.remark(*meter.remarks)


@contextmanager
def counted_by(meter: Meter) -> Iterator[None]:
    """Count the requests of a block in this thread with an existing meter."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


def with_traffic(report: R, traffic: Traffic | None) -> R:
    """Add the requests to a report of a file. Returns it unchanged if it has some, or if there were none."""
    if not traffic or report.requests is not None:
        return report
    return replace(
        report,
        requests=traffic.requests,
        bytes_downloaded=traffic.bytes_downloaded,
        bytes_uploaded=traffic.bytes_uploaded,
        bytes_copied_by_store=traffic.bytes_copied_by_store,
    )


def counted(work: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that works on a file: its report gets the requests that it sent."""

    @wraps(work)
    def run(*args: P.args, **named: P.kwargs) -> R:
        with measured() as meter:
            report = work(*args, **named)
        return with_traffic(report, meter.total)

    return run
