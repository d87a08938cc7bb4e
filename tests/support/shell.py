"""Splits command lines of `bloom` into arguments, as a shell does."""

from __future__ import annotations

import subprocess
from pathlib import Path


def arguments(line: str, folder: Path | None = None) -> list[str]:
    """The arguments of a command line: a shell, bash, removes quotes, and replaces variables and patterns.

    Args:
        line: a command line of `bloom`, without pipes and redirections.
        folder: the working directory.
    """
    script = f"bloom() {{ printf '%s\\0' \"$@\"; }}\n{line}\n"
    done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout.split("\0")[:-1]
