"""find on Spark: frames that join, the command line's rows, and the end of queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.found_lake import FILES, ROWS, made

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.errors import UnknownColumn, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("lake"))


def test_a_frame_of_values_joins_with_the_rows_that_have_them(spark: SparkSession, lake: Path) -> None:
    values = spark.createDataFrame([(5,), (4000,), (4000,), (7999,), (123_456,), (None,)], "wanted int")
    found = bloom_spark.find(spark, lake, values, column="id", select=["id", "place"])
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
    local = bloomcli.find(lake, [5, 4000, 7999], column="id", select=["id", "place"])
    theirs = [row for batch in local for row in batch.to_pylist()]
    assert sorted((row.path, row.row_group, row.row, row.wanted, row.record.place.zip) for row in mine) == sorted(
        (row["path"], row["row_group"], row["row"], int(row["value"]), row["record"]["place"]["zip"])
        for row in theirs
    )
    names = spark.createDataFrame([("name 3",), ("nobody",)], "name string")
    assert bloom_spark.find(spark, [str(lake)], names, column="name", select="id").count() == FILES * ROWS // 10


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


def test_what_can_not_be_searched_is_an_error_before_any_job(spark: SparkSession, lake: Path) -> None:
    values = spark.createDataFrame([(2, 3)], "id bigint, other bigint")
    with pytest.raises(UsageError, match="has 2 columns"):
        bloom_spark.find(spark, lake, values, column="id")
    with pytest.raises(UnknownColumn, match="no column 'nowhere' to select"):
        bloom_spark.find(spark, lake, values, column="id", select=["nowhere"], values_column="id")
    with pytest.raises(UsageError, match="values of type array"):
        bloom_spark.find(spark, lake, values.selectExpr("array(id) as ids"), column="id")
    assert bloom_spark.find(spark, lake, values, column="id", values_column="other", select=["id"]).count() == 1


def test_the_command_line_gives_the_same_rows_on_spark(
    spark: SparkSession, lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(map(str, range(0, 12_000, 7))))
    for given in (["-f", "jsonl"], ["--files-only"], ["--maybe"]):
        said = []
        for engine in ("local", "spark"):
            capfd.readouterr()
            words = ["--values-from", str(ids), str(lake), "-c", "id", *given, "--engine", engine]
            assert cli(["find", *words]) == 0
            out, _ = capfd.readouterr()
            said.append(out)
        assert said[0] == said[1], given
    assert cli(["find", "1", str(lake), "-c", "id", "--engine", "spark", "--jobs", "2"]) == 2
    assert cli(["find", "1", str(lake), "-c", "id", "--master", "local[2]"]) == 2


def test_a_session_searches_for_the_library_function(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    found = bloomcli.find([lake, tmp_path], ["5", "4000", "04000", "-1"], column="id", session=spark)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert sorted(row["value"] for row in rows) == ["4000", "5"]
    assert (found.report.failed, found.report.rows, found.report.exit_code) == (1, 2, 3)
    assert {one.value: one.rows for one in found.report.by_value} == {"5": 1, "4000": 1, "04000": 1, "-1": 0}
    assert found.report.missing == ("-1",)
    assert "bad.parquet" in str(found.report.errors[0].error)


def test_values_of_python_are_a_frame_of_their_texts(spark: SparkSession, lake: Path) -> None:
    for values in (["5", 4000], [5, "4000"], (5, 4000, 5)):
        rows = bloom_spark.find(spark, lake, values, column="id", select="id").collect()
        assert sorted((row.value, row.record.id) for row in rows) == [("4000", 4000), ("5", 5)]
    assert bloom_spark.find(spark, lake, "name 3", column="name", select="id").count() == FILES * ROWS // 10
    with pytest.raises(UsageError, match="no values to find"):
        bloom_spark.find(spark, lake, [], column="id")
    with pytest.raises(UsageError, match="not object"):
        bloom_spark.find(spark, lake, [object()], column="id")


def test_the_files_of_a_table_are_searched_only_as_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from deltalake import DeltaTable, write_deltalake

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
