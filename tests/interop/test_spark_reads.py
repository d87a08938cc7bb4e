"""Spark reads what we wrote: the same rows with and without pushdown, and fewer rows read with our filters."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import xxhash
from support import blooms
from support.sparkfiles import NOON, timestamps_as, write
from support.tables import int96, packed

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ROWS, GROUP = 2000, 500
SCHEMA = (
    "id bigint, small int, name string, user struct<email:string>, price decimal(9,2), huge decimal(30,4), "
    "moment timestamp, day date, d double, f float, blob binary"
)
COLUMNS = ["id", "small", "name", "user.email", "price", "huge", "moment", "day", "d", "f", "blob"]


def row(n: int) -> tuple[Any, ...]:
    """The row of an even number. Rows of odd numbers are between existing rows, and absent."""
    text = f"{n:06}"
    moment = NOON + dt.timedelta(minutes=n)
    money = Decimal(n * 3)
    day = NOON.date() + dt.timedelta(days=n)
    return n, n, f"name {text}", (text,), money / 100, money * 10**12, moment, day, n + 0.5, n + 0.25, text.encode()


class Files(NamedTuple):
    """The same rows in files without and with filters."""

    bare: Path
    ours: Path


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Files:
    timestamps_as(spark, "TIMESTAMP_MICROS")
    folder = tmp_path_factory.mktemp("reads")
    frame = spark.createDataFrame([row(i * 1237 % ROWS * 2) for i in range(ROWS)], SCHEMA)
    options = {"parquet__enable__dictionary": False, "parquet__block__row__count__limit": GROUP}
    bare = write(frame, folder / "bare.parquet", **options)
    bloomcli.add(bare, COLUMNS, output=folder / "ours.parquet", fpp=0.0001)
    assert pq.read_metadata(bare).num_row_groups == ROWS // GROUP
    return Files(bare, folder / "ours.parquet")


def pushdown(spark: SparkSession, on: bool) -> None:
    """Whether filters go down to parquet-java."""
    spark.conf.set("spark.sql.parquet.filterPushdown", str(on).lower())


def scan(spark: SparkSession, path: Path, condition: Any) -> tuple[list[Any], int]:
    """The rows of a query, and how many rows its scan read, by Spark's own metrics."""
    frame = spark.read.parquet(str(path)).where(condition)
    rows = sorted(frame.collect())
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    leaves = plan.collectLeaves()
    assert leaves.length() == 1
    return rows, leaves.apply(0).metrics().apply("numOutputRows").value()


def equals(spark: SparkSession, column: str, value: Any) -> Any:
    """The condition column = value, with the column's own type."""
    from pyspark.sql import functions

    kinds = {"small": "int", "price": "decimal(9,2)", "huge": "decimal(30,4)", "f": "float"}
    literal = functions.lit(value)
    return functions.col(column) == (literal.cast(kinds[column]) if column in kinds else literal)


def cell(column: str, n: int) -> Any:
    """The value of a column in the row of that number."""
    value = row(n)[COLUMNS.index(column)]
    return value[0] if column == "user.email" else value


@pytest.mark.parametrize("column", COLUMNS)
def test_the_same_rows_come_with_pushdown_on_and_off(spark: SparkSession, files: Files, column: str) -> None:
    for n, count in ((0, 1), (1718, 1), (ROWS * 2 - 2, 1), (1719, 0), (3, 0)):
        condition = equals(spark, column, cell(column, n))
        pushdown(spark, False)
        expected, everything = scan(spark, files.bare, condition)
        unpushed, read = scan(spark, files.ours, condition)
        pushdown(spark, True)
        pushed, _ = scan(spark, files.ours, condition)
        assert (len(expected), everything, read) == (count, ROWS, ROWS)
        assert expected == unpushed == pushed


@pytest.mark.parametrize("column", COLUMNS)
def test_the_scan_reads_fewer_rows_than_without_filters(spark: SparkSession, files: Files, column: str) -> None:
    pushdown(spark, True)
    absent = equals(spark, column, cell(column, 1719))
    assert scan(spark, files.bare, absent) == ([], ROWS)
    assert scan(spark, files.ours, absent) == ([], 0)
    present = equals(spark, column, cell(column, 1718))
    assert scan(spark, files.bare, present)[1] == ROWS
    assert scan(spark, files.ours, present)[1] == GROUP


def test_a_list_of_values_is_looked_up_and_whole_tables_are_the_same(spark: SparkSession, files: Files) -> None:
    pushdown(spark, True)
    rows, read = scan(spark, files.ours, "id in (1, 3, 5, 1719)")
    assert (rows, read) == ([], 0)
    rows, read = scan(spark, files.ours, "name = 'name 000002' or id = 2001")
    assert (len(rows), read) == (1, GROUP)
    bare, ours = (spark.read.parquet(str(path)) for path in files)
    assert ours.count() == ROWS
    assert ours.exceptAll(bare).count() == bare.exceptAll(ours).count() == 0


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("wanted", ["0.0", "-0.0"])
def test_a_zero_of_either_sign_finds_a_stored_zero_of_either_sign(
    spark: SparkSession, tmp_path: Path, kind: str, stored: float, wanted: str
) -> None:
    rows = [(stored if i == 700 else i - 700.0,) for i in range(1500)]
    options = {"parquet__enable__dictionary": False, "parquet__block__row__count__limit": GROUP}
    bare = write(spark.createDataFrame(rows, f"d {kind}"), tmp_path / "bare.parquet", **options)
    ours = tmp_path / "ours.parquet"
    bloomcli.add(bare, ["d"], output=ours, fpp=0.0001)
    pushdown(spark, True)
    rows_found, read = scan(spark, ours, f"d = cast('{wanted}' as {kind})")
    assert ([r.d for r in rows_found], read) == ([0.0], GROUP)
    assert scan(spark, ours, f"d = cast('0.3' as {kind})") == ([], 0)


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
            numbers = [i * 1237 % ROWS * 2 for i in range(group * GROUP, (group + 1) * GROUP)]
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
    pushdown(spark, True)
    rows, _ = scan(spark, ours, "moment = timestamp'2024-03-01 00:00:00'")
    assert len(rows) == 1
    found = bloomcli.dump(ours).bitset
    assert found == blooms.build([int96(m.replace(tzinfo=None)) for m in moments], len(found))


def test_a_file_that_spark_wrote_with_a_checksum_file_is_rewritten_in_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    spark.range(1000).coalesce(1).write.parquet(str(folder))
    (part,) = folder.glob("part-*.parquet")
    sidecar = part.with_name(f".{part.name}.crc")
    stale = sidecar.read_bytes()
    bloomcli.add(part, ["id"], in_place=True)
    pushdown(spark, True)
    assert spark.read.parquet(str(folder)).where("id = 77").count() == 1
    assert spark.read.parquet(str(folder)).count() == 1000
    assert sidecar.read_bytes() != stale

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / sidecar.name).write_bytes(stale)
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.parquet(str(broken)).count()


def test_lookups_by_the_path_in_a_variant_find_what_variant_get_finds(
    spark: SparkSession, fixtures: Path, tmp_path: Path
) -> None:
    """Of values of other types, which `variant_get` converts, the report says that they aren't searched."""
    file = bloomcli.add(
        fixtures / "parquet" / "spark_variant.parquet", ["v:$['a.b']"], output=tmp_path / "variant.parquet"
    ).output
    pushdown(spark, True)
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
