"""An Iceberg table whose files are in MinIO: Spark by Iceberg's S3FileIO, executors by bloom's own S3 store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import rest_catalog
from support.iceberg_runs import rows
from support.servers import running

import bloomcli
from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.servers]


@pytest.fixture
def lake(spark: SparkSession, bucket: str, tmp_path: Path) -> Iterator[str]:
    """The name of a bucket of MinIO, with the session's catalog ``lake`` above it."""
    server = running.minio()
    with rest_catalog.served(tmp_path, f"s3://{bucket}/warehouse") as (_, uri):
        options = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": uri,
            ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            ".s3.endpoint": server.url,
            ".s3.path-style-access": "true",
            ".s3.access-key-id": server.user,
            ".s3.secret-access-key": server.secret,
            ".client.region": "us-east-1",
        }
        for option, value in options.items():
            spark.conf.set(f"spark.sql.catalog.lake{option}", value)
        yield bucket


def test_files_of_a_table_in_a_bucket_are_replaced_and_deleted_rows_stay_deleted(
    spark: SparkSession, lake: str
) -> None:
    table = "lake.db.orders"
    spark.sql(
        f"create table {table} (id bigint, name string, p int) using iceberg partitioned by (p) tblproperties "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.object-storage.enabled' = 'true')"
    )
    for part in range(2):
        spark.sql(f"insert into {table} select id, uuid(), {part} from range({part * 500}, {part * 500 + 500}, 1, 1)")
    spark.sql(f"delete from {table} where id % 50 = 7")
    before = rows(spark, table)
    added = bloom_spark.add_to_table(spark, table, ["id", "name"]).collect()
    assert [row.status for row in added] == ["done", "done"]
    assert all(row.path.startswith(f"s3://{lake}/") and row.requests for row in added)
    assert rows(spark, table) == before
    files = [row[0] for row in spark.sql(f"select file_path from {table}.files where content = 0").collect()]
    assert all(len(bloomcli.inspect(file).filters) == 2 for file in files)
    again = bloom_spark.add_to_table(spark, table, ["id", "name"]).collect()
    assert [row.status for row in again] == ["skipped", "skipped"]
    probed = bloom_spark.probe_table(spark, table, [700], column="id").collect()
    assert sorted(row.totals[0].answer for row in probed) == ["absent", "maybe"]
    removed = bloom_spark.remove_from_table(spark, table).collect()
    assert [row.status for row in removed] == ["done", "done"]
    assert rows(spark, table) == before
