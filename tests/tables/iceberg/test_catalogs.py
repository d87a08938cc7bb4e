"""Iceberg tables of a JDBC catalog. Hive's is in test_encrypted_tables.py, REST in test_rest_catalog.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.iceberg_runs import rows

from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_table_of_a_jdbc_catalog_is_changed_and_deleted_rows_stay_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = "of_jdbc.db.orders"
    spark.conf.set("spark.sql.catalog.of_jdbc", "org.apache.iceberg.spark.SparkCatalog")
    uri = f"jdbc:h2:{tmp_path}/tables;DATABASE_TO_UPPER=false"
    for option, value in {"type": "jdbc", "uri": uri, "warehouse": f"{tmp_path}/warehouse"}.items():
        spark.conf.set(f"spark.sql.catalog.of_jdbc.{option}", value)
    spark.sql("create namespace of_jdbc.db")
    spark.sql(
        f"create table {table} (id bigint, name string) using iceberg "
        "tblproperties ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"insert into {table} select id, concat('n', id) from range(0, 200, 1, 2)")
    spark.sql(f"delete from {table} where id in (5, 105)")
    before = rows(spark, table)
    added = bloom_spark.add_to_table(spark, table, ["id"], commit_every=1).collect()
    assert [row.status for row in added] == ["done", "done"]
    assert rows(spark, table) == before
    assert [row.filters for row in bloom_spark.inspect_table(spark, table).collect()] == [1, 1]
    removed = bloom_spark.remove_from_table(spark, table).collect()
    assert [row.status for row in removed] == ["done", "done"]
    assert rows(spark, table) == before
