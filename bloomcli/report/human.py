"""Formats figures for people. Every function is pure and returns one short line."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Protocol

from bloomcli.words import noun, rate, size

__all__ = [
    "RuleOutCounts",
    "count",
    "csv_field",
    "growth",
    "is_plain",
    "line",
    "printable",
    "rate",
    "rule_out_text",
    "seconds",
    "share",
    "size",
    "speed",
    "width",
]

_MANY: Final = 10
"""From this factor on, growth is formatted as a factor instead of in percent."""

_LEAST_PERCENT: Final = 0.01

_COMMAND: Final = re.compile(r"##(?=\w*\[)")
"""Starts a command anywhere in a line of a log: ``##[`` on GitHub's and Azure's runners, ``##vso[`` on Azure's,
``##teamcity[``."""
_MARK: Final = "##"
"""Every command contains it."""
_HARMLESS: Final = r"#\\x23"
"""Replaces the mark of a command, as a template of `re`."""


def share(part: int, whole: int) -> str:
    """Format ``part`` of ``whole`` in percent."""
    return rate(part / whole) if whole else "0 %"


def growth(before: int, after: int) -> str:
    """Format a change of size: ``+0.35 %``, ``-12.0 %``, ``+<0.01 %``, ``43,700 times as large``, ``the same``."""
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
    """Format a count with thousands separators: ``1,234,567``; ``-`` if it is unknown."""
    return "-" if value is None else f"{value:,.0f}"


def speed(files: int, taken: float) -> str:
    """Format files per second: ``1,200 files/s``, ``2.5 files/s``, ``1 file/s``, ``0.5 files/s``."""
    value = files / taken if taken else 0.0
    figure = f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")
    return f"{figure} {noun(1 if figure == '1' else 0, 'file')}/s"


def seconds(value: float) -> str:
    """Format a duration: ``4 ms``, ``0.41 s``, ``2 min 5 s``."""
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def is_plain(text: str) -> bool:
    """A quick test: True if `printable` doesn't change the text, False if it may."""
    return text.isascii() and text.isprintable() and _MARK not in text


class RuleOutCounts(Protocol):
    """The numbers of row groups that are ruled out, in one file or in several."""

    @property
    def absent_row_groups(self) -> int:
        """The row groups that filters, statistics and dictionaries together rule out."""

    @property
    def skipped_row_groups(self) -> int:
        """The row groups that filters alone rule out."""

    @property
    def stats_skipped_row_groups(self) -> int:
        """The row groups that min/max statistics alone rule out."""

    @property
    def dictionary_skipped_row_groups(self) -> int:
        """The row groups that only dictionaries rule out."""


def rule_out_text(totals: RuleOutCounts) -> str:
    """Format the numbers of row groups that filters, min/max and dictionaries rule out, each alone. Without the
    filters if they rule out all absent row groups."""
    filters = totals.skipped_row_groups
    parts = [] if filters == totals.absent_row_groups else [f"filters alone: {filters:,}"]
    parts.append(f"min/max alone: {totals.stats_skipped_row_groups:,}")
    if totals.dictionary_skipped_row_groups:
        parts.append(f"dictionaries: {totals.dictionary_skipped_row_groups:,} more")
    return ", ".join(parts)


def printable(text: str) -> str:
    r"""Escape, as ``\x1b``, the characters that terminals and CI logs interpret or that break a line.

    Column names, ``created_by`` and probed values come from untrusted files and scripts.
    """
    if is_plain(text):
        return text
    return _COMMAND.sub(_HARMLESS, "".join(c if _is_visible(c) else _escape(c) for c in text))


def line(text: str) -> str:
    r"""Escape ``::`` at the start of a `printable` line of a report as ``\x3a:``.

    GitHub's runner takes a log line that starts with it, after blanks, for a command: ``::error::``,
    ``::add-mask::``.
    """
    if not text.lstrip().startswith("::"):
        return text
    return text.replace(":", r"\x3a", 1)


def csv_field(text: str) -> str:
    r"""Escape like `printable`, but reversibly: ``\`` becomes ``\\``; bytes of a file's name that aren't text
    stay."""
    if is_plain(text) and "\\" not in text:
        return text
    escaped = "".join(c if _is_visible(c) or _is_byte(c) else _escape(c) for c in text.replace("\\", "\\\\"))
    return _COMMAND.sub(_HARMLESS, escaped)


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _is_byte(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def width(text: str) -> int:
    """Return the width of the text in terminal cells: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
