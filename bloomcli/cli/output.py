"""Results onto standard output, progress onto standard error."""

from __future__ import annotations

import codecs
import io
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from bloomcli.report.layout import Block

_PATIENCE: Final = 0.5
"""Seconds that work may take before a bar is shown: most commands are done by then."""

_AS_IT_CAN: Final = "bloom"
"""The name of `_as_it_can` among the ways of Python to treat what an encoding can't hold."""

_PHASES: Final = {"copy": "copying", "decode": "reading columns", "check": "checking values"}


def take_any_text() -> None:
    """Let standard output take whatever is in names of files and columns, in any locale, and all of it."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        # python -u, PYTHONUNBUFFERED: what the system doesn't take in one call would be lost without a word
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(sys.stdout.fileno(), "w", closefd=False)),
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.isatty(),
        )
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error(_AS_IT_CAN, _as_it_can)
        sys.stdout.reconfigure(errors=_AS_IT_CAN)


def _as_it_can(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""A byte of a file's name that is no text is written as it is, what the locale can't spell as ``\u2603``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    at = error.start
    one = UnicodeEncodeError(error.encoding, error.object, at, at + 1, error.reason)
    stands_for_a_byte = "\udc80" <= error.object[at] <= "\udcff"
    return codecs.lookup_error("surrogateescape" if stands_for_a_byte else "backslashreplace")(one)


def write(command: str, report: object, form: str, text: Callable[[Any], Iterable[Block]]) -> None:
    """Print a report as JSON or as text laid out by `text`."""
    if form == "json":
        from bloomcli.report import json

        json.write(command, report, sys.stdout)
    else:
        from bloomcli.report import render

        render.write(text(report), sys.stdout)


class Bars:
    """One bar a phase on standard error, on a terminal only, and only when the work takes a while."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._texts: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def describe(self, phase: str, text: str) -> None:
        """Show `text` beside a phase's bar."""
        with self._lock:
            self._texts[phase] = text

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Show that `done` of `total` bytes of a phase are done; called from several threads."""
        if not self._shown or time.monotonic() - self._started < _PATIENCE:
            return
        with self._lock:
            bars = self._bars
            if bars is None:
                bars = self._bars = _bars()
            if phase not in self._tasks:
                self._tasks[phase] = bars.add_task(_PHASES.get(phase, phase), total=total)
            text = self._texts.get(phase)
            bars.update(self._tasks[phase], completed=done, description=text, refresh=not bars.live.auto_refresh)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=_a_thread_starts(),  # by a thread; else with each step
    )
    bars.start()
    return bars


def _a_thread_starts() -> bool:
    try:
        threading.Thread(target=int).start()
    except RuntimeError:  # RLIMIT_NPROC
        return False
    return True
