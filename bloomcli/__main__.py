"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line."""
    from bloomcli.cli import run

    code = run()
    gc.freeze()  # a last search for cycles would take a twentieth of a short run, and the memory is given back anyway
    sys.exit(code)


if __name__ == "__main__":
    main()
