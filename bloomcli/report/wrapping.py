"""Breaks text into lines at blanks. Numbers with their units, types and commands stay whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from bloomcli.report.human import width

_BREAK: Final = re.compile(
    r"""(?<!^)(?<!\ )                                   # not within leading or double blanks
    (?!(?<=\d)\ (?:B|[KMGTPE]iB|ms|s|min|%)(?!\w))    # 1.5 KiB, 12 %
    (?!(?<=[A-Z0-9_])\ \([A-Z])                        # INT64 (DATE)
    (?!(?<=->)\ \d)                                    # 1.0 KiB -> 2.0 KiB
    \ (?!\ )""",
    re.VERBOSE,
)
"""Matches a blank at which a line can be broken."""


def wrap_text(text: str, columns: int, hanging: int = 0) -> list[str]:
    """Break text into lines, at blanks only; longer words stay whole.

    Args:
        text: one line.
        columns: the most cells of a line.
        hanging: the number of cells by which further lines are shorter than the first one.
    """
    if width(text) <= columns:
        return [text]
    words, start = [], 0
    for found in _BREAK.finditer(text):
        words.append(text[start : found.start()])
        start = found.end()
    return fill_lines(_whole_commands([*words, text[start:]]), columns, hanging)


def fill_lines(words: Iterable[str], columns: int, hanging: int = 0) -> list[str]:
    """Fill lines with as many words as fit."""
    lines: list[str] = []
    for word in words:
        room = columns - hanging * (len(lines) > 1)
        if lines and width(lines[-1]) + 1 + width(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _whole_commands(words: Iterable[str]) -> Iterator[str]:
    """Join the words of a command between backticks: users would copy a line break within it."""
    waiting: list[str] = []
    for word in words:
        waiting.append(word)
        if sum(w.count("`") for w in waiting) % 2 == 0:
            yield " ".join(waiting)
            waiting = []
    yield from waiting  # an unpaired backtick doesn't begin a command
