"""Everything that has to hold, one step after the other: format, lint, types, manual pages, all tests with coverage.

``python tests/check.py`` runs them all and stops at the first that fails; ``--quick`` leaves out the suites that
start other engines (Spark, DuckDB), the slow ones, and the coverage gate.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUICK = ("-m", "not spark and not interop and not slow")
COVERAGE = ("--cov=bloomcli", "--cov-report=term", "--cov-fail-under=95")


def steps(*, quick: bool) -> list[tuple[str, ...]]:
    """Modules to run, with their arguments."""
    return [
        ("ruff", "format", "--check", "."),
        ("ruff", "check", "."),
        ("mypy",),
        ("bloomcli.cli.man", "--check"),
        ("bloomcli.cli.rules_index", "--check"),
        ("pytest", "-q", "--durations=10", *(QUICK if quick else COVERAGE)),
    ]


def main(args: Sequence[str]) -> int:
    """Run the steps; returns the exit code of the first that fails."""
    # Tests start hundreds of processes: each would compile every module again, which takes longer than its work.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for module, *arguments in steps(quick="--quick" in args):
        print(f"== {module} {' '.join(arguments)}", flush=True)
        started = time.monotonic()
        code = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, env=env).returncode
        if code:
            print(f"== {module} failed with {code}", flush=True)
            return code
        print(f"== {module}: {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
