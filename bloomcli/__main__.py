"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import _thread
import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_INTERRUPTED: Final = 130
_STOPPED: Final = 128
"""The exit codes of a stopped run begin here. It ends as Python ends: what it leaves behind may free itself."""
_NEW_OBJECTS: Final = 100_000
"""New objects between two searches for cycles. By Python's default of 700, imports alone take 60 such searches, a
twentieth of the time of a short run."""


def command() -> NoReturn:
    """Run the command line, and end the process."""
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code < _STOPPED:
            _end(end.code)
        raise
    raise AssertionError("main() always exits")


def main() -> NoReturn:
    """Run the command line. Ctrl-C ends it without a traceback, also while its modules are imported.

    Raises:
        SystemExit: always, with the exit code.
    """
    sys.unraisablehook = _raise_later
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from bloomcli.cli import run

        code = run()
    except KeyboardInterrupt:
        with suppress(OSError, AttributeError):  # standard error may be closed
            sys.stderr.write("bloom: stopped\n")
        code = _INTERRUPTED
    sys.exit(code)


def _end(code: int) -> None:
    """End the process with this exit code, and leave its memory to the system: to free all objects and modules takes
    a twenty-fifth of a short run. Return where Python has more to do at its end: other threads run, warnings were
    asked for (of files that are still open, say), or the last output can't be written, which Python reports."""
    with suppress(Exception, KeyboardInterrupt):
        import atexit
        import threading

        if sys.warnoptions or sys.flags.dev_mode or threading.active_count() > 1:
            return
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _raise_later(failed: UnraisableHookArgs) -> None:
    """Raise Ctrl-C again where Python called a function that can't raise, as it does in imports: it would be lost."""
    if issubclass(failed.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_thread.interrupt_main, ())  # in this thread it would be raised here, and lost again
    else:
        sys.__unraisablehook__(failed)


if __name__ == "__main__":
    command()
