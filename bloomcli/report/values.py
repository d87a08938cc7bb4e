"""Formats values of columns for tables: on one line, and visibly cut if they are long."""

from __future__ import annotations

import re
from typing import Final

from bloomcli.report.human import printable, width

CUT: Final = "…"
"""Ends a value that isn't shown whole."""

VALUE_WIDTH: Final = 20
"""Terminal cells of a text in a table."""

_FIGURE: Final = re.compile(r"[-+.:TZe0-9]{1,48}")
"""Numbers, dates and times, which are never cut: what is left of one would look like another."""


def value(text: str, most: int = VALUE_WIDTH, *, exact: bool | None = None) -> str:
    """Format a value: escaped, in quotes if blanks at its ends would be lost, and a text cut after `most` cells.

    Args:
        text: as `probe` takes it.
        most: terminal cells.
        exact: False for a bound that the writer shortened, which is marked as cut; numbers and times aren't.
    """
    if _FIGURE.fullmatch(text):
        return text
    quoted = f'"{text}"' if not text or text != text.strip() else text
    found = printable(quoted[: most + 1])
    if len(quoted) > most + 1 or width(found) > most:
        return _start(quoted, most - 1) + CUT
    return found + CUT if exact is False else found


def _start(text: str, cells: int) -> str:
    """As many characters as fit, each escaped as a whole."""
    taken, room = [], cells
    for char in text:
        shown = printable(char)
        room -= width(shown)
        if room < 0:
            break
        taken.append(shown)
    return "".join(taken)


def shorten(text: str, most: int = VALUE_WIDTH) -> str:
    """Cut a value of `value` that takes more than `most` cells: the fraction of a number or time, never its other
    digits; the whole value if it has no fraction, or more digits than fit before it."""
    if width(text) <= most:
        return text
    whole, point, _ = text.partition(".")
    if not point or "e" in text or not _FIGURE.fullmatch(text) or len(whole) >= most:
        return CUT
    return text[: most - 1].rstrip(".") + CUT
