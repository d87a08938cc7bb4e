"""Tight filters in files and in an Iceberg table, read by Spark 4.1: rows are found, absent values aren't read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_scan import scan

import bloomcli
from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 3000


def test_spark_4_1_reads_the_row_groups_that_tight_filters_leave(spark: SparkSession, tmp_path: Path) -> None:
    values = [random.Random(n).getrandbits(40) * 2 for n in range(ROWS)]
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table({"n": list(range(ROWS)), "id": values}), path, row_group_size=ROWS, use_dictionary=False)
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    frame = spark.read.parquet(str(path))
    assert scan(frame, f"id = {values[0] + 1}L")[1] == ROWS
    bloomcli.add(path, ["id"], fpp=1e-4, size="tight", readers=["spark"], in_place=True)
    size = bloomcli.inspect(path).filters[0].bitset_bytes or 0
    assert size & (size - 1)
    spark.catalog.clearCache()
    frame = spark.read.parquet(str(path))
    for number in (0, 1, 1500, ROWS - 1):
        assert [row["n"] for row in scan(frame, f"id = {values[number]}L")[0]] == [number]
    assert [scan(frame, f"id = {values[number] + 1}L")[1] for number in (0, 1, 1500)] == [0, 0, 0]


def test_an_iceberg_table_gets_tight_filters_that_fold_and_go_again(spark: SparkSession) -> None:
    name = f"ice.db.tight_{uuid4().hex}"
    spark.sql(f"create table {name} (id bigint, name string) using iceberg tblproperties ('format-version' = '2')")
    try:
        spark.sql(f"insert into {name} select id * 7919, concat('n', id) from range(0, {ROWS}, 1, 1)")
        made = bloom_spark.add_to_table(spark, name, ["id"], size="tight", readers=["spark", "iceberg"]).collect()
        assert [row["status"] for row in made] == ["done"]
        sizes = [f.bitset_bytes or 0 for f in bloomcli.inspect(made[0]["output"].removeprefix("file:")).filters]
        assert sizes
        assert all(3500 < size < 4050 and size % 32 == 0 for size in sizes), sizes
        again = bloom_spark.add_to_table(spark, name, ["id"], size="tight", readers=["spark", "iceberg"]).collect()
        folded = bloom_spark.fold_table(spark, name, size="tight", readers=["spark", "iceberg"]).collect()
        assert [row["status"] for row in (*again, *folded)] == ["skipped", "skipped"]
        assert spark.sql(f"select name from {name} where id = {7919 * 77}").collect()[0][0] == "n77"
        assert spark.sql(f"select count(distinct id) from {name}").collect()[0][0] == ROWS
        refused = bloom_spark.add_to_table(spark, name, ["name"], size="tight", readers=["impala"]).collect()
        assert [row["status"] for row in refused] == ["failed"]
        assert "Impala misreads such filters" in str(refused[0])
    finally:
        spark.sql(f"drop table {name} purge")
