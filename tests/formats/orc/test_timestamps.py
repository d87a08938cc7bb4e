"""Timestamps of ORC files: from seconds, nanoseconds and the writer's zone to the values that readers look up."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from array import array
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc
from support import orcfiles, orcruns
from support.orcfiles import File
from support.orcvalues import Hashed, row_groups
from support.reference import packed

import bloomcli
from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.orc import zones
from bloomcli.formats.orc.file import OrcFile
from bloomcli.model.file import Presence
from bloomcli.storage.registry import open_source

DATA, SECONDARY = 1, 5
STORED_FROM = 1_420_070_400
"""2015-01-01 00:00 UTC, which stored seconds count from."""
HOUR = 3600


def utc(text: str) -> int:
    """Seconds since 1970."""
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


def stored_nanos(nanos: int) -> int:
    """Nanoseconds in the encoding of SECONDARY: zeros at the end are cut off and counted."""
    zeros = next((n for n in range(8, 1, -1) if nanos and nanos % 10**n == 0), 0)
    return nanos // 10**zeros << 3 | max(zeros - 1, 0)


def written(
    path: Path, moments: list[tuple[int, int]], zone: str, base: int = STORED_FROM, kind: str = "TIMESTAMP"
) -> Path:
    """A file whose column `c` holds (seconds, nanoseconds), as stored, and `n` their numbers."""
    arrow = pa.timestamp("ns", "UTC" if kind == "TIMESTAMP_INSTANT" else None)
    table = {"c": pa.array([1] * len(moments), arrow), "n": list(range(len(moments)))}

    def edit(file: File) -> None:
        file.put(DATA, 1, orcruns.direct([second - base for second, _ in moments], signed=True))
        file.put(SECONDARY, 1, orcruns.direct([stored_nanos(nanos) for _, nanos in moments], signed=False))
        file.stripes[0].footer.writer_timezone = zone

    plain = orcfiles.write(path.with_name("plain"), table)
    return orcfiles.edited(plain, path, edit)


def hashed(path: Path) -> Hashed:
    """Of column `c`."""
    file = OrcFile(open_source(str(path)))
    (group,) = row_groups(file.footer, file.footer.stripes[0], file.footer.types[1])
    return group


def longs(values: list[int]) -> bytes:
    """The hashes of milliseconds."""
    return packed([orcfiles.long_hash(value) for value in values])


FAR = [
    *((utc("9999-12-31T23:59:59"), 999_999_999), (utc("2262-04-12"), 0), (utc("1677-09-20"), 1)),
    *((utc("0001-01-01"), 0), (utc("1969-12-31T00:00:01"), 1_000_000), (utc("1969-12-31"), 999_999), (0, 0)),
    *((1, 10), (2, 100), (3, 123_456_789), (4, 100_000_000), (1 << 40, 5), (-(1 << 40), 0)),
]


def floor_millis(second: int, nanos: int) -> int:
    """The stored value: a second before 1970 was rounded towards zero if its fraction has a millisecond."""
    late = second * 1000 + nanos // 10**6 < 0 and nanos > 999_999
    return second * 1000 + nanos // 10**6 - 1000 * late


@pytest.mark.parametrize(("kind", "zone"), [("TIMESTAMP", "UTC"), ("TIMESTAMP_INSTANT", "Mars/Olympus")])
def test_moments_of_any_year_are_hashed_in_milliseconds_rounded_down(tmp_path: Path, kind: str, zone: str) -> None:
    """An instant has no zone."""
    found = hashed(written(tmp_path / "f", FAR, zone, kind=kind))
    assert bytes(found.hashes) == longs([floor_millis(*moment) for moment in FAR])
    assert not found.shifted


def test_nanoseconds_below_0_count_back_as_arrow_writes_them(tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "f", {"c": pa.array([-1, -1500, -2_000_000, -999], pa.timestamp("us"))})
    assert bytes(hashed(tmp_path / "f").hashes) == longs([-1, -2, -2000, -1])


ZONED = [
    ("GMT+05:30", 19_800, {"2023-07-01T12:00": 19_800}),
    ("GMT-8", -8 * HOUR, {"1850-01-01": -8 * HOUR}),
    ("JST", 9 * HOUR, {"2023-07-01": 9 * HOUR}),
    ("CST", -6 * HOUR, {"9999-07-01": -5 * HOUR, "9999-12-31": -6 * HOUR}),
    ("Europe/Berlin", HOUR, {"2023-07-01": 2 * HOUR, "2438-03-28T00:59:59": HOUR, "2438-03-28T01:00:00": 2 * HOUR}),
    ("Europe/Berlin", HOUR, {"1850-01-01": HOUR}),
    ("Etc/GMT+5", -5 * HOUR, {"2000-01-01": -5 * HOUR}),
]


@pytest.mark.parametrize(("zone", "in_2015", "offsets"), ZONED)
def test_what_is_hashed_is_the_writers_wall_clock(
    tmp_path: Path, zone: str, in_2015: int, offsets: dict[str, int]
) -> None:
    moments = [(utc(moment), 0) for moment in offsets]
    found = hashed(written(tmp_path / "f", moments, zone, STORED_FROM - in_2015))
    assert bytes(found.hashes) == longs([(utc(moment) + offset) * 1000 for moment, offset in offsets.items()])


DISPUTED = [
    ("Asia/Kolkata", "1868-06-01", {19_800, 21_208}),
    ("Europe/Oslo", "1940-06-01", {HOUR, 2 * HOUR}),
    ("Europe/Moscow", "1850-01-01", {3 * HOUR, 4 * HOUR, 9017}),
    ("EET", "1975-07-01", {2 * HOUR, 3 * HOUR}),
    ("America/New_York", "1950-07-01", {-4 * HOUR}),
]


@pytest.mark.parametrize(("zone", "moment", "offsets"), DISPUTED)
def test_where_readers_data_differ_the_hashes_of_each_are_given(
    tmp_path: Path, zone: str, moment: str, offsets: set[int]
) -> None:
    known = zones.intervals(zone)
    assert known is not None
    at = max(i for i, (start, _, _) in enumerate(known) if start <= STORED_FROM)
    path = written(tmp_path / "f", [(utc(moment), 0), (utc("2023-01-01"), 0)], zone, STORED_FROM - known[at][1])
    found = hashed(path)
    all_of = [memoryview(h).cast("Q").tolist() for h in (found.hashes[:8], found.shifted)]
    wanted = {orcfiles.long_hash((utc(moment) + offset) * 1000) for offset in offsets}
    assert {*all_of[0], *all_of[1]} >= wanted
    assert len(all_of[1]) == len({*all_of[0], *all_of[1]}) - 1  # each once
    assert set(found.owners) <= {0}
    bloomcli.add(path, ["c"], output=tmp_path / "out")
    for offset in offsets:
        wall = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=utc(moment) + offset)
        (verdict,) = bloomcli.probe(tmp_path / "out", [wall.isoformat()], column="c").verdicts
        assert verdict.presence is Presence.MAYBE


@pytest.mark.parametrize(("zone", "base", "offset"), [("Asia/Kolkata", 19_800, 21_208), ("UTC", 0, 0)])
def test_deep_accepts_any_reading_and_names_what_none_of_them_finds(
    tmp_path: Path, zone: str, base: int, offset: int
) -> None:
    second = utc("1868-06-01")
    path = written(tmp_path / "f", [(second, 0), (second + 1, 5)], zone, STORED_FROM - base)
    other = written(tmp_path / "g", [(second + offset, 0)], "UTC")
    bloomcli.add(path, ["c"], output=tmp_path / "ours", ndv=10_000)
    bloomcli.add(other, ["c"], output=tmp_path / "theirs", ndv=10_000)
    taken = orcfiles.split(tmp_path / "theirs").filters(1)
    orcfiles.edited(tmp_path / "ours", tmp_path / "mixed", lambda file: file.set_filters(1, taken))
    (finding,) = (f for f in bloomcli.validate(tmp_path / "mixed", deep=True).findings if f.id == "value-missing")
    wall = dt.datetime.fromtimestamp(second + 1 + base, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert finding.missing == (f"{wall}.000000005",)
    assert finding.message.startswith("1 of 2 values")


@pytest.mark.parametrize(
    ("zone", "match"),
    [
        ("SystemV/PST8PDT", "nothing is known here of its writer's time zone, SystemV/PST8PDT"),
        ("../../../etc/passwd", "nothing is known here of its writer's time zone"),
        ("", "doesn't name its writer's time zone"),
    ],
)
def test_an_unknown_zone_is_not_supported_for_its_column_only(tmp_path: Path, zone: str, match: str) -> None:
    known = written(tmp_path / "known", [(utc("2023-01-01"), 0)], "UTC")
    bloomcli.add(known, ["c", "n"], output=tmp_path / "filters")

    def edit(file: File) -> None:
        file.stripes[0].footer.writer_timezone = zone

    orcfiles.edited(known, tmp_path / "bare", edit)
    with pytest.raises(UnsupportedError, match=f"column c is timestamp: .*{match}") as caught:
        bloomcli.add(tmp_path / "bare", ["c", "n"], output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert caught.value.field == "types[1]"
    (added, left) = bloomcli.add(tmp_path / "bare", ["*"], output=tmp_path / "glob").changes
    assert (added.column, left.column, left.action) == ("n", "c", "keep")
    assert match in (left.reason or "")
    assert [c.column for c in bloomcli.add(tmp_path / "bare", ["n"], output=tmp_path / "out").changes] == ["n"]
    orcfiles.edited(tmp_path / "filters", tmp_path / "unknown", edit)
    report = bloomcli.validate(tmp_path / "unknown", deep=True)
    assert [(f.id, f.column) for f in report.findings] == [("filter-not-checked", "c")]
    assert match in report.findings[0].message
    assert report.values_checked == 1


def test_without_time_zone_data_utc_is_known_and_others_are_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"),))
    monkeypatch.setattr(zones, "_PACKAGE", "no_such_package")
    zones.writer_zone.cache_clear()
    for zone in ("UTC", "GMT", "GMT+05:30"):
        assert zones.writer_zone(zone) is not None
    path = written(tmp_path / "f", [(0, 0)], "Asia/Tokyo")
    with pytest.raises(UnsupportedError, match="Asia/Tokyo") as caught:
        bloomcli.add(path, ["c"], output=tmp_path / "out")
    assert "pip install tzdata" in (caught.value.hint or "")
    zones.writer_zone.cache_clear()


def test_a_moment_beyond_nanoseconds_is_looked_up(tmp_path: Path) -> None:
    """ORC holds seconds of 64 bits; nanoseconds of 64 bits end in 2262."""
    path = written(tmp_path / "f", FAR, "UTC")
    bloomcli.add(path, ["c"], output=tmp_path / "out", fpp=1e-6)
    asked = ["9999-12-31T23:59:59.999999999", "9999-12-31T23:59:59.999", "1677-09-20", "9999-12-31", "1600-01-01"]
    verdicts = bloomcli.probe(tmp_path / "out", asked, column="c").verdicts
    maybe, absent = Presence.MAYBE, Presence.ABSENT
    assert [v.presence for v in verdicts] == [maybe, maybe, maybe, absent, absent]


@pytest.mark.parametrize(
    ("starts", "ends", "more", "match"),
    [
        ([], [], [], "starts differ"),
        ([0], [0], [], "smallest int64"),
        ([-(1 << 63)], [1], [], "ends don't match"),
        ([-(1 << 63)], [16], [0] * 16, "ends don't match"),
        ([-(1 << 63), 0], [1, 0], [0], "ends don't match"),
    ],
)
def test_a_zone_is_checked_before_it_is_used(starts: list[int], ends: list[int], more: list[int], match: str) -> None:
    parts = [array("q", part).tobytes() for part in (starts, [0] * len(starts), ends, more)]
    with pytest.raises(ValueError, match=match):
        kernels.WriterZone(*parts, base=STORED_FROM, cycle=1 << 62, exact=False)


@pytest.mark.parametrize(("others", "many"), [([], False), ([dt.datetime(1980, 1, 1)], True)])
def test_a_moment_of_the_last_second_before_1970_is_found_as_it_is_read(
    tmp_path: Path, others: list[dt.datetime], many: bool
) -> None:
    """ORC stores it like one a second later. The writer's filter and bounds have the earlier one."""
    path = tmp_path / "f.orc"
    with path.open("wb") as file, pyorc.Writer(file, "struct<t:timestamp>", bloom_filter_columns=[1]) as rows:
        rows.writerows([(moment,) for moment in [dt.datetime(1969, 12, 31, 23, 59, 59, 997918), *others]])
    assert orc.read_table(path)["t"].to_pylist()[0] == dt.datetime(1970, 1, 1, 0, 0, 0, 997918)
    values = ["1970-01-01T00:00:00.997918", *(f"2001-01-01T00:00:00.{at:03}" for at in range(300 * many))]
    found = bloomcli.find(path, values, column="t").to_arrow()
    assert found["row"].to_pylist() == [0]


