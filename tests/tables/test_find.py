"""find on tables: a snapshot's rows under the table's names, without deleted rows, as in Spark's own scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.iceberg_runs import delete_equal

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WANTED = (1, 2, 3, 150, 151, 152, 250, 251, 9999)


def evolved(spark: SparkSession, version: int) -> str:
    """An Iceberg table with a renamed column, one that was dropped and added again, widened ids and nested names."""
    name = f"ice.db.find_v{version}"
    spark.sql(
        f"create table {name} (id int, name string, note string, place struct<city: string, zip: int>) using iceberg"
        f" tblproperties('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
    )
    place = "named_struct('{}', concat('c', id), 'zip', cast(id as int))"
    rows = f"select cast(id as int), concat('n', id), 'old', {place.format('city')}"
    spark.sql(f"insert into {name} {rows} from range(0, 100, 1, 1)")
    spark.sql(f"alter table {name} alter column id type bigint")
    spark.sql(f"alter table {name} rename column name to label")
    spark.sql(f"alter table {name} rename column place.city to town")
    spark.sql(f"alter table {name} drop column note")
    spark.sql(f"alter table {name} add column note string")
    rows = f"select id, concat('n', id), {place.format('town')}, 'new'"
    for start in (100, 200):
        spark.sql(f"insert into {name} {rows} from range({start}, {start + 100}, 1, 1)")
    return name


@pytest.fixture(scope="module")
def iceberg_v2(spark: SparkSession) -> str:
    """Position deletes, and equality deletes on a column that isn't selected."""
    name = evolved(spark, 2)
    spark.sql(f"delete from {name} where id in (2, 151)")
    delete_equal(spark, name, "label", ["n250"])
    spark.sql(f"insert into {name} select 250, 'n250', null, 'after the delete'")
    return name


@pytest.fixture(scope="module")
def iceberg_v3(spark: SparkSession) -> str:
    """Deletion vectors, one with runs and one without."""
    name = evolved(spark, 3)
    spark.sql(f"delete from {name} where id in (2, 251) or id between 120 and 151")
    return name


