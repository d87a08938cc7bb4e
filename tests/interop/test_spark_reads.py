"""Spark and parquet-java read the filters and the types that we wrote: what Parquet alone has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import xxhash
from support import blooms
from support.spark_lookups import GROUP, NUMBERS, ROWS, Files, cell, pushdown, scan
from support.sparkfiles import NOON, timestamps_as, write
from support.tables import int96, packed

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]


@pytest.fixture
def files(looked_up: Callable[[str], Files]) -> Files:
    """Rows as Parquet."""
    return looked_up("parquet")


def signed(plain: bytes) -> int:
    """XXH64 as Java's long."""
    value = xxhash.xxh64_intdigest(plain)
    return value - (value >> 63 << 64)


@pytest.mark.parametrize(
    ("column", "plain"),
    [
        ("id", packed("<q")),
        ("small", packed("<i")),
        ("name", str.encode),
        ("user.email", str.encode),
        ("d", packed("<d")),
        ("f", packed("<f")),
        ("blob", bytes),
    ],
)
def test_parquet_javas_own_reader_finds_every_value(
    spark: SparkSession, files: Files, column: str, plain: Callable[[Any], bytes]
) -> None:
    jvm = spark._jvm
    hadoop = jvm.org.apache.parquet.hadoop
    path = jvm.org.apache.hadoop.fs.Path(str(files.ours))
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(path, conf))
    try:
        blocks = reader.getFooter().getBlocks()
        assert len(blocks) == ROWS // GROUP
        for group, block in enumerate(blocks):
            (chunk,) = [c for c in block.getColumns() if c.getPath().toDotString() == column]
            bloom = reader.getBloomFilterDataReader(block).readBloomFilter(chunk)
            numbers = NUMBERS[group * GROUP :][:GROUP]
            assert all(bloom.findHash(signed(plain(cell(column, n)))) for n in numbers)
            assert sum(bloom.findHash(signed(plain(cell(column, n + 1)))) for n in numbers) < 5
            assert bloom.getBitsetSize() == len(bloomcli.dump(files.ours, column=column, row_group=group).bitset)
    finally:
        reader.close()


def test_int96_timestamps_are_read_as_before(spark: SparkSession, tmp_path: Path) -> None:
    timestamps_as(spark, "INT96")
    moments = [NOON + dt.timedelta(hours=i) for i in range(300)]
    bare = write(spark.createDataFrame([(m,) for m in moments], "moment timestamp"), tmp_path / "bare.parquet")
    timestamps_as(spark, "TIMESTAMP_MICROS")
    ours = tmp_path / "ours.parquet"
    bloomcli.add(bare, ["moment"], output=ours)
    pushdown(spark, "parquet", True)
    rows, _ = scan(spark, ours, "moment = timestamp'2024-03-01 00:00:00'")
    assert len(rows) == 1
    found = bloomcli.dump(ours).bitset
    assert found == blooms.build([int96(m.replace(tzinfo=None)) for m in moments], len(found))


def test_lookups_by_the_path_in_a_variant_find_what_variant_get_finds(
    spark: SparkSession, fixtures: Path, tmp_path: Path
) -> None:
    """Of values of other types, which `variant_get` converts, the report says that they aren't searched."""
    file = bloomcli.add(
        fixtures / "parquet" / "spark_variant.parquet", ["v:$['a.b']"], output=tmp_path / "variant.parquet"
    ).output
    pushdown(spark, "parquet", True)
    cases = [
        ("v:$.user.id", "bigint", ["42", "199", "200", "201", "299", "5000"], ["5000"]),
        ("v:$.user.name", "string", ["n0", "n201", "n299", "nobody"], []),
        ("v:$['a.b']", "string", ["q0", "q202", "q299", "a.b"], []),
    ]
    for column, kind, values, converted in cases:
        path = column.partition(":")[2].replace("'", '"')
        for value in values:
            got = spark.read.parquet(str(file)).where(f"try_variant_get(v, '{path}', '{kind}') = '{value}'")
            found = bloomcli.find(str(file), [value], column=column, select=["n"], jobs=1)
            ours = [row["record"]["n"] for batch in found for row in batch.to_pylist()]
            if value in converted:
                assert (ours, found.report.other_types, got.count()) == ([], 1, 1)
            else:
                assert ours == [row.n for row in got.collect()], (column, value)
