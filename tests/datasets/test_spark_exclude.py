"""exclude= in the functions for Spark, and the option of its data source: the same columns stay out on executors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli import spark as bloom_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for name in ("a", "b"):
        table = pa.table({"id": range(50), "name": [f"n{i}" for i in range(50)], "secret": ["s"] * 50})
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def filtered(lake: Path) -> list[set[str]]:
    return [{f.column for f in bloomcli.inspect(path).filters} for path in sorted(lake.glob("*.parquet"))]


def test_excluded_columns_stay_out_on_executors(spark: SparkSession, lake: Path) -> None:
    rows = bloom_spark.add(spark, lake, ["*"], exclude="secret", in_place=True).collect()
    assert [(row.status, row.columns) for row in rows] == [("done", 2)] * 2
    assert filtered(lake) == [{"id", "name"}] * 2
    assert [row.filters for row in bloom_spark.inspect(spark, lake, exclude=["n*"]).collect()] == [1, 1]
    checked = bloom_spark.validate(spark, lake, exclude=["id", "secret"], require=["*"], deep=True).collect()
    assert [(row.status, row.filters, row.values_checked) for row in checked] == [("done", 1, 50)] * 2
    assert [row.status for row in bloom_spark.probe(spark, lake, 3, exclude="name").collect()] == ["done"] * 2
    report = bloomcli.gate(lake, session=spark, exclude=["id"], require=["*"])
    assert {f.column for f in report.findings} == {"secret"}
    spark.dataSource.register(bloom_spark.BloomFilters)
    frame = spark.read.format("bloom").option("exclude", "id, secret").load(str(lake))
    assert {row.column for row in frame.select("column").collect()} == {"name"}
    bloom_spark.fold(spark, lake, exclude=["id", "name", "secret"], in_place=True).collect()
    bloom_spark.remove(spark, lake, exclude=["id"], in_place=True).collect()
    assert filtered(lake) == [{"id"}] * 2