@pytest.fixture(scope="module")
def delta(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Partitions, column mapping with a renamed column, and deletion vectors."""
    name = f"delta.`{tmp_path_factory.mktemp('find')}`"
    spark.sql(
        f"create table {name} (id bigint, name string, at timestamp, day date) using delta partitioned by (day)"
        " tblproperties('delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name')"
    )
    for number in range(3):
        rows = f"select id, concat('n', id), timestamp'2026-11-01 10:00:00', date'2026-11-0{number + 1}'"
        spark.sql(f"insert into {name} {rows} from range({number * 100}, {number * 100 + 100}, 1, 1)")
    spark.sql(f"alter table {name} rename column name to label")
    spark.sql(f"delete from {name} where id in (2, 151, 152)")
    return name


def scanned(spark: SparkSession, name: str, column: str, of: str | None = None) -> list[Any]:
    """The rows that Spark's own scan finds."""
    values = ", ".join(f"'n{number}'" if column == "label" else str(number) for number in WANTED)
    return sorted(map(str, spark.sql(f"select * from {of or name} where {column} in ({values})").collect()))


def found(frame: DataFrame) -> list[Any]:
    return sorted(str(row.record) for row in frame.collect())


@pytest.mark.parametrize("kind", ["iceberg_v2", "iceberg_v3", "delta"])
def test_the_rows_are_those_of_the_table_s_own_scan(
    spark: SparkSession, kind: str, request: pytest.FixtureRequest
) -> None:
    name = request.getfixturevalue(kind)
    numbers = spark.createDataFrame([(number,) for number in WANTED], "wanted int")
    by_id = bloom_spark.find_table(spark, name, numbers, column="id")
    expected = scanned(spark, name, "id")
    assert found(by_id) == expected
    assert 4 <= len(expected) < len(WANTED) - 1
    assert by_id.schema["record"].dataType.names == spark.table(name).columns
    joined = by_id.join(numbers, by_id.value == numbers.wanted)
    assert joined.where("record.id = wanted").count() == len(expected)
    labels = numbers.selectExpr("concat('n', wanted) as label")
    by_label = bloom_spark.find(spark, name, labels, column="label", select=["id"])
    assert sorted(row.record.id for row in by_label.collect()) == sorted(row.record.id for row in by_id.collect())


def test_a_row_s_number_is_that_in_its_data_file(spark: SparkSession, iceberg_v2: str) -> None:
    values = spark.createDataFrame([(number,) for number in WANTED], "wanted int")
    frame = bloom_spark.find_table(spark, iceberg_v2, values, column="id", select=["id"])
    mine = {(row.path, row.row, row.record.id) for row in frame.collect()}
    scan = spark.sql(f"select _file, _pos, id from {iceberg_v2} where id in ({', '.join(map(str, WANTED))})")
    assert mine == {(row._file.removeprefix("file:"), row._pos, row.id) for row in scan.collect()}


def test_the_command_line_reads_a_snapshot_and_no_deleted_rows(
    spark: SparkSession, delta: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ids.txt").write_text("\n".join(map(str, WANTED)))

    def call(*arguments: str) -> tuple[int, list[Any], str]:
        capfd.readouterr()
        code = cli(["find", "--values-from", str(tmp_path / "ids.txt"), "-c", "id", *arguments, "-f", "jsonl"])
        out, err = capfd.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    code, rows, err = call("--table", delta, "--engine", "spark")
    assert (code, len(rows)) == (0, len(scanned(spark, delta, "id")))
    assert f"found: {len(rows)} rows" in err
    there = {row["record"]["id"] for row in rows}
    missing = ", ".join(str(number) for number in WANTED if number not in there)
    assert f"values: {len(there)} of {len(WANTED)} found; not found: {missing}\n" in err, "deleted rows don't count"
    code, rows, _ = call("--table", delta, "--snapshot", "3", "--where", "day = date'2026-11-01'", "--select", "name")
    assert [(row["row"], row["record"]) for row in rows] == [(n, {"name": f"n{n}"}) for n in (1, 2, 3)]
    code, rows, _ = call("--table", delta, "--files-only")
    assert len(rows) == 3
    code, rows, _ = call("--table", delta, "--limit", "2")
    assert len(rows) == 2
    spark.sql(f"delete from {delta} where id in (150)")
    code, rows, _ = call("--table", delta, "--files-only", "--where", "day = date'2026-11-02'")
    assert (code, rows) == (1, []), "all rows with the values are deleted there"


def test_functions_read_a_table_with_a_session_by_its_name_and_not_by_its_path(
    spark: SparkSession, iceberg_v2: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / iceberg_v2).mkdir()  # not the table, though it has the table's name
    table = bloomcli.Table(iceberg_v2, where="id < 100")
    found = bloomcli.find(table, list(WANTED), column="id", select="id", session=spark).to_arrow()
    assert sorted(row["id"] for row in found["record"].to_pylist()) == [1, 3]
    assert bloomcli.gate(table, session=spark).files == 1
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{}")
    for call in (
        lambda named: bloomcli.find(named, 1, column="id", session=spark),
        lambda named: bloomcli.gate(named, session=spark),
    ):
        with pytest.raises(UsageError, match="Spark names tables in SQL"):
            call(bloomcli.Table(tmp_path / "t"))


def test_what_can_not_be_found_is_an_error(
    spark: SparkSession, delta: str, capfd: pytest.CaptureFixture[str]
) -> None:
    values = spark.createDataFrame([(1,)], "wanted int")
    with pytest.raises(UsageError, match="day is a partition column"):
        bloom_spark.find(spark, delta, values, column="day")
    with pytest.raises(UsageError, match="has no column 'name'"):
        bloom_spark.find(spark, delta, values, column="name")
    with pytest.raises(UsageError, match="no column 'nowhere' to select"):
        bloom_spark.find(spark, delta, values, column="id", select=["nowhere"])
    with pytest.raises(UsageError, match="has no such table"):
        bloom_spark.find(spark, "ice.db.nowhere", values, column="id")
    assert cli(["find", "-v", "1", "lake", "--table", delta, "-c", "id"]) == 2
    assert "--table takes no files" in capfd.readouterr().err


def test_a_column_that_files_lack_is_null_there_unless_it_has_a_default(spark: SparkSession, iceberg_v2: str) -> None:
    values = spark.createDataFrame([("old",), ("new",)], "wanted string")
    rows = bloom_spark.find(spark, iceberg_v2, values, column="note", select=["note"]).collect()
    assert {row.record.note for row in rows} == {"new"}, "the column was dropped, and added again"
    assert len(rows) == spark.table(iceberg_v2).where("note = 'new'").count()
