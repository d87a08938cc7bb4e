"""Rows of tables read without Spark equal those of Spark's SELECT: changed schemas, partitions, older versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.without_spark import warehouse_folder

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NESTED = (
    "id bigint, s struct<a: int, b: struct<c: string, d: int>>, l array<struct<x: int, y: string>>,"
    " m map<string, struct<k: int>>, n int, f float, p decimal(9, 2)"
)
FIRST = (
    "1, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2)), array(named_struct('x', 1, 'y', 'q')),"
    " map('k', named_struct('k', 7)), 5, cast(0.1 as float), 1.25"
)
CHANGES = (
    "rename column s.b.c to e",
    "drop column s.a",
    "add column s.a int",
    "rename column l.element.x to z",
    "rename column m.value.k to kk",
    "drop column s.b.d",
    "add column s.b.d string first",
    "drop column n",
    "add column n string",
    "alter column p type decimal(20, 2)",
    "add column late bigint",
)
LATER = (
    "2, named_struct('b', named_struct('d', 'new', 'e', 'y'), 'a', 9), array(named_struct('z', 3, 'y', 'r')),"
    " map('k', named_struct('kk', 8)), float(0.2), 9999999999.99, 'text', 1",
    "3, null, null, null, null, null, null, null",
    "4, named_struct('b', null, 'a', null), array(null), map('n', null), float('nan'), -0.01, '', null",
)
PARTS = "dc decimal(38, 10), ts timestamp, nt timestamp_ntz, b boolean, bin binary, dd date, st string"
VALUES = (
    "12.5, timestamp'2026-01-01 10:00:00.123456', timestamp_ntz'2026-01-01 10:00:00.123456', true, X'4142',"
    " date'2026-01-01', 'a/b=%?#ü'",
    "null, null, null, null, null, null, null",
    "-0.0000000001, timestamp'1901-01-01 00:00:00', timestamp_ntz'0001-01-01 00:00:00', false, X'41',"
    " date'9999-12-31', 'null'",
    "5, timestamp'9999-12-31 23:59:59.999999', timestamp_ntz'9999-12-31 23:59:59.999999', false, X'43',"
    " date'0001-01-01', '😀😀'",
)


def insert(spark: SparkSession, name: str, rows: Sequence[str]) -> None:
    for row in rows:
        spark.sql(f"insert into {name} select {row}")


def same(path: Path, frame: DataFrame, rows: int, **chosen: Any) -> None:
    """Compare the rows of ids below 10."""
    found = bloomcli.find(bloomcli.Table(path, **chosen), range(10), column="id").to_arrow()["record"].to_pylist()
    theirs = frame.toArrow().to_pylist()
    ours, expected = (sorted(json.dumps(row, default=str) for row in every) for every in (found, theirs))
    assert len(ours) == rows
    assert ours == expected


@pytest.mark.parametrize("using", ["iceberg", "delta"])
def test_changed_schemas(spark: SparkSession, folder: Path, using: str) -> None:
    name, path, version = f"delta.`{folder}`", folder, "1"
    options = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    if using == "iceberg":
        name, options = "ice.db.changed", "'format-version' = '2'"
        path = warehouse_folder(spark, name)
    spark.sql(f"create table {name} ({NESTED}) using {using} tblproperties ({options})")
    insert(spark, name, [FIRST])
    if using == "iceberg":
        version = str(spark.sql(f"select snapshot_id from {name}.snapshots").collect()[0][0])
    for change in CHANGES:
        spark.sql(f"alter table {name} {change}")
    if using == "iceberg":
        spark.sql(f"alter table {name} alter column f type double")
    insert(spark, name, LATER)
    same(path, spark.table(name), 4)
    same(path, spark.sql(f"select * from {name} version as of {version}"), 1, snapshot=int(version))


def test_partitions_of_delta(spark: SparkSession, folder: Path) -> None:
    names = ", ".join(part.split()[0] for part in PARTS.replace("(38, 10)", "").split(", "))
    spark.sql(f"create table delta.`{folder}` (id bigint, {PARTS}) using delta partitioned by ({names})")
    insert(spark, f"delta.`{folder}`", [f"{number}, {values}" for number, values in enumerate(VALUES)])
    same(folder, spark.table(f"delta.`{folder}`"), 4)


@pytest.mark.parametrize(
    "by",
    [
        "dc, ts, nt, b, bin, dd, st",
        "bucket(4, id), hours(ts), months(dd), days(nt), truncate(2, st), truncate(100, dc), truncate(1, bin)",
    ],
    ids=["identity", "parts"],
)
def test_partitions_of_iceberg(spark: SparkSession, by: str) -> None:
    name = f"ice.db.by_{len(by)}"
    spark.sql(f"create table {name} (id bigint, {PARTS}) using iceberg partitioned by ({by})")
    insert(spark, name, [f"{number}, {values}" for number, values in enumerate(VALUES)])
    first = by.partition(",")[0] if "(" not in by else by[: by.index(")") + 1]
    spark.sql(f"alter table {name} drop partition field {first}")
    spark.sql(f"alter table {name} rename column st to renamed")
    insert(spark, name, [f"5, {VALUES[0]}"])
    same(warehouse_folder(spark, name), spark.table(name), 5)
