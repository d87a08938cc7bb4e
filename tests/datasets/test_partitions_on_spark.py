"""Partition columns on Spark: the types that it infers, and its records, are those of the search on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.partition_types import NULL, TYPES

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")]


def test_the_types_are_those_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.pandas.types import from_arrow_type

    for number, (values, kind) in enumerate(TYPES.items()):
        for value in values:
            directory = tmp_path / str(number) / f"p={value.replace(':', '%3A')}"
            directory.mkdir(parents=True)
            pq.write_table(pa.table({"id": [1]}), directory / "a.parquet")
        inferred = spark.read.parquet(str(tmp_path / str(number))).schema["p"].dataType
        assert inferred == from_arrow_type(kind, prefer_timestamp_ntz=False), values


def test_records_are_those_of_spark_and_of_the_search_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = [(1, "2024-01-01", "a/b"), (1, "2024-01-02", "ü"), (1, None, None), (2, "2024-01-01", "a/b")]
    frame = spark.createDataFrame(rows, "id int, day string, x string")
    frame.write.partitionBy("day", "x").parquet(str(tmp_path / "lake"))
    for at, directory in enumerate(sorted((tmp_path / "lake").glob("*/*"))):
        pq.write_table(pa.table({"day": [at], "id": pa.array([1], pa.int32())}), directory / "both.parquet")
    plain = tmp_path / "lake"
    own = spark.read.schema("id int, day date, x string").parquet(str(plain)).where("id = 1").toArrow()
    expected = sorted(map(str, own.select(["id", "day", "x"]).to_pylist()))
    assert NULL in str(sorted(plain.glob("*/*")))
    here = [row for batch in bloomcli.find(plain, "1", column="id") for row in batch.column("record").to_pylist()]
    assert sorted(str({name: row[name] for name in ("id", "day", "x")}) for row in here) == expected
    found = bloom_spark.find(spark, plain, 1, column="id").select("record.id", "record.day", "record.x")
    assert sorted(map(str, found.toArrow().to_pylist())) == expected
    through = bloomcli.find(plain, "1", column="id", select=["day"], session=spark)
    assert sorted(row["day"] for b in through for row in b.column("record").to_pylist() if row["day"]) == sorted(
        row["day"] for row in here if row["day"]
    )
    only = bloom_spark.find(spark, plain, 1, column="id", select=["x"]).select("record.*").columns
    assert only == ["x"]
    with pytest.raises(UsageError, match="x is a partition column"):
        bloom_spark.find(spark, plain, "ü", column="x")
