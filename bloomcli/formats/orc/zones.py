"""Time zones of ORC files' writers: the UTC offsets that orc-core's JVM uses, and other readers' different offsets.

ORC stores timestamps in the writer's local time, and each reader converts them with its own time zone data. If the
results differ, each reader looks up its own result, so a filter has to contain all of them:

    before 1900          JVMs use the zone's current standard offset (java.util.TimeZone), others local mean time
    where the data       `zones.txt`: the periods for which releases of the time zone database since 2014, its build
      differ               variants (with or without the file `backzone`) and JVMs have different offsets
    otherwise            the offset in this machine's time zone data

Source of the encoding: RFC 9636 (TZif).
"""

from __future__ import annotations

import calendar
import datetime as dt
import io
import itertools
import re
import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from bloomcli import kernels

Offsets = list[tuple[int, int]]
"""(first second since 1970 with this offset, offset in seconds), ascending."""

Disputes = list[tuple[int, int, frozenset[int]]]
"""(first second, second after the last, offsets)."""

Interval = tuple[int, int, tuple[int, ...]]
"""(first second, offset, different offsets of other readers)."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST: Final = -(1 << 63)
_LAST: Final = (1 << 63) - 1
_Y1900: Final = -2_208_988_800
"""JVMs' tables start here: sun.util.calendar.ZoneInfoFile, UTC1900."""
_BASE: Final = 1_420_070_400
"""2015-01-01 00:00, the base of stored seconds, as if local time were UTC."""
_ORDINARY_YEARS: Final = range(2010, 2038)
"""Years whose standard offset some JVM used as the current one."""
_RULES_ONLY: Final = 2041
"""From this year on, only a zone's recurring rules apply: no period of `zones.txt` starts later."""
_YEARS_MAX: Final = 5000
"""The limit of the years of a zone's single changes: Python's dates have to contain the 400 years after it."""
_CYCLE_YEARS: Final = 400
_MONTH: Final = 28 * 86_400
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_FIXED: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
"""The custom IDs of java.util.TimeZone."""
_PACKAGE: Final = "tzdata"
"""The fallback if the system has no time zone data, as for zoneinfo."""
_UTC: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_JAVA: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Names that only JVMs have: java.time.ZoneId.SHORT_IDS."""


@lru_cache(maxsize=64)
def writer_zone(name: str) -> kernels.WriterZone | None:
    """The zone of a stripe footer's writerTimezone; None if this machine has no data about it."""
    zone = _zone(name)
    if zone is None:
        return None
    zone_intervals, cycle = zone
    offsets = [(start, offset) for start, offset, _ in zone_intervals]
    base = _BASE - _at(offsets, _BASE - _at(offsets, _BASE))
    ends = array("q", itertools.accumulate(len(different) for _, _, different in zone_intervals))
    return kernels.WriterZone(
        array("q", [start for start, _, _ in zone_intervals]).tobytes(),
        array("q", [first for _, first, _ in zone_intervals]).tobytes(),
        ends.tobytes(),
        array("q", [other for _, _, different in zone_intervals for other in different]).tobytes(),
        base,
        cycle,
        name in _UTC,
    )


@lru_cache(maxsize=64)
def intervals(name: str) -> Sequence[Interval] | None:
    """Return all offsets of a zone; None if it is unknown on this machine."""
    zone = _zone(name)
    return None if zone is None else zone[0]


def _zone(name: str) -> tuple[list[Interval], int] | None:
    """Return a zone's intervals, and the second after which they repeat every 400 years."""
    if name in _UTC:
        return [(_FIRST, 0, ())], _LAST
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        size = sum(int(part or 0) * unit for part, unit in zip(fixed.groups()[1:], (3600, 60, 1), strict=True))
        return [(_FIRST, size if fixed[1] == "+" else -size, ())], _LAST
    name = _JAVA.get(name, name)
    data = _tzif(name)
    try:
        zone = None if data is None else offsets_of(data)
    except (ValueError, struct.error):
        return None
    return None if zone is None else (list(_merged(zone[0], _disputes(name))), zone[1])


def _at(offsets: Offsets, second: int) -> int:
    return offsets[bisect_right(offsets, (second, _LAST)) - 1][1]


