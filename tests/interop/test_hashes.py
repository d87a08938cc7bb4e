"""The scalar hashes against the Java implementations that Spark brings: parquet-hadoop, orc-core, xxHash."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from conftest import need
from support import orc_hashes

from bloomcli import kernels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

BYTES = [b"", b"a", b"hive", b"\xff\x80\x7f\x00", "schöner Text, länger".encode()]
BYTES += [random.Random(length).randbytes(length) for length in range(1, 40)]
LONGS = [0, 1, -1, 42, -42, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)]
LONGS += [random.Random(seed).getrandbits(64) - (1 << 63) for seed in range(40)]


def unsigned(value: int) -> int:
    """Java's long as an unsigned number."""
    return value & (1 << 64) - 1


def test_bytes_hash_as_orc_core_hashes_them(spark: SparkSession) -> None:
    murmur = spark._jvm.org.apache.orc.util.Murmur3
    assert [orc_hashes.orc_bytes(data) for data in BYTES] == [
        unsigned(murmur.hash64(data, 0, len(data), orc_hashes.ORC_SEED)) for data in BYTES
    ]


def java_class(jvm: Any, name: str) -> Any:
    """A class by its name, from Spark's own loader."""
    return jvm.java.lang.Class.forName(name, True, jvm.java.lang.Thread.currentThread().getContextClassLoader())


def test_longs_hash_as_orc_core_hashes_them(spark: SparkSession) -> None:
    jvm = spark._jvm
    kind = java_class(jvm, "org.apache.orc.util.BloomFilter")
    methods = [method for method in kind.getDeclaredMethods() if method.getName() == "getLongHash"]
    need(len(methods) == 1, "orc-core's BloomFilter.getLongHash")
    (method,) = methods
    method.setAccessible(True)
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
    found = []
    for value in LONGS:
        arguments[0] = jvm.java.lang.Long.valueOf(value)
        found.append(unsigned(method.invoke(None, arguments)))
    assert [orc_hashes.orc_long(value) for value in LONGS] == found


def test_bytes_hash_as_parquet_hadoop_hashes_them(spark: SparkSession) -> None:
    jvm = spark._jvm
    xxhash = jvm.org.apache.parquet.column.values.bloomfilter.XxHash()
    assert [kernels.xxh64(data) for data in BYTES] == [unsigned(xxhash.hashBytes(data)) for data in BYTES]