def test_probe_does_not_call_a_moment_absent_that_writers_hash_differently(tmp_path: Path) -> None:
    """ORC C++ rounds a part of a millisecond before 1970 up."""
    moments = pa.array([-(10**15) - 1_500_000, 10**18], pa.timestamp("ns"))
    path = orcfiles.write(tmp_path / "f.orc", {"t": moments}, blooms=[1], fpp=0.0001)
    (verdict,) = bloomcli.probe(path, ["1969-12-20T10:13:19.998500"], column="t").verdicts
    assert verdict.answer is Presence.UNKNOWN
    assert verdict.reason is not None


def test_moments_behind_one_of_the_far_future_are_hashed_with_their_own_offset(tmp_path: Path) -> None:
    """Offsets repeat from some year on, so that the interval of a later moment isn't that of the one before it."""
    zone = zoneinfo.ZoneInfo("America/New_York")
    dates = [date for n in range(60) for date in ((1910 + n, 1, 10), (2050 + n, 7, 1), (1910 + n, 1, 11))]
    days = [dt.datetime(*date, 12, tzinfo=dt.UTC) for date in dates]
    path = tmp_path / "f.orc"
    with path.open("wb") as file, pyorc.Writer(file, "struct<c:timestamp>", timezone=zone) as rows:
        rows.writerows([(day,) for day in days])
    bloomcli.add(path, ["c"], in_place=True, fpp=1e-6)
    assert bloomcli.validate(path, deep=True).findings == ()
    local = [day.astimezone(zone).replace(tzinfo=None).isoformat() for day in days]
    assert {v.answer for v in bloomcli.probe(path, local, column="c").verdicts} == {Presence.MAYBE}