def _merged(offsets: Offsets, disputes: Disputes) -> Iterator[Interval]:
    """Yield (first second, a JVM's offset, different offsets of other readers), ascending."""
    ordinary = [min(_at(offsets, _second(year, month)) for month in (1, 7)) for year in _ORDINARY_YEARS]
    edges = {_Y1900, *(start for start, _ in offsets)}
    edges.update(edge for start, end, _ in disputes for edge in (start, end) if edge < _LAST)
    last = None
    for edge in sorted(edges):
        first = _at(offsets, edge)
        others: frozenset[int] = next((o for start, end, o in disputes if start <= edge < end), frozenset())
        if edge < _Y1900:
            others = others | {first, *ordinary}
            first = ordinary[-1]
        interval = first, tuple(sorted(others - {first}))
        if interval != last:
            yield edge, *interval
        last = interval


def _disputes(name: str) -> Disputes:
    """Return the periods for which time zone data differ."""
    text = Path(__file__).with_name("zones.txt").read_text("ascii")
    for line in text.splitlines():
        names, _, rest = line.partition("|")
        if not line.startswith("#") and name in names.split(" "):
            periods = (word.split(":") for word in rest.split(" "))
            return [
                (int(start or _FIRST), int(end or _LAST), frozenset(map(int, offsets.split(","))))
                for start, end, offsets in periods
            ]
    return []


def _second(year: int, month: int = 1) -> int:
    return int((dt.datetime(year, month, 1, tzinfo=dt.UTC) - _EPOCH).total_seconds())


def offsets_of(data: bytes) -> tuple[Offsets, int]:
    """Return the offsets in a zone's TZif file, and the second after which they repeat every 400 years.

    Raises ValueError, struct.error.
    """
    from zoneinfo import ZoneInfo

    zone = ZoneInfo.from_file(io.BytesIO(data))
    changes, recurring = _changes(data)

    def at(second: int) -> int:
        moment = (_EPOCH + dt.timedelta(seconds=second)).astimezone(zone)
        return round((moment.utcoffset() or dt.timedelta()).total_seconds())

    changes = [second for second in changes if _second(1800) < second]
    if changes and changes[-1] > _second(_YEARS_MAX):
        raise ValueError("changes too far ahead")
    offsets = [(_FIRST, at(_second(1800)))]
    for second in changes:
        if (offset := at(second)) != offsets[-1][1]:
            offsets.append((second, offset))
    if not recurring:
        return offsets, _LAST
    explicit = (_EPOCH + dt.timedelta(seconds=max([*changes, 0]))).year
    start = max(_RULES_ONLY, explicit + 1)
    second = max([*changes, _second(1900)])
    first = (_EPOCH + dt.timedelta(seconds=second)).year + 1
    offsets += _within(at, second, _second(first))
    alike: dict[tuple[int, bool], Offsets] = {}  # rules give the same dates in years that start on the same weekday
    for year in range(first, start + _CYCLE_YEARS):
        begin = _second(year)
        kind = dt.date(year, 1, 1).weekday(), calendar.isleap(year)
        if kind not in alike:
            alike[kind] = [(change - begin, offset) for change, offset in _within(at, begin, _second(year + 1))]
        offsets += [(begin + after, offset) for after, offset in alike[kind]]
    return offsets, _second(start)


def _within(at: Callable[[int], int], first: int, end: int) -> Offsets:
    """Return the changes in a period. Assumes at least a month between two changes."""
    changes = []
    while first < end:
        upper = min(first + _MONTH, end)
        if at(upper) != at(first):
            changes.append(_change(at, first, upper))
        first = upper
    return changes


def _change(at: Callable[[int], int], low: int, high: int) -> tuple[int, int]:
    """Return the first second whose offset differs from that at `low`, and its offset."""
    before = at(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) == before else (low, middle)
    return high, at(high)


def _tzif(name: str) -> bytes | None:
    """Read a zone's file of the system or of the tzdata package. Names come from files, so they are checked."""
    if not _NAME.fullmatch(name):
        return None
    from importlib import resources
    from zoneinfo import TZPATH

    for folder in TZPATH:
        try:
            return Path(folder, name).read_bytes()
        except OSError:
            continue
    try:
        return resources.files(_PACKAGE).joinpath("zoneinfo", name).read_bytes()
    except (ModuleNotFoundError, OSError):
        return None


def _changes(data: bytes) -> tuple[list[int], bool]:
    """Return the seconds of the changes in a zone's file, and whether it has rules for later changes."""
    isutc, isstd, leap, times, types, chars = struct.unpack(">6L", data[20:44])
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isutc
    if data[:4] != b"TZif" or data[4:5] < b"2" or data[second : second + 4] != b"TZif":
        raise ValueError("no TZif of version 2 or later")
    (times,) = struct.unpack(">L", data[second + 32 : second + 36])
    changes = struct.unpack(f">{times}q", data[second + 44 : second + 44 + times * 8])
    return list(changes), b"," in data.rstrip(b"\n").rpartition(b"\n")[2]
