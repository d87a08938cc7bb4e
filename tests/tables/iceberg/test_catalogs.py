"""Commits through a REST catalog, whose answers fail or are lost, and a JDBC catalog. Hive's is in
test_encrypted_tables.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import rest_catalog
from support.iceberg_runs import files_below, info, prepared, rows, summaries
from support.rest_catalog import FAILED, LOST_AFTER, LOST_BEFORE, UNSURE, RestCatalog

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.tables.base import UnknownOutcome
from bloomcli.tables.iceberg import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    """A REST catalog, which the session has as ``rest``."""
    with rest_catalog.served(tmp_path_factory.mktemp("rest")) as (found, uri):
        spark.conf.set("spark.sql.catalog.rest", "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set("spark.sql.catalog.rest.type", "rest")
        spark.conf.set("spark.sql.catalog.rest.uri", uri)
        spark.conf.set("spark.sql.catalog.rest.io-impl", "org.apache.iceberg.hadoop.HadoopFileIO")
        yield found


def make(spark: SparkSession, name: str) -> str:
    """A table with deleted rows."""
    spark.sql(
        f"create table rest.db.{name} (id int, name string) using iceberg "
        "tblproperties ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    for start in (0, 100):
        spark.sql(
            f"insert into rest.db.{name} select cast(id as int), concat('n', id) "
            f"from range({start}, {start + 100}, 1, 1)"
        )
    spark.sql(f"delete from rest.db.{name} where id in (5, 105)")
    return f"rest.db.{name}"


@pytest.mark.parametrize("fault", [LOST_AFTER, UNSURE])
def test_a_commit_whose_answer_is_lost_has_taken_place(spark: SparkSession, catalog: RestCatalog, fault: str) -> None:
    name = make(spark, f"answer_{fault.replace('-', '_')}")
    before, count = rows(spark, name), len(summaries(spark, name))
    table, replacements = prepared(spark, name)
    catalog.fault = fault
    snapshot = table.commit(replacements, info())
    assert catalog.fault is None
    assert table.version == snapshot
    assert rows(spark, name) == before
    assert len(summaries(spark, name)) == count + 1
    assert {file.path for file in table.files()} == {one.path for one in replacements}
    assert all(bloomcli.inspect(file.path).filters for file in table.files())


@pytest.mark.parametrize("fault", [LOST_BEFORE, FAILED])
def test_a_commit_that_may_still_take_place_keeps_its_files(
    spark: SparkSession, catalog: RestCatalog, fault: str
) -> None:
    name = make(spark, f"before_{fault.replace('-', '_')}")
    before, count = rows(spark, name), len(summaries(spark, name))
    table, replacements = prepared(spark, name)
    files = files_below(table)
    catalog.fault = fault
    with pytest.raises(UnknownOutcome, match="it isn't known"):
        table.commit(replacements, info())
    assert catalog.fault is None
    assert rows(spark, name) == before
    assert len(summaries(spark, name)) == count
    assert len(files_below(table) - files) == 2  # the new delete files
    table.commit(replacements, info())  # a run that is started again
    assert rows(spark, name) == before


def test_views_and_servers_that_do_not_answer_are_named(spark: SparkSession, catalog: RestCatalog) -> None:
    with pytest.raises(UsageError, match="it is a view"):
        open_table(spark, f"rest.db.{rest_catalog.VIEW}")
    assert open_table(spark, "rest.db.none") is None
    catalog.refusing = True
    try:
        with pytest.raises(UnreadableError, match="the catalog can't load the table"):
            open_table(spark, "rest.db.none")
    finally:
        catalog.refusing = False


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
