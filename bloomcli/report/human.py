"""Figures as people read them. Every function is pure and gives one short line."""

from __future__ import annotations

import unicodedata
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

SMALLEST_PERCENT: Final = 1e-4
"""Rates from here up are given in percent (0.01 %), smaller ones in scientific notation."""

_MANY: Final = 10
"""From so many times as large on, percent say nothing any more."""

_LEAST_PERCENT: Final = 0.01

_COMMAND: Final = "##["
"""Starts a command of GitHub's and Azure's runners wherever it stands in a log's line."""


def size(count: int) -> str:
    """Bytes in binary units: ``512 B``, ``1.0 KiB``, ``12.3 MiB``."""
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1024
        if abs(value) < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


def rate(value: float | None) -> str:
    """A probability in [0, 1]: ``0.98 %``, ``100 %``, ``1.2e-05``; ``-`` when it isn't known."""
    if value is None:
        return "-"
    if value == 0:
        return "0 %"
    if value < SMALLEST_PERCENT:
        return f"{value:.1e}"
    percent = value * 100
    if percent >= 99.95:
        # 100 % is a claim: a filter that can still rule something out does not get it.
        return "100 %" if value >= 1 else ">99.9 %"
    return f"{percent:.1f} %" if percent >= 10 else f"{percent:.2f} %"


def share(part: int, whole: int) -> str:
    """``part`` of ``whole`` in percent."""
    return rate(part / whole) if whole else "0 %"


def growth(before: int, after: int) -> str:
    """From one size to another: ``+0.35 %``, ``-12.0 %``, ``+<0.01 %``, ``43,700 times as large``, ``the same``."""
    if after == before:
        return "the same"
    if not before or after >= _MANY * before:
        return f"{after / before:,.0f} times as large" if before else "from nothing"
    percent = abs(after - before) / before * 100
    sign = "+" if after > before else "-"
    if percent < _LEAST_PERCENT:
        return f"{sign}<{_LEAST_PERCENT} %"
    return f"{sign}{percent:.1f} %" if percent >= 10 else f"{sign}{percent:.2f} %"


def count(value: float | None) -> str:
    """A number of things, with thousands separated: ``1,234,567``; ``-`` when it isn't known."""
    return "-" if value is None else f"{value:,.0f}"


def plural(number: int, noun: str) -> str:
    """``1 filter``, ``2 filters``, ``1,000 row groups``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def seconds(value: float) -> str:
    """``4 ms``, ``0.41 s``, ``2 min 5 s``."""
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def is_plain(text: str) -> bool:
    """Whether `printable` leaves the text as it is, for sure; False where it has to look."""
    return text.isascii() and text.isprintable() and _COMMAND not in text


def printable(text: str) -> str:
    r"""The text with what a terminal or a CI log would act on, or a line would break at, shown as ``\x1b``.

    Column names, ``created_by`` and probed values come from files and from other people's scripts.
    """
    if is_plain(text):
        return text
    return "".join(c if _shows(c) else _escape(c) for c in text).replace(_COMMAND, r"#\x23[")


def line(text: str) -> str:
    r"""A line of a report, already `printable`; ``::`` at its start is shown as ``\x3a:``.

    GitHub's runner takes a log's line that starts so, blanks aside, for a command: ``::error::``, ``::add-mask::``.
    """
    if not text.lstrip().startswith("::"):
        return text
    return text.replace(":", r"\x3a", 1)


def csv_field(text: str) -> str:
    r"""`printable` without loss: ``\`` becomes ``\\``, bytes of a file's name that are no text stay as they are."""
    if is_plain(text) and "\\" not in text:
        return text
    shown = "".join(c if _shows(c) or _is_byte(c) else _escape(c) for c in text.replace("\\", "\\\\"))
    return shown.replace(_COMMAND, r"#\x23[")


def _shows(char: str) -> bool:
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _is_byte(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def width(text: str) -> int:
    """Terminal cells that the text takes: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
