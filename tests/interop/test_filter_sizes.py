"""Filters whose number of blocks is no power of two, as the specification allows and some writers make them.

The tests build them from the specification, and by `bloom add --size tight` and `bloom fold --size tight`, and let
each engine that runs here look values up: every row, and no row group for what is absent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from support import blooms, engine_scans, other_writers

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

BLOCKS = (1, 3, 29, 65_537)
"""Blocks of 32 bytes; 29 is the least for 500 values at which no value asked for here is there by chance."""
NAMED = ["spark", "duckdb", "datafusion", "clickhouse"]
MADE = ("added", "folded")
"""The commands of `bloom` that make filters of such sizes."""
ENCODE: dict[str, Callable[[Any], bytes]] = {
    "int64": lambda value: struct.pack("<q", value),
    "int32": lambda value: struct.pack("<i", value),
    "float64": lambda value: struct.pack("<d", value),
    "string": str.encode,
    "fixed": bytes,
}
LOOKED_UP = {
    "duckdb": tuple(ENCODE),
    "datafusion": tuple(ENCODE),
    "clickhouse": ("int64", "int32", "string", "fixed"),
    "polars": (),
    "arrow": (),
    "spark": ("int64", "int32", "float64", "string"),
}
PRESENT = tuple(range(0, other_writers.ROWS * 2, 400))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sizes") / "bare.parquet"
    other_writers.arrow(path, 0, list(ENCODE))
    other_writers.arrow(path.with_name("others.parquet"), 1, list(ENCODE))
    return path


def filtered(bare: Path, blocks: int) -> Path:
    """The file with filters of this number of blocks. Made once."""
    path = bare.with_name(f"{blocks}.parquet")
    if not path.exists():
        data, file = bare.read_bytes(), pq.ParquetFile(bare)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for index, column in enumerate(table.column_names):
                if column in ENCODE:
                    values = table[column].drop_null().to_pylist()
                    bitset = blooms.build(map(ENCODE[column], values), blocks * 32)
                    data = blooms.planted(data, group, index, blooms.header(len(bitset)) + bitset)
        path.write_bytes(data)
    return path


def made(bare: Path, how: str) -> Path:
    """The file with tight filters, at a rate at which no value asked for here is there by chance. Made once."""
    path = bare.with_name(f"{how}.parquet")
    if not path.exists():
        if how == "added":
            bloomcli.add(bare, list(ENCODE), output=path, fpp=1e-4, size="tight", readers=NAMED)
        else:
            bloomcli.add(bare, list(ENCODE), output=path, ndv=100_000)
            bloomcli.fold(path, fpp=1e-4, size="tight", readers=NAMED, in_place=True)
        sizes = [fact.bitset_bytes or 0 for fact in bloomcli.inspect(path).filters]
        assert sum(1 for size in sizes if size & (size - 1)) > len(sizes) / 2
        assert bloomcli.validate(path, deep=True, readers=["spark", "duckdb"]).findings == ()
    return path


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, engine_scans.Engine]]:
    with engine_scans.running() as found:
        yield found


@pytest.mark.parametrize("blocks", BLOCKS)
def test_bloom_reads_them(bare: Path, blocks: int) -> None:
    path = filtered(bare, blocks)
    report = bloomcli.validate(path, deep=True)
    assert report.filters_checked == len(ENCODE) * other_writers.ROWS // other_writers.GROUP
    assert [f for f in report.findings if f.id == "value-missing"] == []


@pytest.mark.parametrize(
    ("reader", "blocks"),
    [
        *((reader, blocks) for reader in ("duckdb", "datafusion", "clickhouse") for blocks in (*BLOCKS, *MADE)),
        ("polars", 29),
        ("arrow", 29),
    ],
)
def test_a_reader_finds_every_row_and_skips_what_is_absent(
    bare: Path, engines: dict[str, engine_scans.Engine], reader: str, blocks: int | str
) -> None:
    path = filtered(bare, blocks) if isinstance(blocks, int) else made(bare, blocks)
    others, engine = bare.with_name("others.parquet"), engines[reader]
    for column in ENCODE:
        for number, literal in engine.literals(bare, column, PRESENT).items():
            assert engine.equal(path, column, literal).rows == [number]
        for literal in engine.literals(others, column, (1719, 2001)).values():
            answer = engine.equal(path, column, literal)
            assert answer.rows == []
            if blocks not in (1, 3) and column in LOOKED_UP[reader]:
                assert answer.read == 0, column


@pytest.mark.spark
@pytest.mark.parametrize("blocks", [29, "folded"])
def test_spark_finds_every_row_and_skips_what_is_absent(spark: SparkSession, bare: Path, blocks: int | str) -> None:
    path = filtered(bare, blocks) if isinstance(blocks, int) else made(bare, blocks)
    others, engine = bare.with_name("others.parquet"), engine_scans.Spark(spark)
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    there, between = (engine.every(file, ENCODE) for file in (bare, others))
    for column in ENCODE:
        looked_up = column in LOOKED_UP["spark"]
        for number in (1718, 2048):
            if number in there[column]:
                read = other_writers.GROUP if looked_up else other_writers.ROWS
                assert engine.equal(path, column, there[column][number]) == ([number], read), column
        absent = between[column].get(1719) or between[column][2001]
        assert engine.equal(bare, column, absent) == ([], other_writers.ROWS)
        assert engine.equal(path, column, absent) == ([], 0 if looked_up else other_writers.ROWS), column
