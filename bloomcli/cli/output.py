"""Writes results to standard output and progress to standard error."""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

from bloomcli.cli.options import is_quiet
from bloomcli.concurrency.threads import start
from bloomcli.report.human import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.status import Status

    from bloomcli.report.layout import Block

PATIENCE: Final = 0.5
"""Seconds before the first progress bar: most commands finish earlier."""

_ERRORS: Final = "bloom"
"""The name under which `_encode_anything` is registered as an error handler of Python's codecs."""

_PHASES: Final = {"copy": "copying", "decode": "reading columns", "check": "checking values"}


def fill_closed_streams() -> None:
    """Open the null device for standard streams that the caller closed (`>&-`). Otherwise a file that is opened later
    would get their numbers, and the output of libraries. Commands then fail to write to standard output."""
    for name, number, flags in (("stdin", 0, os.O_RDONLY), ("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None and (opened := os.open(os.devnull, flags)) == number:
            setattr(sys, name, os.fdopen(opened, "r" if number == 0 else "w", encoding="utf-8"))


def take_any_text() -> None:
    """Make standard output accept all names of files and columns in any locale, and write them completely."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        # with python -u or PYTHONUNBUFFERED, a partial write of the system would lose the rest silently
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(sys.stdout.fileno(), "w", closefd=False)),
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.isatty(),
        )
    # Python chooses "surrogateescape" in the C locale
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in {"strict", "surrogateescape"}:
        codecs.register_error(_ERRORS, _encode_anything)
        sys.stdout.reconfigure(errors=_ERRORS)


def _encode_anything(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Encode a byte of a file's name that isn't text as that byte, and other characters as ``\u2603``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    at = error.start
    byte_error = UnicodeEncodeError(error.encoding, error.object, at, at + 1, error.reason)
    stands_for_a_byte = "\udc80" <= error.object[at] <= "\udcff"
    return codecs.lookup_error("surrogateescape" if stands_for_a_byte else "backslashreplace")(byte_error)


def say(text: str, *, err: bool = False, stream: TextIO | None = None) -> None:
    """Print one line, or write it to a stream. Click's `echo` would write UTF-8 even in the C locale, where terminals
    can't show it."""
    to = stream or (sys.stderr if err else sys.stdout)
    to.write(printable(text) + "\n")
    to.flush()


def say_problems(problems: Iterable[tuple[str | None, str | None]]) -> None:
    """Print errors of files with their hints to standard error."""
    for error, hint in problems:
        say(f"bloom: {error}", err=True)
        if hint:
            say(f"hint: {hint}", err=True)


def write(
    command: str,
    report: Any,
    form: str,
    text: Callable[[Any], Iterable[Block]],
    stream: TextIO | None = None,
) -> None:
    """Write a report as JSON, CSV, HTML, or the blocks of text that `text` yields, to a stream or to standard output.
    With --quiet, no text goes to standard output."""
    to = sys.stdout if stream is None else stream
    if form == "json":
        from bloomcli.report import json

        json.write(command, report, to)
    elif form == "csv":
        from bloomcli.report import csv

        csv.WRITERS[command](report, to)
    elif form == "html":
        from bloomcli.report.html import html

        to.write(html(report))
    elif stream is not None or not is_quiet():
        from bloomcli.report import render

        render.write(text(report), to)


class Bars:
    """Progress bars on standard error, one per phase. They are shown only on a terminal, after `PATIENCE`, and not
    with --quiet."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty() and not is_quiet()
        """Whether the bars are visible."""
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._texts: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def describe(self, phase: str, text: str) -> None:
        """Set the text of a phase's bar."""
        with self._lock:
            self._texts[phase] = text

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Show that `done` of `total` bytes of a phase are done. Can be called from several threads."""
        if not self.shown or time.monotonic() - self._started < PATIENCE:
            return
        with self._lock:
            bars = self._bars
            if bars is None:
                bars = self._bars = _bars()
            if phase not in self._tasks:
                self._tasks[phase] = bars.add_task(_PHASES.get(phase, phase), total=total)
            text = self._texts.get(phase)
            bars.update(self._tasks[phase], completed=done, description=text, refresh=not bars.live.auto_refresh)


class StatusLine:
    """A status line on standard error with the progress of a command, only on a terminal, and not with --quiet.

    Args:
        patience: seconds before the line is first shown, and shown again after `clear`.

    Attributes:
        shown: whether standard error is a terminal, without --quiet.
    """

    def __init__(self, patience: float = 0) -> None:
        self.shown = sys.stderr.isatty() and not is_quiet()
        self._patience = patience
        self._since = time.monotonic()
        self._status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line, before something else is written to the terminal."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self._since = time.monotonic()

    def say(self, line: str) -> None:
        """Replace the line."""
        if not self.shown or time.monotonic() - self._since < self._patience:
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.status import Status

        text = escape(line)
        if self._status is None:
            self._status = Status(text, console=Console(stderr=True))
            self._status.start()
        self._status.update(text)


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
        auto_refresh=start(threading.Thread(target=int)),  # in a thread; without threads, at each call
    )
    bars.start()
    return bars
