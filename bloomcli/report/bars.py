"""Draws bars and sparklines with characters, for columns of grids on terminals (`layout.Head.graphic`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

CELLS: Final = 10
"""Cells of a whole bar, and of the longest sparkline."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LEVELS: Final = "▁▂▃▄▅▆▇█"


def bar(share: float | None) -> str:
    """Return a bar for a share in [0, 1]: ``████▍``. Any share above 0 has at least an eighth of a cell; only the
    share 1 fills all cells."""
    if share is None or share <= 0:
        return ""
    eighths = min(max(round(share * CELLS * 8), 1), CELLS * 8 - (share < 1))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def sparkline(shares: Sequence[float]) -> str:
    """Return a character for each share in [0, 1]: ``▂▂█▂``. With more than `CELLS` shares, a character shows the
    highest of several neighbouring ones."""
    number = min(len(shares), CELLS)
    highest = [max(shares[i * len(shares) // number : (i + 1) * len(shares) // number]) for i in range(number)]
    return "".join(_LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)] for share in highest)
