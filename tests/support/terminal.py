"""Runs bloom with its standard output on a real terminal of a given width."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from unittest import mock

from bloomcli.cli import run
from support.cli import Result

_END: Final = b"\x1b[999~"
"""Written last, while the terminal is open: systems differ in the bytes that can be read after it is closed."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def without_colours(text: str) -> str:
    """The text that a terminal shows, without colours."""
    return _COLOURS.sub("", text)


def on_terminal(args: Sequence[object], columns: int, *, folder: Path | None = None) -> Result:
    """Run bloom in this process. Its standard output is a terminal of this width, and shows no colours.

    Standard error isn't a terminal, because progress bars depend on the machine's speed.

    Args:
        args: the command line.
        columns: the terminal's width, in cells.
        folder: the working directory.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shown = bytearray()

    def read() -> None:
        while not shown.endswith(_END):
            shown.extend(os.read(ours, 65536))

    reader = threading.Thread(target=read)
    reader.start()
    errors = io.StringIO()
    out = io.TextIOWrapper(io.FileIO(theirs, "w"), encoding="utf-8", write_through=True)  # type: ignore[type-var]
    try:
        with (
            _environment(),
            contextlib.chdir(folder or Path()),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            code = run([str(a) for a in args])
            sys.stdout.flush()
    finally:
        os.write(theirs, _END)
        reader.join()
        out.close()
        os.close(ours)
    return Result(code, without_colours(shown.removesuffix(_END).decode().replace("\r\n", "\n")), errors.getvalue())


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    with mock.patch.dict(os.environ, {"TERM": "xterm"}):
        for name in ("COLUMNS", "NO_COLOR"):
            os.environ.pop(name, None)
        yield


@contextlib.contextmanager
def still_clock() -> Iterator[None]:
    """Stop the clock within the block, so that commands report the same times on every machine."""
    with mock.patch("time.perf_counter", return_value=0.0):
        yield
