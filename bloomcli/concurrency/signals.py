"""Turns the signals that end a process into exceptions, so that temporary files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

STOPS: Final[tuple[int, ...]] = (signal.SIGTERM, signal.SIGHUP)
"""The signals that request a process to end; SIGHUP means that its terminal was closed. Ctrl-C already raises."""


class SignalExit(SystemExit):
    """SIGTERM or SIGHUP stopped a run. The text is the progress of the run."""

    def __init__(self, code: object, progress: str) -> None:
        super().__init__(code)
        self.progress = progress

    def __str__(self) -> str:
        return self.progress


@contextmanager
def terminable() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP. A signal that is ignored (nohup) or has another handler is unaffected.

    Only the first signal raises: a terminal that closes sends SIGHUP, and its shell sends another, which must not
    interrupt the cleanup.

    Raises:
        SystemExit: the code is 128 plus the signal's number, as in shells.
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


@contextmanager
def deferred() -> Iterator[None]:
    """Deliver a signal that stops the process (Ctrl-C too) at the end of the block, not within it.

    Used for requests that begin something that has to be ended, so that their answer must be received. A second
    signal is delivered immediately, so that a server that doesn't answer can't block the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *STOPS)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    received: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append((number, frame))
        if len(received) > 1:
            deliver()

    def deliver() -> None:
        number, frame = received.pop()
        received.clear()
        handler = handlers[number]
        assert callable(handler)  # noqa: S101  the others aren't deferred
        handler(number, frame)

    for number in handlers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            deliver()


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C if PySpark's handler raises another error.

    That handler sends Java a request to cancel all jobs, over the connection on which the interrupted thread waits.
    PySpark 4.1 then raises a connection error; newer versions raise KeyboardInterrupt. In both cases Py4J closes the
    connection and logs a traceback, which is suppressed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_pyspark_s(handler):
        yield
        return
    import logging  # commands that don't use Spark start without it

    def interrupt(number: int, frame: FrameType | None) -> None:
        assert callable(handler)  # noqa: S101  it is PySpark's
        try:
            handler(number, frame)
        except Exception:  # noqa: BLE001  any failure here follows from Ctrl-C
            raise KeyboardInterrupt from None

    signal.signal(signal.SIGINT, interrupt)
    logging.root.addFilter(_is_not_py4j_s)
    try:
        yield
    finally:
        logging.root.removeFilter(_is_not_py4j_s)
        signal.signal(signal.SIGINT, handler)


def _is_not_py4j_s(record: logging.LogRecord) -> bool:
    return not str(record.msg).endswith("while sending command.")


def _is_pyspark_s(handler: object) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("pyspark.")


def stop_by_default() -> None:
    """Restore the default handlers in a forked process; ignored signals stay ignored (nohup)."""
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
