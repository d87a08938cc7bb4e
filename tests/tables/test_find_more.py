"""find on tables with an index, and with delete files and data files of other formats than Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import delete_equal

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def index_of(spark: SparkSession, table: str, columns: list[str], target: Path) -> Path:
    """An index of a table's files, in which its columns may have other names."""
    opened = open_table(spark, table)
    names = {one.path: one.physical[0] if one.physical and one.field_id is None else one.path
             for one in opened.names().columns}  # fmt: skip
    files = [file.path.removeprefix("file:") for file in opened.files()]
    bloomcli.index_build(files, [names[column] for column in columns], output=target)
    return target


def found(spark: SparkSession, table: str, column: str, values: list[Any], index: Path | None) -> list[str]:
    frame = spark.createDataFrame([(value,) for value in values], "wanted " + ("int" if column == "id" else "string"))
    return sorted(
        str(row.record) for row in bloom_spark.find_table(spark, table, frame, column=column, index=index).collect()
    )


def scanned(spark: SparkSession, table: str, column: str, values: list[Any]) -> list[str]:
    chosen = ", ".join(map(repr, values))
    return sorted(map(str, spark.sql(f"select * from {table} where {column} in ({chosen})").collect()))


def test_an_index_loses_no_row_of_columns_that_were_renamed(spark: SparkSession, tmp_path: Path) -> None:
    table = "ice.db.find_swapped"
    spark.sql(f"create table {table} (id int, a string, b string) using iceberg")
    spark.sql(f"insert into {table} select id, concat('x', id), concat('y', id) from range(0, 50, 1, 1)")
    spark.sql(f"alter table {table} rename column a to c")
    spark.sql(f"alter table {table} rename column b to a")
    spark.sql(f"alter table {table} rename column c to b")
    spark.sql(f"insert into {table} select id, concat('x', id), concat('y', id) from range(50, 100, 1, 1)")
    index = index_of(spark, table, ["id", "a", "b"], tmp_path / "index")
    values = ["y7", "x7", "y77", "x77"]
    for column in ("a", "b"):
        expected = scanned(spark, table, column, values)
        assert found(spark, table, column, values, index) == found(spark, table, column, values, None) == expected
        assert len(expected) == 2
    assert found(spark, table, "id", [7, 77, 777], index) == scanned(spark, table, "id", [7, 77, 777])


def test_an_index_of_a_delta_table_rules_files_out_and_loses_no_row(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = f"delta.`{tmp_path / 'table'}`"
    spark.sql(
        f"create table {table} (id int, label string) using delta tblproperties("
        "'delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"insert into {table} select cast(id as int), concat('n', id) from range(0, 300, 1, 3)")
    index = index_of(spark, table, ["id"], tmp_path / "index")
    spark.sql(f"insert into {table} select 150, 'again'")
    spark.sql(f"delete from {table} where id = 42")
    values = [42, 150, 299, 999]
    assert found(spark, table, "id", values, index) == scanned(spark, table, "id", values)
    capfd.readouterr()
    words = ["find", "-v", "150", "--table", table, "-c", "id", "--index", str(index), "-f", "json"]
    assert cli([*words, "--engine", "spark"]) == 0
    report = json.loads(capfd.readouterr().out)
    report = report.get("report", report)
    assert (report["rows"], report["files_not_indexed"], report["files_unopened"]) == (2, 1, 2)


@pytest.mark.parametrize(("data", "deletes"), [("parquet", "avro"), ("orc", "orc")])
def test_rows_that_delete_files_of_other_formats_delete_are_not_shown(
    spark: SparkSession, data: str, deletes: str
) -> None:
    table = f"ice.db.find_{data}_{deletes}"
    spark.sql(
        f"create table {table} (id int, name string, place struct<city: string, zip: int>) using iceberg"
        " tblproperties('format-version'='2', 'write.delete.mode'='merge-on-read',"
        f" 'write.format.default'='{data}', 'write.delete.format.default'='{deletes}')"
    )
    place = "named_struct('city', concat('c', id), 'zip', cast(id as int))"
    for start in (0, 100):
        spark.sql(f"insert into {table} select id, concat('n', id), {place} from range({start}, {start + 100}, 1, 1)")
    spark.sql(f"alter table {table} rename column name to label")
    spark.sql(f"delete from {table} where id in (3, 150)")
    delete_equal(spark, table, "label", ["n4"])
    kinds = {(row.content, row.file_format) for row in spark.table(f"{table}.delete_files").collect()}
    assert kinds == {(1, deletes.upper()), (2, deletes.upper())}, "of positions and of equal values"
    values = [2, 3, 4, 150, 151, 999]
    expected = scanned(spark, table, "id", values)
    assert found(spark, table, "id", values, None) == expected
    assert len(expected) == 2


WIDENED = {
    "day": ("date", "timestamp_ntz", "timestamp_ntz'2026-11-03 00:00:00', timestamp_ntz'2026-11-03 12:00:00'"),
    "f": ("float", "double", "0.1D, 0.5D, double(float(0.1))"),
    "i": ("int", "double", "3.0D, 3.5D, double('NaN'), double('inf'), 1e300"),
    "d": ("short", "decimal(12, 2)", "3.00, 3.50"),
}
"""Columns, their types before and after, and values of the latter."""


def test_values_of_widened_columns_are_found_as_spark_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}`"
    columns = ", ".join(f"{name} {before}" for name, (before, *_) in WIDENED.items())
    spark.sql(
        f"create table {table} (id int, {columns}) using delta"
        " tblproperties('delta.enableTypeWidening'='true', 'delta.feature.timestampNtz'='supported')"
    )
    old = "id, date_add(date'2026-11-01', id), float(id / 10), id, smallint(id)"
    spark.sql(f"insert into {table} select {old} from (select int(id) id from range(0, 10, 1, 1))")
    for name, (_, after, _) in WIDENED.items():
        spark.sql(f"alter table {table} alter column {name} type {after}")
    spark.sql(f"insert into {table} values (20, timestamp_ntz'2026-11-03 12:00:00', 0.1, 3.5, 3.5)")
    counts = []
    for name, (_, after, values) in WIDENED.items():
        frame = spark.sql(f"select cast(wanted as {after}) wanted from (select explode(array({values})) wanted)")
        rows = bloom_spark.find_table(spark, table, frame, column=name).collect()
        frame.createOrReplaceTempView("wanted")
        expected = spark.sql(f"select t.* from {table} t join wanted on t.{name} = wanted").collect()
        assert sorted(str(row.record) for row in rows) == sorted(map(str, expected)), name
        counts.append(len(rows))
    assert counts == [2, 3, 2, 2]
    (probed, _) = bloom_spark.probe_table(spark, table, "2026-11-03 12:00:00", column="day").collect()
    assert (probed.status, probed.error) == ("done", None)
