"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import _thread
import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_INTERRUPTED: Final = 130
_NEW_OBJECTS: Final = 100_000
"""New objects between two searches for cycles. By Python's default of 700, imports alone take 60 such searches, a
twentieth of the time of a short run."""


def main() -> None:
    """Run the command line. Ctrl-C ends it without a traceback, also while its modules are imported."""
    sys.unraisablehook = _raise_later
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from bloomcli.cli import run

        code = run()
    except KeyboardInterrupt:
        with suppress(OSError, AttributeError):  # standard error may be closed
            sys.stderr.write("bloom: stopped\n")
        code = _INTERRUPTED
    gc.freeze()  # a last search for cycles would take a twentieth of a short run, and the memory is given back anyway
    sys.exit(code)


def _raise_later(failed: UnraisableHookArgs) -> None:
    """Raise Ctrl-C again where Python called a function that can't raise, as it does in imports: it would be lost."""
    if issubclass(failed.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_thread.interrupt_main, ())  # in this thread it would be raised here, and lost again
    else:
        sys.__unraisablehook__(failed)


if __name__ == "__main__":
    main()
