"""Iceberg tables of a JDBC catalog and of Hive's metastore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.iceberg_runs import rows

from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


def options(kind: str, folder: Path) -> dict[str, str]:
    """The settings of a catalog: Iceberg's by JDBC is in H2, the metastore in Derby, which Spark brings."""
    warehouse = {"warehouse": f"{folder}/warehouse"}
    if kind == "jdbc":
        return {"type": "jdbc", "uri": f"jdbc:h2:{folder}/tables;DATABASE_TO_UPPER=false", **warehouse}
    return {
        "type": "hive",
        **warehouse,
        "hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        "hadoop.javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "hadoop.datanucleus.schema.autoCreateAll": "true",
        "hadoop.hive.metastore.schema.verification": "false",
        "hadoop.hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "hadoop.iceberg.engine.hive.lock-enabled": "false",  # Hive's locks are for a metastore with a server
    }


@pytest.fixture(params=["jdbc", "hive"])
def catalog(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a catalog of the session."""
    kind = str(request.param)
    name = f"of_{kind}"
    spark.conf.set(f"spark.sql.catalog.{name}", ICEBERG)
    for option, value in options(kind, tmp_path).items():
        spark.conf.set(f"spark.sql.catalog.{name}.{option}", value)
    yield name


def test_a_table_of_any_catalog_is_changed_and_deleted_rows_stay_deleted(spark: SparkSession, catalog: str) -> None:
    table = f"{catalog}.db.orders"
    spark.sql(f"create namespace {catalog}.db")
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
