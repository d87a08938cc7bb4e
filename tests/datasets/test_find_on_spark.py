"""find on Spark: frames that join, values that are broadcast and values that aren't, indexes, partition columns, and
the command line's rows. The rows are those of Spark's own scan, or of the search on this machine."""

from __future__ import annotations

import json
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import orc
from support import mosaicfiles
from support.found_lake import FILES, ROWS, made
from support.partition_types import NULL
from support.partition_types import TYPES as PARTITION_TYPES

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.datasets import spark_find
from bloomcli.errors import UnknownColumn, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of `support.found_lake`, for tests that don't change it."""
    return made(tmp_path_factory.mktemp("lake"))


def test_a_frame_of_values_joins_with_the_rows_that_have_them(spark: SparkSession, unchanged: Path) -> None:
    values = spark.createDataFrame([(5,), (4000,), (4000,), (7999,), (123_456,), (None,)], "wanted int")
    found = bloom_spark.find(spark, unchanged, values, column="id", select=["id", "place"])
    kinds = {field.name: field.dataType.simpleString() for field in found.schema}
    assert kinds == {
        "path": "string",
        "stripe": "bigint",
        "row_group": "bigint",
        "row": "bigint",
        "value": "int",
        "record": "struct<id:bigint,place:struct<city:string,zip:bigint>>",
    }
    mine = found.join(values.distinct(), found.value == values.wanted).collect()
    local = bloomcli.find(unchanged, [5, 4000, 7999], column="id", select=["id", "place"])
    theirs = [row for batch in local for row in batch.to_pylist()]
    assert sorted((row.path, row.row_group, row.row, row.wanted, row.record.place.zip) for row in mine) == sorted(
        (row["path"], row["row_group"], row["row"], int(row["value"]), row["record"]["place"]["zip"])
        for row in theirs
    )
    names = spark.createDataFrame([("name 3",), ("nobody",)], "name string")
    assert bloom_spark.find(spark, [str(unchanged)], names, column="name", select="id").count() == FILES * ROWS // 10


