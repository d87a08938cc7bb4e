"""Timestamps of writers in any time zone: orc-core loses no row, and its own filters have no finding."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.orcspark import hadoop_path, java_zone, write_vectors
from support.orcwalk import Orc

import bloomcli
from bloomcli.formats.orc import zones

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

CHANGED = {
    "Asia/Kolkata": "local mean time until 1945, of which releases disagree",
    "Europe/Paris": "local mean time until 1911",
    "Europe/Oslo": "a link to Berlin, or not",
    "Asia/Dubai": "local mean time until 1920",
    "Asia/Riyadh": "local mean time until 1947",
    "America/Sao_Paulo": "local mean time until 1914",
    "Africa/Monrovia": "offsets of seconds until 1972",
    "Asia/Tehran": "changed again and again",
    "EET": "a link to Athens since 2024b",
    "PST8PDT": "a link to Los Angeles since 2024b",
    "Africa/El_Aaiun": "rules of the moon",
    "Antarctica/Troll": "a clock that stood still until 2005",
    "Europe/Berlin": "rules for ever",
    "America/St_Johns": "half an hour, and local mean time until 1935",
    "GMT+05:30": "a JVM's custom ID",
    "JST": "a JVM's own name",
}
NANOS = 789
YEARS = (1700, 1868, 1899, 1900, 1910, 1916, 1919, 1941, 1945, 1960, 1976, 1978, 2000, 2023, 2040, 9999)


def millis(year: int, month: int, day: int, hour: int = 6) -> int:
    """Since 1970, of a moment in UTC with a fraction."""
    since = dt.datetime(year, month, day, hour) - dt.datetime(1970, 1, 1)
    return since // dt.timedelta(milliseconds=1) + 250


MOMENTS = [millis(year, month, day) for year in YEARS for month, day in ((1, 15), (7, 15), (12, 30))]


def vectors(values: list[int]) -> list[tuple[int, int]]:
    """As java.sql.Timestamp has them: milliseconds, and the nanoseconds of the second."""
    return [(value, value % 1000 * 10**6 + NANOS) for value in values]


def rows(spark: SparkSession, path: Path, value: int) -> int:
    """The number of rows of column `c` that orc-core reads to look one value up."""
    from py4j.java_gateway import get_field

    jvm = spark._jvm
    types = getattr(jvm.org.apache.hadoop.hive.ql.io.sarg, "PredicateLeaf$Type")
    timestamp = jvm.java.sql.Timestamp(value)
    timestamp.setNanos(value % 1000 * 10**6 + NANOS)
    builder = jvm.org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory.newBuilder()
    wanted = builder.startAnd().equals("c", types.TIMESTAMP, timestamp).end().build()
    columns = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    columns[0] = "c"
    options = jvm.org.apache.orc.OrcFile.readerOptions(jvm.org.apache.hadoop.conf.Configuration(False))
    reader = jvm.org.apache.orc.OrcFile.createReader(hadoop_path(spark, path), options)
    batch = reader.getSchema().createRowBatch()
    found = reader.rows(reader.options().searchArgument(wanted, columns))
    count = 0
    while found.nextBatch(batch):
        count += get_field(batch, "size")
    found.close()
    return count


@pytest.mark.parametrize("zone", CHANGED)
def test_orc_core_finds_the_rows_of_any_century_by_our_filters_and_its_own_are_sound(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    values: list[Any] = vectors(MOMENTS)
    schema, ours = "struct<c:timestamp,d:timestamp with local time zone>", tmp_path / "ours.orc"
    with java_zone(spark, zone):
        java = write_vectors(
            spark, tmp_path / "java.orc", schema, [values, values], orc__bloom__filter__columns="c,d"
        )
        bare = write_vectors(spark, tmp_path / "bare.orc", schema, [values, values])
        bloomcli.add(bare, ["c", "d"], output=ours, fpp=0.01)
        assert [rows(spark, ours, value) for value in MOMENTS] == [len(MOMENTS)] * len(MOMENTS)
        assert rows(spark, ours, millis(1999, 5, 5)) == 0
    ((_, own),), ((_, theirs),) = Orc(ours).bitsets(0, "c"), Orc(java).bitsets(0, "c")
    assert all(a | b == a for a, b in zip(own, theirs, strict=True))
    for path in (java, ours):
        report = bloomcli.validate(path, deep=True)
        wrong = [one for one in report.findings if "aren't compared" not in one.message]  # moments before 1900
        assert (report.values_checked, wrong) == (2 * len(MOMENTS), [])


def test_the_jvms_offset_is_among_those_known_of_every_zone(spark: SparkSession) -> None:
    """At changes that we know of, and a second before. A JVM with newer data than `zones.txt` may fail this."""
    jvm = spark._jvm
    unknown = []
    for name in jvm.java.util.TimeZone.getAvailableIDs():
        known = zones.intervals(name)
        if known is None:
            unknown.append(name)
            continue
        zone = jvm.java.util.TimeZone.getTimeZone(name)
        starts = [start for start, _, _ in known]
        near = [start for start in starts if -6_000_000_000 < start < 4_000_000_000]
        for second in (edge - before for edge in near[:: max(len(near) // 8, 1)] for before in (0, 1)):
            _, first, others = known[bisect_right(starts, second) - 1]
            assert zone.getOffset(second * 1000) // 1000 in {first, *others}, (name, second)
    assert {name.partition("/")[0] for name in unknown} <= {"SystemV"}
