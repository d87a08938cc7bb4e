"""``python -m bloomcli``, and the ``bloom`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    from bloomcli.cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
