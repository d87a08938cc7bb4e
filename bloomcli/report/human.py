"""Formats figures, values, locations and types for people. Every function is pure and returns one short line.

A long value is cut, with a mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from bloomcli.words import noun, rate

if TYPE_CHECKING:
    from bloomcli.model.validate import Finding


def column_name(item: Any) -> str:
    """The name of a report's column for people: its path in a VARIANT, else the leaf's path."""
    return str(item.variant_path or item.column)


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


_NAMES_SHOWN: Final = 8


def count(value: float | None) -> str:
    """Format a count with thousands separators: ``1,234,567``; ``-`` if it is unknown."""
    return "-" if value is None else f"{value:,.0f}"


def number(value: int | None) -> str:
    """Format a position or an id, without separators; ``-`` if it is unknown."""
    return "-" if value is None else str(value)


def first_names(names: Sequence[str]) -> str:
    """Join the first names of columns: ``a, b and 3 more``."""
    left = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {count(left)} more" if left > 0 else "")


def speed(files: int, duration: float) -> str:
    """Format files per second: ``1,200 files/s``, ``2.5 files/s``, ``1 file/s``, ``0.5 files/s``."""
    value = files / duration if duration else 0.0
    figure = f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")
    return f"{figure} {noun(1 if figure == '1' else 0, 'file')}/s"


def seconds(value: float | None) -> str:
    """Format a duration: ``4 ms``, ``0.41 s``, ``2 min 5 s``; ``-`` if it is unknown."""
    if value is None:
        return "-"
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def is_plain(text: str) -> bool:
    """A quick test: True if `printable` doesn't change the text, False if it may."""
    return text.isascii() and text.isprintable() and _MARK not in text


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
    escaped = "".join(
        c if _is_visible(c) or "\udc80" <= c <= "\udcff" else _escape(c) for c in text.replace("\\", "\\\\")
    )
    return _COMMAND.sub(_HARMLESS, escaped)


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def width(text: str) -> int:
    """Return the width of the text in terminal cells: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


CUT: Final = "…"
"""The mark at the end of a value that isn't complete."""

VALUE_WIDTH: Final = 20
"""The most terminal cells of a text in a table."""

_FIGURE: Final = re.compile(r"[-+.:TZe0-9]{1,48}")
"""Matches numbers, dates and times. They are never cut, because the rest would look like another value."""


def value_text(text: str, most: int = VALUE_WIDTH, *, exact: bool | None = None) -> str:
    """Format a value: escaped, in quotes if it begins or ends with blanks, and cut after `most` cells if it is text.

    Args:
        text: the value as `probe` accepts it.
        most: the most terminal cells.
        exact: False for a bound that the writer shortened. It gets the mark of a cut value, unless it is a number or
            a time.
    """
    if _FIGURE.fullmatch(text):
        return text
    quoted = f'"{text}"' if not text or text != text.strip() else text
    shown = printable(quoted[: most + 1])
    if len(quoted) > most + 1 or width(shown) > most:
        return cut(quoted, most)
    return shown + CUT if exact is False else shown


def cut(text: str, most: int) -> str:
    """Escape as many characters as fit into `most` cells together with the mark of a cut text; an escape is never
    cut."""
    characters, room = [], most - 1
    for char in text:
        shown = printable(char)
        room -= width(shown)
        if room < 0:
            break
        characters.append(shown)
    return "".join(characters) + CUT


def shorten(text: str, most: int = VALUE_WIDTH) -> str:
    """Cut a formatted value that takes more than `most` cells. Only the fraction of a number or time is cut; without
    a fraction, or if the digits before it don't fit, the result is only the mark."""
    if width(text) <= most:
        return text
    whole, point, _ = text.partition(".")
    if not point or "e" in text or not _FIGURE.fullmatch(text) or len(whole) >= most:
        return CUT
    return text[: most - 1].rstrip(".") + CUT


_RUNS_SHOWN: Final = 5
"""Maximum number of runs of row groups that a location names."""


def row_group_text(stripe: int | None, row_group: int | None) -> str:
    """Format a row group: ``row group 3``, ``stripe 0, row group 3``, ``stripe 0``."""
    parts = [] if stripe is None else [f"stripe {stripe}"]
    if row_group is not None:
        parts.append(f"row group {row_group}")
    return ", ".join(parts)


def _places_text(finding: Finding) -> str:
    """Format all row groups of a finding: ``row groups 0-3, 7``, ``stripe 0: row group 2; stripe 1: row groups 0-4``,
    ``stripes 0-4``. Shows the first of very many."""
    if finding.places is None or not re.search("[-, ]", finding.places):
        return row_group_text(finding.stripe, finding.row_group)
    unit = "stripe" if finding.row_group is None else "row group"
    parts, left = [], _RUNS_SHOWN
    for part in finding.places.split(" "):
        stripe, _, groups = part.rpartition(":")
        runs = groups.split(",")
        more = ", ..." if len(runs) > left else ""
        plural = "s" if len(runs) > 1 or "-" in groups else ""
        within = f"stripe {stripe}: " if stripe else ""
        parts.append(f"{within}{unit}{plural} {', '.join(runs[:left])}{more}" if left else "...")
        left = max(left - len(runs), 0)
        if more or parts[-1] == "...":
            break
    return "; ".join(parts)


def type_text(physical: str, logical: str | None) -> str:
    """Format a column's type: ``INT64``, ``INT64 (TIMESTAMP(MICROS,UTC))``."""
    return f"{physical} ({logical})" if logical else physical


def finding_location(finding: Finding) -> str:
    """Format the suffix of a finding's message, `` (row group 1, id, byte 77)``; empty if it concerns the whole
    file."""
    parts = []
    if finding.stripe is not None or finding.row_group is not None:
        parts.append(_places_text(finding))
    if finding.column is not None:
        parts.append(finding.column)
    if finding.offset is not None:
        parts.append(f"byte {finding.offset}")
    return f" ({', '.join(parts)})" if parts else ""
