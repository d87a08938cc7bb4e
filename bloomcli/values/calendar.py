"""Dates, times and timestamps as text, and as the numbers that columns store: since 1970-01-01, UTC or not.

The calendar is the proleptic Gregorian one, as in ISO 8601 and the file formats. It has no bounds in either
direction: the caller checks whether a number fits in a column. Years outside 0 to 9999 are written with a sign, as in
ISO 8601 and Java (``+20240-01-01``, ``-0043-03-15``). The parser also accepts longer years without a sign, and
``(BC)`` or ``BC`` after the date, as in DuckDB and PostgreSQL. Year 0 is 1 BC.
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
"""The calendar repeats every 400 years, which have this many days."""
_BASE_YEAR: Final = 2000
_BASE: Final = dt.date(_BASE_YEAR, 1, 1).toordinal() - _EPOCH
_YEAR_DIGITS: Final = 9
"""More digits than any column can store: INT32 days end in a year of 7 digits, INT64 milliseconds in one of 9."""

# texts, which `re` compiles on first use: reports only format dates
_DAY: Final = r"(?a:([+-]?)(\d{4,})-(\d{2})-(\d{2}))"
_BC: Final = r"(?i:\s*(?:\(BC\)|\bBC\b))"
_TIME: Final = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
_ZONE: Final = r"\s*(Z|z|UTC|[+-]\d{2}(?::?\d{2})?)$"


def parse_date(text: str) -> int:
    """Parse a date and return its days since 1970-01-01.

    Raises:
        ValueError: the text isn't a date.
        OverflowError: no column can store the year.
    """
    try:
        return dt.date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return _far_day(text)


def _far_day(text: str) -> int:
    date = re.sub(_BC, "", text, count=1)
    match = re.fullmatch(_DAY, date)
    if match is None:
        raise ValueError("not a date")
    digits = match[2].lstrip("0") or "0"
    year = int(digits[-_YEAR_DIGITS:])  # the last digits decide whether the day exists: the calendar has a cycle
    if date != text:
        if match[1] or digits == "0":
            raise ValueError("a year BC is 1 or more")
        year = 1 - year
    elif match[1] == "-":
        year = -year
    era, of_era = divmod(year - _BASE_YEAR, _ERA_YEARS)
    day = dt.date(_BASE_YEAR + of_era, int(match[3]), int(match[4])).toordinal() - _EPOCH
    if len(digits) > _YEAR_DIGITS:
        raise OverflowError("no column holds such a year")
    return day + era * _ERA_DAYS


def format_date(number: int) -> str:
    """Format days since 1970-01-01 as a date that `parse_date` parses to the same number."""
    era, of_era = divmod(number - _BASE, _ERA_DAYS)
    date = dt.date.fromordinal(of_era + _BASE + _EPOCH)
    year = date.year + era * _ERA_YEARS
    sign = "-" if year < 0 else "+" if year > dt.MAXYEAR else ""
    return f"{sign}{abs(year):04}{date:-%m-%d}"


def parse_time(text: str) -> int:
    """Parse a time of day and return its nanoseconds since midnight. Raises ValueError."""
    match = re.fullmatch(_TIME, text.strip())
    if match is None:
        raise ValueError("not a time of day")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("not within a day")
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((match[4] or "").ljust(9, "0"))


def format_time(nanos: int) -> str:
    """Format nanoseconds since midnight as a time that `parse_time` parses to the same number. Raises ValueError."""
    seconds, fraction = divmod(nanos, 10**9)
    if not 0 <= seconds < DAY_SECONDS:
        raise ValueError("not a time of day")
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{fraction:09}".rstrip("0") if fraction else "")


def split_zone(text: str) -> tuple[str, int | None]:
    """Split the zone from a text that ends in a time.

    Returns:
        The text without the zone, and the zone's offset from UTC in nanoseconds; None without a zone.

    Raises:
        ValueError: the offset is out of range.
    """
    match = re.search(_ZONE, text) if ":" in text else None
    if match is None:
        return text, None
    if match[1][0] not in "+-":
        return text[: match.start()], 0
    digits = match[1][1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    return text[: match.start()], (hours * 60 + minutes) * 60 * 10**9 * (-1 if match[1][0] == "-" else 1)


def parse_timestamp(text: str) -> int:
    """Parse a date with an optional time and return its nanoseconds since 1970-01-01 00:00.

    Raises:
        ValueError: the text isn't a date, or a date and a time.
        OverflowError: no column can store the year.
    """
    before_christ = ("C" in text or "c" in text) and re.search(_BC, text) is not None
    moment = re.sub(_BC, "", text, count=1) if before_christ else text
    day_part, separator, time_part = moment.replace(" ", "T", 1).partition("T")
    of_day = parse_time(time_part) if separator else 0
    return parse_date(day_part + " (BC)" if before_christ else day_part) * DAY_NANOS + of_day


def format_timestamp(nanos: int) -> str:
    """Format nanoseconds since 1970-01-01 00:00 as a timestamp that `parse_timestamp` parses to the same number."""
    number, of_day = divmod(nanos, DAY_NANOS)
    return format_date(number) + "T" + format_time(of_day)
