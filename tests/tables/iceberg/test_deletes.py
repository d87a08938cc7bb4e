"""Deleted rows stay deleted when the data files of an Iceberg table are replaced."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support import work
from support.iceberg_runs import (
    copied,
    delete_equal,
    files_below,
    ids,
    info,
    make,
    opened,
    prepared,
    read_by_pyiceberg,
)

from bloomcli.errors import UnsupportedError, WriteError
from bloomcli.tables.iceberg import IcebergTable
from bloomcli.tables.iceberg import commit as commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]

_number = itertools.count()

Build = Callable[["SparkSession"], str]


def new_table(spark: SparkSession, **more: Any) -> str:
    """A table of three data files with a hundred rows each, ids in order."""
    return make(spark, f"deletes_{next(_number)}", appends=3, **more)


def by_granularity(granularity: str, deletes: str = "parquet", **more: str) -> Build:
    def build(spark: SparkSession) -> str:
        given = {"write.delete.granularity": granularity, "write.delete.format.default": deletes, **more}
        name = new_table(spark, **given)
        spark.sql(f"delete from {name} where id % 10 = 3")
        return name

    return build


def several(spark: SparkSession) -> str:
    """Several delete files over one data file, of both granularities and two formats, in a partitioned table."""
    name = new_table(spark, partitioned="truncate(200, id)", **{"write.delete.granularity": "partition"})
    spark.sql(f"delete from {name} where id % 10 = 3")
    spark.sql(f"alter table {name} set tblproperties ('write.delete.format.default'='orc')")
    spark.sql(f"delete from {name} where id % 100 = 7")
    spark.sql(f"alter table {name} set tblproperties ('write.delete.granularity'='file')")
    spark.sql(f"delete from {name} where id % 100 = 8")
    return name


def equality(spark: SparkSession) -> str:
    """Equality deletes and position deletes; rows with a deleted key that were added later stay."""
    name = by_granularity("file")(spark)
    delete_equal(spark, name, "name", ["n4", "n5"])
    spark.sql(f"insert into {name} values (4, date'2026-01-01', 'n4', null)")
    return name


def vectors(spark: SparkSession) -> str:
    name = new_table(spark, version="3")
    spark.sql(f"delete from {name} where id % 10 = 3")
    spark.sql(f"delete from {name} where id % 100 = 7")
    return name


def upgraded(granularity: str, *, more: bool) -> Build:
    def build(spark: SparkSession) -> str:
        name = by_granularity(granularity)(spark)
        spark.sql(f"alter table {name} set tblproperties ('format-version'='3')")
        if more:
            spark.sql(f"delete from {name} where id = 8")
        return name

    return build


class Case(NamedTuple):
    """A table with deleted rows."""

    build: Build
    pyiceberg: bool = True
    """PyIceberg can read it."""
    maintained: bool = False
    """It is changed and compacted afterwards: Iceberg reads all tables alike."""


CASES = {
    "v2 partition-scoped Avro": Case(by_granularity("partition", "avro"), pyiceberg=False),
    "v2 ORC data and deletes": Case(by_granularity("file", "orc", **{"write.format.default": "orc"})),
    "v2 several over one": Case(several, maintained=True),
    "v2 equality": Case(equality, pyiceberg=False),
    "v3 vectors": Case(vectors, maintained=True),
    "v3 upgraded, file-scoped": Case(upgraded("file", more=False)),
    "v3 upgraded, with vectors": Case(upgraded("partition", more=True), maintained=True),
}


def replaced(spark: SparkSession, name: str, *paths: str) -> IcebergTable:
    """The table after some data files were replaced, or all."""
    version_3 = spark.sql(f"show tblproperties {name} ('format-version')").first()[1] == "3"
    table = opened(spark, name)
    table.check_changes(new_row_ids=version_3)
    table.commit([copied(table, file) for file in table.files() if not paths or file.path in paths], info())
    return table


def data_files(spark: SparkSession, name: str) -> list[str]:
    return sorted(row.file_path for row in spark.table(f"{name}.data_files").collect())


def delete_files(spark: SparkSession, name: str) -> list[Any]:
    columns = "content", "lower(file_format) format", "record_count", "file_path", "referenced_data_file"
    return spark.table(f"{name}.delete_files").selectExpr(*columns).collect()


@pytest.mark.parametrize("title", CASES)
def test_deleted_rows_stay_deleted(spark: SparkSession, title: str) -> None:
    case = CASES[title]
    name = case.build(spark)
    before, old = ids(spark, name), set(data_files(spark, name))
    deletes = {row.file_path for row in delete_files(spark, name) if row.content == 1}
    table = replaced(spark, name)
    assert ids(spark, name) == before
    assert not old & set(data_files(spark, name))
    assert not deletes & {row.file_path for row in delete_files(spark, name)}
    if case.pyiceberg:
        assert sorted(row["id"] for row in read_by_pyiceberg(table)) == before
    if not case.maintained:
        return
    spark.sql(f"delete from {name} where id % 10 = 1")
    expected = [i for i in before if i % 10 != 1]
    assert ids(spark, name) == expected
    for procedure in ("rewrite_position_delete_files", "rewrite_data_files"):
        spark.sql(f"call ice.system.{procedure}(table => '{name}', options => map('rewrite-all', 'true'))")
        assert ids(spark, name) == expected


def kinds(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    """For each delete file, its format, its rows, and whether it belongs to one data file."""
    found = delete_files(spark, name)
    return sorted((row.format, row.record_count, row.referenced_data_file is not None) for row in found)


def test_a_delete_file_keeps_the_rows_of_the_data_files_that_stay(spark: SparkSession) -> None:
    name = by_granularity("partition")(spark)
    before, paths = ids(spark, name), data_files(spark, name)
    assert kinds(spark, name) == [("parquet", 30, False)]
    replaced(spark, name, paths[0])
    assert kinds(spark, name) == [("parquet", 10, True), ("parquet", 20, False)]
    assert ids(spark, name) == before
    replaced(spark, name, *paths[1:])
    assert kinds(spark, name) == [("parquet", 10, True)] * 3
    assert ids(spark, name) == before


def test_new_delete_files_have_the_greatest_sequence_number_of_those_they_replace(spark: SparkSession) -> None:
    def numbers(table: IcebergTable) -> dict[str, list[int]]:
        return {f.path: [d.dataSequenceNumber() for d in f.record.task.deletes()] for f in table.files()}

    name = several(spark)
    before = numbers(opened(spark, name))
    assert {len(found) for found in before.values()} == {1, 3}
    table, replacements = prepared(spark, name)
    table.commit(replacements, info())
    assert numbers(opened(spark, name)) == {one.path: [max(before[one.old.path])] for one in replacements}


def test_version_3_refuses_position_deletes_that_it_could_neither_keep_nor_write(spark: SparkSession) -> None:
    name = upgraded("partition", more=False)(spark)
    before, (first, *_) = ids(spark, name), data_files(spark, name)
    with pytest.raises(UnsupportedError, match="position delete files") as refusal:
        replaced(spark, name, first)
    spark.sql((refusal.value.hint or "").removeprefix("this SQL turns them into deletion vectors: "))
    replaced(spark, name, first)
    assert {row.format for row in delete_files(spark, name)} == {"puffin"}
    assert ids(spark, name) == before


def test_version_3_drops_a_position_delete_file_once_no_live_data_file_is_named(spark: SparkSession) -> None:
    name = upgraded("partition", more=True)(spark)
    before = ids(spark, name)
    files = opened(spark, name).files()
    (with_vector,) = (f.path for f in files if f.record.task.deletes()[0].format().name() == "PUFFIN")
    replaced(spark, name, with_vector)
    assert [form for form, _, _ in kinds(spark, name)] == ["parquet", "puffin"]
    assert ids(spark, name) == before
    replaced(spark, name)
    assert {form for form, _, _ in kinds(spark, name)} == {"puffin"}
    assert ids(spark, name) == before


@pytest.mark.parametrize("build", [by_granularity("partition"), vectors])
def test_new_delete_files_of_a_commit_that_fails_are_removed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    name, written = build(spark), []
    table, replacements = prepared(spark, name, new_row_ids=build is vectors)
    files = files_below(table)

    def fail(self: commits._Attempt, rewrite: Any, of: Any) -> None:
        written.extend(files_below(table) - files)
        raise WriteError("stopped here", path=name)

    monkeypatch.setattr(commits._Attempt, "_keep_deletes", fail)
    with pytest.raises(WriteError, match="stopped here"):
        table.commit(replacements, info())
    assert written
    assert files_below(table) == files


def test_many_deleted_rows_take_few_calls_of_java(spark: SparkSession) -> None:
    name = new_table(spark, **{"write.delete.granularity": "partition"})
    spark.sql(f"insert into {name} select cast(id as int), null, null, null from range(1000, 201000, 1, 1)")
    spark.sql(f"delete from {name} where id % 10 = 3")
    table, replacements = prepared(spark, name)
    with work.java_calls(spark) as sent:
        table.commit(replacements, info())
    assert sum(row.record_count for row in delete_files(spark, name)) == 20_030
    assert len(sent) < 5000, "a quarter of them is usual, and a call for each row would be 20,000"
