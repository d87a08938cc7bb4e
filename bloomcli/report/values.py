"""Formats values of columns for tables: on one line, and cut with a mark if they are long."""

from __future__ import annotations

import re
from typing import Final

from bloomcli.report.human import printable, width

CUT: Final = "…"
"""The mark at the end of a value that isn't complete."""

VALUE_WIDTH: Final = 20
"""The most terminal cells of a text in a table."""

_FIGURE: Final = re.compile(r"[-+.:TZe0-9]{1,48}")
"""Matches numbers, dates and times. They are never cut, because the rest would look like another value."""


def value(text: str, most: int = VALUE_WIDTH, *, exact: bool | None = None) -> str:
    """Format a value: escaped, in quotes if it begins or ends with blanks, and cut after `most` cells if it is text.

    Args:
        text: the value as `probe` accepts it.
        most: the most terminal cells.
        exact: False for a bound that the writer shortened. It gets the mark of a cut value, unless it is a number or
            a
            time.
    """
    if _FIGURE.fullmatch(text):
        return text
    quoted = f'"{text}"' if not text or text != text.strip() else text
    found = printable(quoted[: most + 1])
    if len(quoted) > most + 1 or width(found) > most:
        return _start(quoted, most - 1) + CUT
    return found + CUT if exact is False else found


def _start(text: str, cells: int) -> str:
    """As many characters as fit into `cells`; an escape is never cut."""
    taken, room = [], cells
    for char in text:
        shown = printable(char)
        room -= width(shown)
        if room < 0:
            break
        taken.append(shown)
    return "".join(taken)


def shorten(text: str, most: int = VALUE_WIDTH) -> str:
    """Cut a formatted value that takes more than `most` cells. Only the fraction of a number or time is cut; without
    a fraction, or if the digits before it don't fit, the result is only the mark."""
    if width(text) <= most:
        return text
    whole, point, _ = text.partition(".")
    if not point or "e" in text or not _FIGURE.fullmatch(text) or len(whole) >= most:
        return CUT
    return text[: most - 1].rstrip(".") + CUT
