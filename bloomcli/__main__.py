"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False  # nothing is imported before `main`, which catches Ctrl-C
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from typing import Final, NoReturn

_INTERRUPTED: Final = 130


def main() -> NoReturn:
    """Run the command line. Ctrl-C ends it without a traceback, also while its modules are imported.

    Raises:
        SystemExit: always, with the exit code.
    """
    sys.unraisablehook = _raise_later
    try:
        from bloomcli.cli import run

        code = run()
    except KeyboardInterrupt:
        try:  # noqa: SIM105  contextlib may not be imported yet
            sys.stderr.write("bloom: stopped\n")
        except (OSError, AttributeError):  # standard error may be closed
            pass
        code = _INTERRUPTED
    sys.exit(code)


def _raise_later(failed: UnraisableHookArgs) -> None:
    """Raise Ctrl-C again if it came in a function that can't raise, such as those of imports; it would be lost."""
    if issubclass(failed.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_thread.interrupt_main, ())  # in this thread, it would be raised here and lost again
    else:
        sys.__unraisablehook__(failed)


if __name__ == "__main__":
    main()
