"""Formats numbers with their nouns and units, for reports and messages: ``1 file``, ``2 files``, ``12.3 MiB``, ``0.98
%``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_SMALLEST_PERCENT: Final = 1e-4
"""Percentages of lower rates are in scientific notation: ``9.7e-03 %``."""


def noun(number: int, singular: str) -> str:
    """Return a noun in the form that its number needs: ``file`` for 1, ``files`` for all others; ``entries``."""
    if number == 1:
        return singular
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    if singular.endswith("x"):
        return f"{singular}es"
    return f"{singular}s"


def plural(number: int, singular: str) -> str:
    """Format a count with its noun: ``1 filter``, ``2 filters``, ``1,000 row groups``."""
    return f"{number:,} {noun(number, singular)}"


def counted(number: int, singular: str) -> str:
    """Format a count without separators, for messages that people search logs for: ``1 byte``, ``1000 bytes``."""
    return f"{number} {noun(number, singular)}"


def are(number: int) -> str:
    """Return ``is`` for 1, ``are`` for all other numbers."""
    return "is" if number == 1 else "are"


def were(number: int) -> str:
    """Return ``was`` for 1, ``were`` for all other numbers."""
    return "was" if number == 1 else "were"


def joined(names: Sequence[str]) -> str:
    """Return one or more names as a list in a sentence: ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def exact_size(count: int) -> str:
    """Format bytes in binary units and exactly: ``12.3 MiB (12,897,485 bytes)``; below 1 KiB ``1 byte``."""
    exact = plural(count, "byte")
    return f"{size(count)} ({exact})" if count >= 1024 else exact


def size(count: float | None) -> str:
    """Format bytes in binary units: ``512 B``, ``1.0 KiB``, ``12.3 MiB``; ``-`` if they are unknown."""
    if count is None:
        return "-"
    count = round(count)
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1024
        if abs(value) < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


def rate(value: float | None) -> str:
    """Format a probability in [0, 1]: ``0.98 %``, ``100 %``, ``1.2e-03 %``; ``-`` if it is unknown."""
    if value is None:
        return "-"
    if value == 0:
        return "0 %"
    if value < _SMALLEST_PERCENT:
        return f"{value * 100:.1e} %"
    percent = value * 100
    if percent >= 99.95:
        # "100 %" means that the filter rules out nothing, so a rate just below 1 isn't rounded to it.
        return "100 %" if value >= 1 else ">99.9 %"
    return f"{percent:.1f} %" if percent >= 10 else f"{percent:.2f} %"
