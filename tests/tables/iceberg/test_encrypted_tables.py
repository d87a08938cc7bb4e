"""Encrypted Iceberg tables: Spark reads the keys of files from the manifests, and copies keep their keys.

Hive's catalog is the one that encrypts. Its metastore is in memory, and Iceberg's client of AWS KMS asks a service of
this process.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import aws_kms
from support.encrypted import empty_filters
from support.iceberg_runs import append, local_path, opened, rows

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.errors import UnsupportedError
from bloomcli.formats.keys import Keys
from bloomcli.tables.iceberg.reading import rows_of
from bloomcli.tables.iceberg.scans import read_key
from bloomcli.tables.without_spark import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

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
        spark.sql("create namespace if not exists safe.db")  # a slow metastore is asked again
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


def numbers(spark: SparkSession, name: str) -> list[Row]:
    """The numbers of all rows."""
    return rows(spark, name, "id", "_row_id", "_last_updated_sequence_number")


def test_commands_read_and_change_files_by_the_keys_in_the_manifests(safe: SparkSession) -> None:
    name = made(safe, "t", **{"write.parquet.stats-enabled.column.name": "false"})
    found = bloom_spark.find_table(safe, name, [7, 150, 201], column="id", select=["name"]).collect()
    assert sorted(row.record.name for row in found) == ["n150", "n7"]
    keys = files_of(safe, name)
    with pytest.raises(UnsupportedError, match="its key isn't given"):
        bloomcli.inspect(next(iter(keys)))
    assert [row.status for row in bloom_spark.inspect_table(safe, name).collect()] == ["done"] * 2
    advised = bloom_spark.advise_table(safe, name)
    assert (advised.files, advised.sampled_files) == (2, 2)
    safe.sql(f"delete from {name} where id % 50 = 3")
    before, lineage = rows(safe, name), numbers(safe, name)

    added = bloom_spark.add_to_table(safe, name, ["id", "name"], readers=["spark"], ndv=5000).collect()
    folded = bloom_spark.fold_table(safe, name).collect()
    repaired = bloom_spark.repair_table(safe, name, columns=["name"], add=["statistics"]).collect()
    for changed in (added, folded, repaired):
        assert [(row.status, row.error) for row in changed] == [("done", None)] * 2
    assert max(row.filter_bytes for row in folded) < min(row.filter_bytes for row in added) / 8
    assert (rows(safe, name), numbers(safe, name)) == (before, lineage)
    after = files_of(safe, name)
    assert sorted(after.values()) == sorted(keys.values())
    assert not after.keys() & keys.keys()
    listed = safe.sql(f"select file_size_in_bytes n, key_metadata k from {name}.files where content = 0").collect()
    sizes = {row.n: bytes(row.k)[1:] for row in listed}
    assert sorted(sizes) == sorted(Path(path).stat().st_size for path in after)
    assert all(_avro_long(size) == metadata[-len(_avro_long(size)) :] for size, metadata in sizes.items())
    checked = bloom_spark.validate_table(safe, name, deep=True).collect()
    assert [(row.status, row.filters) for row in checked] == [("done", 2)] * 2
    probed = bloom_spark.probe_table(safe, name, [1000], column="id").collect()
    assert [row.totals[0].skipped_row_groups for row in probed] == [1, 1]
    found = bloom_spark.find_table(safe, name, [3, 7, 103, 104], column="id").collect()
    assert sorted(row.record.name for row in found) == ["n104", "n7"], "without the rows that are deleted"

    for path, key in after.items():
        (shown,) = bloomcli.inspect(path, keys=Keys(files={path: key}), columns=["name"]).by_column
        assert shown.min is not None, "statistics were added"
        empty_filters(Path(path), Keys(files={path: key}))
    assert rows(safe, name) == before
    assert safe.sql(f"select * from {name} where id = 7").collect() == [], "the filter is read"
    removed = bloom_spark.remove_from_table(safe, name).collect()
    assert [row.status for row in removed] == ["done"] * 2
    assert safe.sql(f"select name from {name} where id = 7").collect()[0].name == "n7"
    assert (rows(safe, name), numbers(safe, name)) == (before, lineage)
    reports = repr([added, folded, repaired, checked, removed, opened(safe, name).files()])
    for key, prefix in keys.values():
        for secret in (key, prefix):
            assert not [
                form for form in (secret.hex(), base64.b64encode(secret).decode(), repr(secret)) if form in reports
            ]

    metadata = opened(safe, name).java.iceberg("TableUtil").metadataFileLocation(opened(safe, name).table)
    with pytest.raises(UnsupportedError, match="only Spark gets its keys"):
        open_snapshot(str(local_path(metadata)))


def _avro_long(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_encrypted_delete_files_are_refused_by_name() -> None:
    one = {"content": "equality-deletes", "file-path": "/d.parquet", "file-format": "parquet", "key-metadata": "01"}
    with pytest.raises(UnsupportedError, match=r"d\.parquet: the delete file is encrypted"):
        rows_of({"fields": []}, list, None, {}, [("/t.parquet", [one])])


KEY, PREFIX = bytes(range(16)), bytes(range(16, 32))


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (b"\1\x20" + KEY + b"\2\x20" + PREFIX + b"\2\x80\x01", (KEY, PREFIX)),
        (b"\1\x20" + KEY + b"\0\0", (KEY, None)),
        (b"", None),
        (b"\2\x20" + KEY + b"\0\0", None),
        (b"\1\x1e" + KEY[:15] + b"\0\0", None),
        (b"\1\x20" + KEY + b"\4\0", None),
        (b"\1\x20" + KEY, None),
        (b"\1\x1f" + KEY + b"\0\0", None),
        (b"\1" + b"\xff" * 12, None),
        (b"\1\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1" + KEY, None),
        (b"a key of another manager", None),
    ],
)
def test_key_metadata_are_read_or_refused(metadata: bytes, found: tuple[bytes, bytes | None] | None) -> None:
    if found is not None:
        assert read_key(metadata) == found
        return
    with pytest.raises(UnsupportedError, match="key metadata aren't those of Iceberg's standard encryption"):
        read_key(metadata)
