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
"""The lowest exit code of a stopped run. Such a run ends with Python's own cleanup, which may free its resources."""
_NEW_OBJECTS: Final = 100_000
"""Number of new objects between two collections of reference cycles. With Python's default of 700, imports alone
cause 60 collections, which take 5 % of a short run."""


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
    """End the process with this exit code without freeing objects and modules, which takes 4 % of a short run. Return
    if Python has more to do at its end: other threads run, warnings are enabled (such as those about open files), or
    the last output can't be written, which Python reports."""
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
    """Raise Ctrl-C again if it came in a function that can't raise, such as those of imports; it would be lost."""
    if issubclass(failed.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_thread.interrupt_main, ())  # in this thread, it would be raised here and lost again
    else:
        sys.__unraisablehook__(failed)


if __name__ == "__main__":
    command()
