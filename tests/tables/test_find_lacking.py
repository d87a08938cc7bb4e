"""find on Iceberg tables: columns that a data file lacks, and columns that the table no longer has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import delete_equal, local_path, opened

from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def found(spark: SparkSession, table: str, values: list[int], **more: Any) -> list[str]:
    frame = spark.createDataFrame([(value,) for value in values], "wanted int")
    rows = bloom_spark.find_table(spark, table, frame, column="id", **more).collect()
    return sorted(str(row.record) for row in rows)


def scanned(spark: SparkSession, table: str, values: list[int], select: str = "*") -> list[str]:
    return sorted(map(str, spark.sql(f"select {select} from {table} where id in {tuple(values)}").collect()))


def test_a_delete_by_a_column_that_was_dropped_still_deletes(spark: SparkSession) -> None:
    table = "ice.db.dropped"
    spark.sql(f"create table {table} (id int, k int, note string) using iceberg tblproperties('format-version'='2')")
    spark.sql(f"insert into {table} select id, id * 10, 'old' from range(0, 40, 1, 1)")
    delete_equal(spark, table, "k", [30, 50])
    spark.sql(f"alter table {table} alter column k type bigint")
    spark.sql(f"insert into {table} select id, id * 10, 'wide' from range(40, 50, 1, 1)")
    spark.sql(f"alter table {table} drop column k")
    values = [2, 3, 5, 41]
    expected = scanned(spark, table, values)
    assert found(spark, table, values) == expected
    assert len(expected) == 2
    assert found(spark, table, values, select=["note"]) == scanned(spark, table, values, "note")
    spark.sql(f"alter table {table} add column k string")  # Iceberg 1.12 fails to read it: two columns called k
    assert [row.replace(", k=None", "") for row in found(spark, table, values)] == expected
    before = opened(spark, table).version
    spark.sql(f"insert into {table} values (3, 'new', 'x')")
    assert found(spark, table, values, select=["note"], snapshot=before) == scanned_notes(expected)
    assert len(found(spark, table, values)) == 3


def scanned_notes(rows: list[str]) -> list[str]:
    return sorted("Row(note=" + row.partition("note=")[2] for row in rows)


def test_partition_values_that_only_the_metadata_have_are_in_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = "ice.db.identity"
    columns = (
        "id int, p int, b binary, at timestamp, d decimal(9, 2), f float, day date, yes boolean, local timestamp_ntz,"
        " s string"
    )
    spark.sql(f"create table {table} ({columns}) using iceberg partitioned by (p, b, at, d, f, day, yes, local, s)")
    values = (
        "X'00ff', timestamp'2026-11-01 10:00:00.123456', 1.50, cast(1.5 as float), date'2026-11-02', true,"
        " timestamp_ntz'1969-12-31 23:59:59.5', 'a/b'"
    )
    spark.sql(f"insert into {table} values (1, 2, {values}), (2, {', '.join(['null'] * 9)}), (3, 4, {values})")
    expected = scanned(spark, table, [1, 2, 3])
    without_partition_columns(spark, table, tmp_path)
    assert scanned(spark, table, [1, 2, 3]) == expected
    assert found(spark, table, [1, 2, 3]) == expected
    spark.sql(f"insert into {table} values (1, 5, {values})")
    spark.sql(f"insert into {table} values (1, 6, {values})")
    assert found(spark, table, [1, 2, 3]) == scanned(spark, table, [1, 2, 3]), "of files with and without the columns"
    assert found(spark, table, [1, 3], select=["s", "p"]) == scanned(spark, table, [1, 3], "p, s")


def without_partition_columns(spark: SparkSession, table: str, folder: Path) -> None:
    """Replace each data file by one with only the column ``id``, as ``add_files`` finds it in a folder of Hive."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    iceberg = opened(spark, table)
    change = iceberg.table.newOverwrite()
    for number, file in enumerate(iceberg.files()):
        new = folder / f"{number}.parquet"
        rows = pq.read_table(local_path(file.path), columns=["id"])
        field = rows.schema.field("id")
        pq.write_table(pa.table(rows.columns, pa.schema([field.remove_metadata()])), new)
        of = iceberg.java.iceberg("DataFiles").builder(file.record.partition_spec).copy(file.record.file)
        change.deleteFile(file.record.file).addFile(
            of.withPath(str(new)).withFileSizeInBytes(new.stat().st_size).build()
        )
    change.commit()
    mapping = iceberg.java.iceberg("mapping.MappingUtil").create(iceberg.table.schema())
    text = iceberg.java.iceberg("mapping.NameMappingParser").toJson(mapping)
    iceberg.table.updateProperties().set("schema.name-mapping.default", text).commit()


def test_a_default_value_is_in_the_rows_of_files_from_before_the_column(spark: SparkSession) -> None:
    table = "ice.db.defaults"
    spark.sql(
        f"create table {table} (id int, place struct<city: string>) using iceberg tblproperties('format-version'='3')"
    )
    spark.sql(f"insert into {table} select id, named_struct('city', 'c') from range(0, 5, 1, 1)")
    iceberg = opened(spark, table)
    types, lit = "org.apache.iceberg.types.Types$", iceberg.java.iceberg("expressions.Expressions").lit
    text = iceberg.java.type(f"{types}StringType").get()
    change = iceberg.table.updateSchema().addColumn("note", text, lit("none"))
    change.addColumn("number", iceberg.java.type(f"{types}IntegerType").get(), lit(7))
    change.addColumn("place", "zip", text, None, lit("8000")).commit()
    spark.sql(f"insert into {table} values (9, named_struct('city', 'd', 'zip', '9000'), 'some', 8)")
    expected = scanned(spark, table, [1, 9])
    assert "zip='8000'" in expected[0]
    assert found(spark, table, [1, 9]) == expected
    for column in ("note", "place.zip"):
        with pytest.raises(Exception, match="all of its rows have the column's default value"):
            bloom_spark.find_table(spark, table, "8000", column=column).collect()
