"""Signals that end a process unwind it instead, so that temporary files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

STOPS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks a process to end; SIGHUP is a terminal that is gone. Ctrl-C is an exception already."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C. One that is ignored (nohup) or that somebody else handles is left alone.

    The first one counts: a terminal that goes sends SIGHUP, and its shell sends another, which must not stop the
    tidying up.

    Raises:
        SystemExit: with 128 and the signal's number, as shells give it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in STOPS if signal.getsignal(number) == signal.SIG_DFL]
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        del frame
        if not stopping:
            stopping = True
            raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def stop_by_default() -> None:
    """In a process that was forked: take off what its parent had put up; what is ignored stays so (nohup)."""
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