def test_files_of_other_types_are_widened_and_others_end_the_query(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    kinds: dict[str, Any] = {"a": pa.int64(), "b": pa.int32()}
    for name, kind in kinds.items():
        pq.write_table(pa.table({"id": pa.array([1, 2], kind), name: ["x", "y"]}), tmp_path / f"{name}.parquet")
    values = spark.createDataFrame([(2,)], "id bigint")
    rows = bloom_spark.find(spark, tmp_path, values, column="id").orderBy("path").collect()
    assert [row.record.asDict() for row in rows] == [{"id": 2, "a": "y"}, {"id": 2, "a": None}]
    pq.write_table(pa.table({"id": ["1", "2"]}), tmp_path / "c.parquet")
    with pytest.raises(PySparkException, match=r"c\.parquet: its column id is string, which isn't read as int64"):
        bloom_spark.find(spark, tmp_path, values, column="id").collect()


def test_what_can_not_be_searched_is_an_error_before_any_job(spark: SparkSession, unchanged: Path) -> None:
    values = spark.createDataFrame([(2, 3)], "id bigint, other bigint")
    with pytest.raises(UsageError, match="has 2 columns"):
        bloom_spark.find(spark, unchanged, values, column="id")
    with pytest.raises(UnknownColumn, match="no column 'nowhere' to select"):
        bloom_spark.find(spark, unchanged, values, column="id", select=["nowhere"], values_column="id")
    with pytest.raises(UsageError, match="values of type array"):
        bloom_spark.find(spark, unchanged, values.selectExpr("array(id) as ids"), column="id")
    assert bloom_spark.find(spark, unchanged, values, column="id", values_column="other", select=["id"]).count() == 1


def test_the_command_line_gives_the_same_rows_on_spark(
    spark: SparkSession, unchanged: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(map(str, range(0, 12_000, 7))))
    search = ["find", "--values-from", str(ids), str(unchanged), "-c", "id"]
    for given in (["-f", "jsonl"], ["--files-only"], ["--maybe"]):
        said = []
        for engine in ("local", "spark"):
            assert cli([*search, *given, "--engine", engine]) == 0
            said.append(capfd.readouterr().out)
        assert said[0] == said[1], given
    for wrong in (["--engine", "spark", "--jobs", "2"], ["--master", "local[2]"]):
        assert cli([*search, *wrong]) == 2


def test_a_session_searches_for_the_library_function(spark: SparkSession, unchanged: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    found = bloomcli.find([unchanged, tmp_path], ["5", "4000", "04000", "-1"], column="id", session=spark)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert sorted(row["value"] for row in rows) == ["4000", "5"]
    assert (found.report.failed, found.report.rows, found.report.exit_code) == (1, 2, 3)
    assert {one.value: one.rows for one in found.report.by_value} == {"5": 1, "4000": 1, "04000": 1, "-1": 0}
    assert found.report.missing == ("-1",)
    assert "bad.parquet" in str(found.report.errors[0].error)


def test_values_of_python_are_a_frame_of_their_texts(spark: SparkSession, unchanged: Path) -> None:
    for values in (["5", 4000], [5, "4000"], (5, 4000, 5)):
        rows = bloom_spark.find(spark, unchanged, values, column="id", select="id").collect()
        assert sorted((row.value, row.record.id) for row in rows) == [("4000", 4000), ("5", 5)]
    assert bloom_spark.find(spark, unchanged, "name 3", column="name", select="id").count() == FILES * ROWS // 10
    with pytest.raises(UsageError, match="no values to find"):
        bloom_spark.find(spark, unchanged, [], column="id")
    with pytest.raises(UsageError, match="not object"):
        bloom_spark.find(spark, unchanged, [object()], column="id")


def test_the_files_of_a_table_are_searched_only_as_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table"
    write_deltalake(table, pa.table({"id": list(range(10))}))
    DeltaTable(table).delete("id = 5")
    values = spark.createDataFrame([(5,)], "id bigint")
    with pytest.raises(UsageError, match="it is a Delta table"):
        bloom_spark.find(spark, table, values, column="id")
    assert bloom_spark.find(spark, table, values, column="id", as_files=True).count() == 1
    words = ["find", "5", str(table), "-c", "id", "--engine", "spark"]
    assert cli(words) == 2
    assert "--as-files searches" in capsys.readouterr().err
    assert cli([*words, "--as-files"]) == 0
    assert cli(["inspect", str(table), "--engine", "spark"]) == 0
    assert f"note: {table} is a Delta table" in capsys.readouterr().err


WAYS = ["on the driver", "on executors"]
"""How values reach executors: collected by the driver, or not."""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return made(tmp_path / "lake")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "on executors":
        monkeypatch.setattr(spark_find, "_SHARED_PIECES", 1)
        monkeypatch.setattr(spark_find, "SHARED_BYTES", 800)
    return str(request.param)


def scanned(spark: SparkSession, lake: Path, values: DataFrame) -> list[int]:
    """The ids that Spark's own join finds."""
    rows = spark.read.parquet(str(lake)).join(values, "id").select("id").collect()
    return sorted(row.id for row in rows)


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row.record.id for row in frame.collect())


def test_the_rows_are_those_of_spark_s_join_however_values_reach_executors(
    spark: SparkSession, unchanged: Path, way: str
) -> None:
    values = spark.range(-500, 20_000, 3, 3).unionByName(spark.range(-500, 4000, 3, 2)).cache()
    values.count()
    expected = scanned(spark, unchanged, values.distinct())
    found = bloom_spark.find(spark, unchanged, values, column="id", select=["id"])
    assert ids_of(found) == expected
    assert len(expected) == FILES * ROWS // 3 + 1
    assert ("Scan ExistingRDD" in found._jdf.queryExecution().toString()) == (way == "on executors")
    nothing = bloom_spark.find(spark, unchanged, values.where("id > 30000"), column="id")
    assert nothing.collect() == []


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_values_of_other_types_are_found_however_they_reach_executors(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    columns = {
        "text": pa.array([f"t{n}" for n in range(600)]),
        "at": pa.array(range(600), pa.timestamp("us", "UTC")),
        "day": pa.array(range(600), pa.date32()),
        "raw": pa.array([bytes([n % 256, n // 256]) for n in range(600)]),
        "price": pa.array([Decimal(n) / 4 for n in range(600)], pa.decimal128(9, 2)),
        "half": pa.array([n / 2 for n in range(600)]),
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet", row_group_size=100)
    whole = spark.read.parquet(str(tmp_path))
    for name in columns:
        values = whole.select(name).where(f"hash({name}) % 2 = 0").cache()
        values.count()
        found = bloom_spark.find(spark, tmp_path, values, column=name, select=[name])
        expected = values.distinct().count()
        joined = found.join(values.distinct(), found.value == values[name])
        assert joined.where(f"record.{name} = value").count() == expected > 100, name


def test_nan_in_a_frame_is_found_as_by_spark_s_join_and_null_is_not(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    column = pa.array([1.0, math.nan, None, 2.0, math.nan])
    pq.write_table(pa.table({"x": column}), tmp_path / "f.parquet")
    values = spark.createDataFrame(pa.table({"x": [math.nan, 1.0, None]}))
    expected = spark.read.parquet(str(tmp_path)).join(values, "x").count()
    for given in (values, pa.array([math.nan, 1.0, None]), ["nan", 1.0]):
        rows = bloom_spark.find(spark, tmp_path, given, column="x").collect()
        assert sorted(row.row for row in rows) == [0, 1, 4], given
    assert expected == 3


def test_searches_for_other_values_and_types_do_not_share_what_a_worker_has_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers = pa.array(range(600), pa.int64())
    for part in range(4):
        shifted = pc.add(numbers, 600 * part)
        columns = {"id": shifted, "text": shifted.cast(pa.string())}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet", row_group_size=100)
    even = spark.range(0, 2400, 2)
    odd = spark.range(1, 2400, 2)
    texts = spark.range(0, 2400, 3).selectExpr("CAST(id AS STRING) AS text")
    by_id = bloom_spark.find(spark, tmp_path, even, column="id")
    others = bloom_spark.find(spark, tmp_path, odd, column="id")
    by_text = bloom_spark.find(spark, tmp_path, texts, column="text")
    for _ in range(2):  # the same workers run tasks of all of them in turns
        assert ids_of(by_id) == list(range(0, 2400, 2))
        assert ids_of(others) == list(range(1, 2400, 2))
        assert ids_of(by_text) == list(range(0, 2400, 3))
    both = by_id.selectExpr("record.id").unionByName(others.selectExpr("record.id"))
    assert sorted(row.id for row in both.collect()) == list(range(2400))
    joined = by_id.alias("a").join(by_text.alias("b"), "row").where("a.record.id = b.record.id")
    assert joined.count() == 400


def settle(path: Path, data: bytes) -> None:
    """Change bytes of a file without changing its size and time."""
    before = path.stat()
    path.write_bytes(data.ljust(before.st_size, b"x")[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("way", ["on the driver"], indirect=True)
def test_files_that_an_index_rules_out_are_not_opened(
    spark: SparkSession, lake: Path, tmp_path: Path, way: str
) -> None:
    index = tmp_path / "lake.bloom-index"
    bloomcli.index_build(lake, ["id"], output=index)
    of_file = {row["id"]: at for at in range(FILES) for row in pq.read_table(_part(lake, at)).to_pylist()}
    here = [number for number in range(FILES * ROWS) if of_file[number] == 1][:9]
    settle(_part(lake, 3), b"this file can't be read")
    values = spark.createDataFrame([(number,) for number in [*here, -1, -2]], "id bigint")
    assert ids_of(bloom_spark.find(spark, lake, values, column="id", index=index)) == sorted(here)
    nothing = spark.createDataFrame([(number,) for number in range(10**6, 10**6 + 5)], "id bigint")
    assert bloom_spark.find(spark, lake, nothing, column="id", index=index).collect() == []


def _part(lake: Path, at: int) -> Path:
    return lake / f"day={at}/part.parquet"


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_an_index_that_is_out_of_date_loses_no_row(spark: SparkSession, lake: Path, tmp_path: Path, way: str) -> None:
    index = tmp_path / "lake.bloom-index"
    bloomcli.index_build(lake, ["id"], output=index)
    changed = pq.read_table(_part(lake, 2))
    ids = pa.array(range(50_000, 50_000 + ROWS))
    pq.write_table(changed.set_column(0, "id", ids), _part(lake, 2), row_group_size=500)
    (lake / "day=9").mkdir()
    pq.write_table(changed.slice(0, 700).set_column(0, "id", ids[:700]), lake / "day=9/new.parquet")
    _part(lake, 3).unlink()
    values = spark.range(0, 60_000, 7, 2)
    expected = scanned(spark, lake, values)
    assert ids_of(bloom_spark.find(spark, lake, values, column="id", index=index)) == expected
    assert len(expected) > ROWS // 7


def test_an_index_without_the_column_is_an_error(spark: SparkSession, unchanged: Path, tmp_path: Path) -> None:
    bloomcli.index_build(unchanged, ["name"], output=tmp_path / "names.bloom-index")
    values = spark.range(3)
    with pytest.raises(UsageError, match="the index has no column 'id', only name"):
        bloom_spark.find(spark, unchanged, values, column="id", index=tmp_path / "names.bloom-index")


def test_the_command_line_counts_what_the_index_says_as_the_local_engine_does(
    spark: SparkSession, lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "lake.bloom-index"
    bloomcli.index_build(lake, ["id"], output=index)
    pq.write_table(pq.read_table(_part(lake, 2)), _part(lake, 2), row_group_size=400)
    pq.write_table(pa.table({"id": [5, 6], "name": ["a", "b"]}), lake / "new.parquet")
    for more in ([], ["--maybe"], ["--files-only"]):
        reports = []
        for engine in ("local", "spark"):
            capfd.readouterr()
            words = ["find", "-v", "5", "-v", "900", str(lake), "-c", "id", "--index", str(index), "-f", "json"]
            assert cli([*words, *more, "--engine", engine]) == 0
            report = json.loads(capfd.readouterr().out)
            counts = ("rows", "files", "files_found", "files_unopened", "files_not_indexed", "files_changed", "index")
            reports.append({key: report.get(key, report.get("report", {}).get(key)) for key in counts})
        assert reports[0] == reports[1], more
        assert (reports[0]["files_not_indexed"], reports[0]["files_changed"]) == (1, 1)
    found = bloomcli.find(lake, [5, 900], column="id", session=spark, index=index)
    assert sum(batch.num_rows for batch in found) == found.report.rows == 3
    assert found.report.files_unopened > 0


TYPES: dict[str, Any] = {
    "id": pa.array(range(3000), pa.int64()),
    "name": pa.array([f"n{n}" for n in range(3000)]),
    "day": pa.array(range(3000), pa.date32()),
    "score": pa.array([n / 4 for n in range(3000)]),
}


def test_a_frame_has_the_rows_of_orc_files(spark: SparkSession, tmp_path: Path) -> None:
    more = {"tags": pa.array([[n, n + 1] for n in range(3000)]), "at": pa.array(range(3000), pa.timestamp("us"))}
    for part in range(3):
        table = pa.table(TYPES | more).slice(part * 1000, 1000)
        orc.write_table(table, tmp_path / f"{part}.orc", row_index_stride=1000, bloom_filter_columns=[0])
    values = spark.range(-7, 3500, 7, 2)
    found = bloom_spark.find(spark, tmp_path, values, column="id").select("record.*")
    scan = spark.read.orc(str(tmp_path)).join(values, "id")
    chosen = ["id", "name", "day", "score", "tags"]
    assert sorted(map(str, found.select(chosen).collect())) == sorted(map(str, scan.select(chosen).collect()))
    assert found.count() == 429
    row = found.where("id = 7").collect()[0]
    assert row["at"].isoformat() == "1970-01-01T00:00:00.000007"


def test_a_frame_has_the_rows_of_mosaic_files(spark: SparkSession, tmp_path: Path) -> None:
    for part in range(3):
        mosaicfiles.write(tmp_path / f"{part}.mosaic", pa.table(TYPES).slice(part * 1000, 1000), batch=300)
    values = spark.range(-7, 3500, 7, 2)
    found = bloom_spark.find(spark, tmp_path, values, column="id")
    whole = pa.concat_tables(mosaicfiles.read(path) for path in sorted(tmp_path.glob("*.mosaic")))
    expected = [row for row in whole.to_pylist() if row["id"] % 7 == 0]
    assert sorted((row.record.asDict() for row in found.collect()), key=lambda row: row["id"]) == expected


def test_columns_of_other_libraries_are_values_with_their_types(spark: SparkSession, unchanged: Path) -> None:
    columns: list[tuple[Any, str]] = [
        (pa.array([5, None, 4000]), "bigint"),
        (pa.array([5, 4000], pa.uint16()), "int"),
        (pd.Series([5, 4000]), "bigint"),
        (pl.DataFrame({"n": [5, 4000, None]}), "bigint"),
        (pa.table({"n": pa.array([5, 4000]).dictionary_encode()}), "bigint"),
        (pl.Series(["5", "4000"]), "string"),
        (pd.DataFrame({"n": ["5", "4000"]}), "string"),
        ([5, 4000], "string"),
    ]
    for values, kind in columns:
        found = bloom_spark.find(spark, unchanged, values, column="id")
        assert (ids_of(found), dict(found.dtypes)["value"]) == ([5, 4000], kind)
    frame = pl.DataFrame({"a": [5], "b": [4000]})
    assert ids_of(bloom_spark.find(spark, unchanged, frame, column="id", values_column="b")) == [4000]
    with pytest.raises(UsageError, match="one of 2 columns"):
        bloom_spark.find(spark, unchanged, frame, column="id")
    rows = bloom_spark.probe(spark, unchanged, frame, column="id", values_column="b").collect()
    assert [[total.value for total in row.totals] for row in rows if row.totals] == [["4000"]] * FILES
    with pytest.raises(UsageError, match="a frame of Spark is searched on its executors"):
        bloom_spark.probe(spark, unchanged, spark.range(3), column="id")


def test_int96_timestamps_beyond_nanoseconds_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    times = "if(id % 2 = 0, timestamp'9999-12-31 01:02:03', timestamp'2026-01-01 00:00:00.123456') AS time"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.range(10).selectExpr("id", times).coalesce(1).write.parquet(path)
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    found = bloom_spark.find(spark, path, spark.createDataFrame([(2,), (3,)], "id long"), column="id")
    assert (
        found.select("record.*").sort("id").collect()
        == spark.read.parquet(path).where("id IN (2, 3)").sort("id").collect()
    )


def test_the_types_of_partition_columns_are_those_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.pandas.types import from_arrow_type

    for number, (values, kind) in enumerate(PARTITION_TYPES.items()):
        for value in values:
            directory = tmp_path / str(number) / f"p={value.replace(':', '%3A')}"
            directory.mkdir(parents=True)
            pq.write_table(pa.table({"id": [1]}), directory / "a.parquet")
        inferred = spark.read.parquet(str(tmp_path / str(number))).schema["p"].dataType
        assert inferred == from_arrow_type(kind, prefer_timestamp_ntz=False), values


def test_records_with_partition_columns_are_those_of_spark_and_of_the_search_on_this_machine(
    spark: SparkSession, tmp_path: Path
) -> None:
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
