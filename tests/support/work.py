"""Counts the work of commands in other processes, in pieces of bounded size, and holds it while a test acts.

Unlike seconds, the number of pieces is the same on every machine and under every load.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_COUNTING: Final = Path(__file__).with_name("counting")


def counting(folder: Path | str, held: int | None = None) -> dict[str, str]:
    """The environment of a command whose pieces are counted in a folder.

    With `held`, each of its processes waits after so many pieces until it is cancelled.
    """
    more = {} if held is None else {"COUNTINGHELD": str(held)}
    return os.environ | {"PYTHONPATH": str(_COUNTING), "COUNTINGFOLDER": str(folder)} | more


def pieces(folder: Path | str) -> list[int]:
    """The number of pieces of each process that has begun one."""
    return sorted(path.stat().st_size for path in Path(folder).iterdir())
