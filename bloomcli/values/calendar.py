"""Days and times of day as people write them, and as the numbers that columns hold: since 1970-01-01, UTC or not.

The calendar is the proleptic Gregorian one, as ISO 8601 and the file formats have it, without end in either
direction: what a column's width leaves room for is the column's affair. Years beyond 0 to 9999 are written with a
sign, as ISO 8601 and Java do (``+20240-01-01``, ``-0043-03-15``); read are also a longer year without one, and
``(BC)`` or ``BC`` behind the date, as DuckDB and PostgreSQL write it. Year 0 is 1 BC.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

DAY_SECONDS: Final = 86_400
DAY_NANOS: Final = DAY_SECONDS * 10**9

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_ERA_YEARS: Final = 400
_ERA_DAYS: Final = 146_097
"""The calendar repeats itself every 400 years, of so many days."""
_BASE_YEAR: Final = 2000
_BASE: Final = dt.date(_BASE_YEAR, 1, 1).toordinal() - _EPOCH
_YEAR_DIGITS: Final = 9
"""More than any column holds: INT32 days and INT64 milliseconds end within years of 7 and 9 digits."""

_DAY: Final = re.compile(r"([+-]?)(\d{4,})-(\d{2})-(\d{2})", re.ASCII)
_BC: Final = re.compile(r"\s*(?:\(BC\)|\bBC\b)", re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?")
_ZONE: Final = re.compile(r"\s*(Z|z|UTC|[+-]\d{2}(?::?\d{2})?)$")


def day(text: str) -> int:
    """Days since 1970-01-01. Raises ValueError, and OverflowError for a year that no column holds."""
    try:
        return dt.date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return _far_day(text)


def _far_day(text: str) -> int:
    plain = _BC.sub("", text, count=1)
    match = _DAY.fullmatch(plain)
    if match is None:
        raise ValueError("not a date")
    digits = match[2].lstrip("0") or "0"
    year = int(digits[-_YEAR_DIGITS:])  # whether the day exists depends on the year's place among 400 alone
    if plain != text:
        if match[1] or digits == "0":
            raise ValueError("a year BC is 1 or more")
        year = 1 - year
    elif match[1] == "-":
        year = -year
    era, of_era = divmod(year - _BASE_YEAR, _ERA_YEARS)
    found = dt.date(_BASE_YEAR + of_era, int(match[3]), int(match[4])).toordinal() - _EPOCH
    if len(digits) > _YEAR_DIGITS:
        raise OverflowError("no column holds such a year")
    return found + era * _ERA_DAYS


def day_text(number: int) -> str:
    """A day as text that `day` reads as the same again."""
    era, of_era = divmod(number - _BASE, _ERA_DAYS)
    shown = dt.date.fromordinal(of_era + _BASE + _EPOCH)
    year = shown.year + era * _ERA_YEARS
    sign = "-" if year < 0 else "+" if year > dt.MAXYEAR else ""
    return f"{sign}{abs(year):04}{shown:-%m-%d}"


def clock(text: str) -> int:
    """Nanoseconds since midnight. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a time of day")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("not within a day")
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((match[4] or "").ljust(9, "0"))


def clock_text(nanos: int) -> str:
    """A time of day as text that `clock` reads as the same again. Raises ValueError."""
    seconds, fraction = divmod(nanos, 10**9)
    if not 0 <= seconds < DAY_SECONDS:
        raise ValueError("not a time of day")
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{fraction:09}".rstrip("0") if fraction else "")


def zone(text: str) -> tuple[str, int | None]:
    """A text with a time, without its zone; and the nanoseconds by which that is ahead of UTC, None without one.

    Raises ValueError.
    """
    match = _ZONE.search(text) if ":" in text else None
    if match is None:
        return text, None
    if match[1][0] not in "+-":
        return text[: match.start()], 0
    digits = match[1][1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    return text[: match.start()], (hours * 60 + minutes) * 60 * 10**9 * (-1 if match[1][0] == "-" else 1)


def moment(text: str) -> int:
    """Nanoseconds since 1970-01-01 00:00 of a date and, if there is one, a time. Raises as `day` and `clock`."""
    before_christ = ("C" in text or "c" in text) and _BC.search(text) is not None
    plain = _BC.sub("", text, count=1) if before_christ else text
    day_part, separator, time_part = plain.replace(" ", "T", 1).partition("T")
    of_day = clock(time_part) if separator else 0
    return day(day_part + " (BC)" if before_christ else day_part) * DAY_NANOS + of_day


def moment_text(nanos: int) -> str:
    """A moment as text that `moment` reads as the same again."""
    number, of_day = divmod(nanos, DAY_NANOS)
    return day_text(number) + "T" + clock_text(of_day)
