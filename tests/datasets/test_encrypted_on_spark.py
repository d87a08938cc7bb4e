"""Executors get the keys of encrypted files sealed: Spark's files don't have them. The session's own keys suffice."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import need
from support.encrypted import KEYS, empty_filters, file
from support.servers import install, running

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.commands.options import InspectOptions
from bloomcli.formats.keys import Keys, seal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")]
NAME = "java_columns_gcm"


def test_executors_open_encrypted_files_and_spark_writes_no_key(spark: SparkSession) -> None:
    given, path = bloomcli.Keys(**KEYS[NAME]), str(file(NAME))
    (row,) = bloom_spark.validate(spark, path, deep=True, keys=given).collect()
    assert (row.status, row.values_checked) == ("done", 800)
    frame = bloom_spark.find(spark, path, [1000007], column="id", keys=given)
    assert [found.record.name for found in frame.collect()] == ["name-13"]
    secrets = [*KEYS[NAME]["keys"].values(), seal()]
    forms = [form for key in secrets for form in (key, key.hex().encode(), base64.b64encode(key))]
    written = Path(spark.sparkContext.broadcast(InspectOptions(keys=given))._path).read_bytes()
    assert b"InspectOptions" in written
    assert not [form for form in forms if form in written]


@pytest.fixture
def own_keys(spark: SparkSession) -> Iterator[dict[str, bytes]]:
    """The master keys that the session has."""
    keys: dict[str, bytes] = KEYS["spark_columns_double"]["keys"]
    texts = ", ".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in keys.items())
    spark.conf.set("parquet.encryption.key.list", texts)
    yield keys
    spark.conf.unset("parquet.encryption.key.list")


@pytest.mark.usefixtures("own_keys")
def test_the_sessions_own_keys_open_its_files(spark: SparkSession) -> None:
    (row,) = bloom_spark.validate(spark, str(file("spark_columns_double")), deep=True).collect()
    assert (row.status, row.values_checked) == ("done", 600)


@pytest.mark.parametrize(
    ("kms", "double", "internal"), [("InMemoryKMS", "true", "false"), ("LocalWrapInMemoryKMS", "false", "true")]
)
def test_spark_reads_what_it_wrote_with_the_filters_that_were_added_by_its_keys(
    spark: SparkSession, own_keys: dict[str, bytes], tmp_path: Path, kms: str, double: str, internal: str
) -> None:
    need(
        running.installed("parquet-kms"),
        "parquet-java's InMemoryKMS: python tests/support/servers/install.py parquet-kms",
    )
    for jar in (install.INSTALLATIONS["parquet-kms"].folder / "jars").glob("*.jar"):
        spark.sql(f"ADD JAR '{jar}'")
    lake, keytools = tmp_path / "lake", "org.apache.parquet.crypto.keytools"
    session = {
        "parquet.crypto.factory.class": f"{keytools}.PropertiesDrivenCryptoFactory",
        "parquet.encryption.kms.client.class": f"{keytools}.mocks.{kms}",
    }
    options = {
        "footer.key": "footerkey",
        "column.keys": "colkey1:id;colkey2:name",
        "double.wrapping": double,
        "key.material.store.internally": internal,
    }
    named = {f"parquet.encryption.{name}": value for name, value in options.items()}
    rows = spark.range(0, 200, 1, 1).selectExpr("id * 37 % 200 AS id", "concat('name ', id) AS name", "id AS open")
    for name, value in session.items():
        spark.conf.set(name, value)
    try:
        rows.write.options(**named).parquet(str(lake))
        (added,) = bloom_spark.add(spark, str(lake), ["id", "name"], in_place=True, readers=["spark"]).collect()
        assert (added.status, added.error, added.filters) == ("done", None, 2)
        (path,) = lake.glob("*.parquet")
        spark.catalog.refreshByPath(str(lake))
        frame = spark.read.parquet(str(lake))
        wanted = frame.where("name = 'name 7'")
        assert sorted(frame.collect()) == sorted(rows.collect())
        assert [row.id for row in wanted.collect()] == [59]
        empty_filters(path, Keys(keys=own_keys))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        assert frame.count() == 200
        assert wanted.collect() == [], "the filter is read: without its bits the row is lost"
    finally:
        for name in session:
            spark.conf.unset(name)
