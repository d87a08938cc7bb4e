"""Executors get the keys of encrypted files sealed: Spark's files don't have them. The session's own keys suffice."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.encrypted import KEYS, file

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.commands.options import InspectOptions
from bloomcli.formats.keys import seal

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


def test_the_sessions_own_keys_open_its_files(spark: SparkSession) -> None:
    pairs = KEYS["spark_columns_double"]["keys"].items()
    spark.conf.set("parquet.encryption.key.list", ", ".join(f"{i}:{base64.b64encode(k).decode()}" for i, k in pairs))
    try:
        (row,) = bloom_spark.validate(spark, str(file("spark_columns_double")), deep=True).collect()
    finally:
        spark.conf.unset("parquet.encryption.key.list")
    assert (row.status, row.values_checked) == ("done", 600)
