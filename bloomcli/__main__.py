"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import gc
import sys
from typing import Final

_NEW_OBJECTS: Final = 100_000
"""New objects between two searches for cycles. By Python's default of 700, imports alone take 60 such searches, a
twentieth of the time of a short run."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_NEW_OBJECTS)
    from bloomcli.cli import run

    code = run()
    gc.freeze()  # a last search for cycles would take a twentieth of a short run, and the memory is given back anyway
    sys.exit(code)


if __name__ == "__main__":
    main()
