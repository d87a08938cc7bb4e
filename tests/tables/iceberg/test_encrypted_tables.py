"""Encrypted Iceberg tables: Spark reads the keys of files from the manifests, and copies keep their keys.

Hive's catalog is the one that encrypts. Its metastore is in memory, and Iceberg's own client of AWS KMS asks a service
of this process.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import aws_kms
from support.iceberg_runs import append, ids, local_path, opened, rows

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.keys import Keys
from bloomcli.tables.iceberg.key_metadata import read_key
from bloomcli.tables.opening import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CATALOG = "spark.sql.catalog.safe"


@pytest.fixture(scope="module")
def safe(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session with the catalog ``safe``, whose tables can be encrypted."""
    settings = {
        "hive.metastore.uris": "",
        "hive.metastore.schema.verification": "false",
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:safe;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
        "iceberg.engine.hive.lock-enabled": "false",
    }
    hadoop, system = spark.sparkContext._jsc.hadoopConfiguration(), spark._jvm.java.lang.System
    folder = tmp_path_factory.mktemp("safe")
    with aws_kms.served() as url:
        for name, value in {"endpointUrlKms": url, "region": "r", "accessKeyId": "a", "secretAccessKey": "b"}.items():
            system.setProperty(f"aws.{name}", value)
        system.setProperty("derby.system.home", str(folder))
        for name, value in settings.items():
            hadoop.set(name, value)
        spark.conf.set(CATALOG, "org.apache.iceberg.spark.SparkCatalog")
        options = {"type": "hive", "warehouse": str(folder), "encryption.kms-type": "aws", "cache-enabled": "false"}
        for name, value in options.items():
            spark.conf.set(f"{CATALOG}.{name}", value)
        spark.sql("create namespace safe.db")
        yield spark


def made(spark: SparkSession, name: str, **properties: str) -> str:
    """An encrypted table with the columns id, day and name, of two hundred rows in two files."""
    given = {"format-version": "3", "encryption.key-id": "master", "write.delete.mode": "merge-on-read", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    spark.sql(
        f"create table safe.db.{name} (id int, day date, name string, parts struct<a: bigint, b: array<int>>) "
        f"using iceberg tblproperties ({listed})"
    )
    for start in (0, 100):
        append(spark, f"safe.db.{name}", start)
    return f"safe.db.{name}"


def files_of(spark: SparkSession, name: str) -> dict[str, Any]:
    """The keys of data files by local path, as `bloomcli.Keys` takes them."""
    return {str(local_path(file.path)): file.key for file in opened(spark, name).files()}


def test_commands_read_and_change_files_by_the_keys_in_the_manifests(safe: SparkSession) -> None:
    name = made(safe, "t")
    safe.sql(f"delete from {name} where id % 50 = 3")
    before, lineage = rows(safe, name), rows(safe, name, "id", "_row_id", "_last_updated_sequence_number")
    (old, *_) = keys = files_of(safe, name)
    with pytest.raises(UnsupportedError, match="its key isn't given"):
        bloomcli.inspect(old)
    assert [row.status for row in bloom_spark.inspect_table(safe, name).collect()] == ["done"] * 2

    added = bloom_spark.add_to_table(safe, name, ["id", "name"], readers=["spark"]).collect()
    assert [(row.status, row.error) for row in added] == [("done", None)] * 2
    assert rows(safe, name) == before
    assert rows(safe, name, "id", "_row_id", "_last_updated_sequence_number") == lineage
    after = files_of(safe, name)
    assert sorted(after.values()) == sorted(keys.values()) and not after.keys() & keys.keys()
    checked = bloom_spark.validate_table(safe, name, deep=True).collect()
    assert [(row.status, row.filters) for row in checked] == [("done", 2)] * 2
    found = bloom_spark.find_table(safe, name, [7, 103, 150], column="id", select=["name"]).collect()
    assert sorted(row.record.name for row in found) == ["n150", "n7"]
    (total,) = {row.totals[0].presence for row in bloom_spark.probe_table(safe, name, [-1], column="id").collect()}
    assert total == "absent"
    lengths = [row.n for row in safe.sql(f"select file_size_in_bytes n from {name}.files where content = 0").collect()]
    assert sorted(lengths) == sorted(Path(path).stat().st_size for path in after)
