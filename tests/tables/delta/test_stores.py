"""A Delta table in MinIO: Delta by Hadoop's s3a and its own log store, executors by bloom's own S3 store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.delta_tables import Lake
from support.servers import clients, running
from support.table_stages import stages
from support.without_spark import answer, found_by_both

import bloomcli
from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.servers]

ROOT = "lake/ü orders"


@pytest.fixture
def lake(spark: SparkSession, bucket: str) -> Iterator[Lake]:
    """A table of two partitions with a deleted row in each, in a bucket that the session reads by s3a."""
    server = running.minio()
    settings = {
        "endpoint": server.url,
        "endpoint.region": "us-east-1",
        "access.key": server.user,
        "secret.key": server.secret,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    for name, value in settings.items():
        spark.conf.set(f"fs.s3a.{name}", value)
    found = Lake(spark, f"s3a://{bucket}/{ROOT}")
    found.create("id bigint, p int", more="partitioned by (p)", enableDeletionVectors="true")
    for part in range(2):
        found.insert(f"id, {part} from range({part * 500}, {part * 500 + 500}, 1, 1)")
    found.sql("delete from {t} where id in (7, 507)")
    yield found
    for name in settings:
        spark.conf.unset(f"fs.s3a.{name}")


def contents(bucket: str) -> dict[str, bytes]:
    """The table's data files by their paths below it: all that the bucket holds."""
    store: Any = clients.s3(running.minio())
    keys = [one["Key"] for one in store.list_objects_v2(Bucket=bucket, Prefix=ROOT)["Contents"]]
    return {
        key.removeprefix(f"{ROOT}/"): store.get_object(Bucket=bucket, Key=key)["Body"].read()
        for key in keys
        if key.endswith(".parquet") and "/_delta_log/" not in key
    }


def known(lake: Lake) -> set[str]:
    """The data files that the log has."""
    found = set()
    for path in lake.spark.read.text(f"{lake.folder}/_delta_log/*.json").collect():
        action = json.loads(path[0])
        found |= {action["add"]["path"]} if "add" in action else set()
    return found


def ids(lake: Lake) -> list[int]:
    return sorted(row[0] for row in lake.sql("select id from {t}").collect())


def add(lake: Lake, **options: Any) -> list[Row]:
    return bloom_spark.add_to_table(lake.spark, lake.name, ["id"], **options).collect()


def test_files_of_a_table_in_a_bucket_are_read_replaced_and_become_what_they_were(
    lake: Lake, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before, originals = ids(lake), contents(bucket)
    rows = found_by_both(capfd, lake.name, "id", ["6", "7", "507", "700"])
    assert sorted(row["record"]["id"] for row in rows) == [6, 700]
    uri = f"s3://{bucket}/{ROOT}"
    code, listed = answer(capfd, "inspect", "--table", uri, "--engine", "local", "-f", "json")
    assert (code, listed[0]["files"]) == (0, 2)
    code, error = answer(capfd, "find", "6", uri, "-c", "id")
    assert (code, "--table" in error) == (2, True)
    added = add(lake)
    assert [row.status for row in added] == ["done", "done"]
    assert all(row.path.startswith(f"s3://{bucket}/") and row.requests for row in added)
    assert ids(lake) == before
    (caution,) = lake.open().cautions()
    assert "only within one Spark driver" in caution
    files = bloom_spark.inspect_table(lake.spark, lake.name).collect()
    assert [row.filters for row in files] == [1, 1]
    assert all(len(bloomcli.inspect(row.path).filters) == 1 for row in files)
    assert [row.status for row in add(lake)] == ["skipped", "skipped"]
    probed = bloom_spark.probe_table(lake.spark, lake.name, [700], column="id").collect()
    assert sorted(row.totals[0].answer for row in probed) == ["absent", "maybe"]
    removed = bloom_spark.remove_from_table(lake.spark, lake.name).collect()
    assert [row.status for row in removed] == ["done", "done"]
    now = contents(bucket)
    again = {row.output.removeprefix(f"s3://{bucket}/{ROOT}/") for row in removed}
    assert sorted(now[path] for path in again) == sorted(originals.values())
    assert set(now) == known(lake) == {*originals, *again} | (set(now) - set(originals) - again)
    assert ids(lake) == before


def test_other_commits_to_a_table_in_a_bucket_are_neither_lost_nor_undone(lake: Lake, bucket: str) -> None:
    rows = ids(lake)
    lake.insert("id, 0 from range(2000, 2010)")

    def at(stage: str, count: int, paths: Any) -> None:
        del paths
        if (stage, count) == ("made", 1):
            lake.sql("delete from {t} where id = 8")
        elif (stage, count) == ("refreshed", 1):
            lake.sql("optimize {t} where p = 0")
        elif (stage, count) == ("committing", 1):
            lake.insert("id, 1 from range(3000, 3010)")

    with stages(at):
        found = add(lake)
    assert "failed" not in {row.status for row in found}
    expected = sorted({*rows, *range(2000, 2010), *range(3000, 3010)} - {8})
    assert ids(lake) == expected
    assert set(contents(bucket)) == known(lake), "new files that were of no use any more are removed"
    assert {row.status for row in add(lake)} <= {"done", "skipped"}
    assert {row.filters for row in bloom_spark.inspect_table(lake.spark, lake.name).collect()} == {1}
    assert ids(lake) == expected
