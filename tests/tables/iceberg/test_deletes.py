"""Deleted rows stay deleted when the data files of an Iceberg table are replaced."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support import iceberg_swap as swaps
from support import work

from bloomcli.errors import UnsupportedError
from bloomcli.tables.iceberg.deletes import plan_deletes
from bloomcli.tables.iceberg.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark 4.1's, of each collect()
]

ROWS = 1000
_number = itertools.count()


def new_table(spark: SparkSession, version: int = 2, partitioned: bool = False, **properties: str) -> str:
    """A table of three data files with ROWS rows each, ids in order; those of a partitioned table have a commit each.
    `properties` have dots for underscores."""
    name = f"ice.deletes.t{next(_number)}"
    settings = {
        "format-version": str(version),
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.distribution-mode": "none",
        **{key.replace("_", "."): value for key, value in properties.items()},
    }
    listed = ", ".join(f"'{key}'='{value}'" for key, value in settings.items())
    by = "partitioned by (part)" if partitioned else ""
    spark.sql(f"create table {name} (id bigint, part int, s string) using iceberg {by} tblproperties ({listed})")
    part = f"cast(id div {2 * ROWS} as int) part"
    commits, files = (3, 1) if partitioned else (1, 3)
    for number in range(commits):
        ids = spark.range(number * files * ROWS, (number + 1) * files * ROWS, 1, files)
        ids.selectExpr("id", part, "concat('s', id) s").writeTo(name).append()
    return name


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.table(name).select("id").collect())


class Case(NamedTuple):
    """A table with deleted rows."""

    build: Callable[[SparkSession], str]
    pyiceberg: bool = True
    """PyIceberg can read it."""
    data: str = "parquet"


def by_granularity(granularity: str, deletes: str = "parquet", **more: str) -> Callable[[SparkSession], str]:
    def build(spark: SparkSession) -> str:
        format_ = {"write_delete_format_default": deletes}
        name = new_table(spark, write_delete_granularity=granularity, **format_, **more)
        spark.sql(f"delete from {name} where id % 10 = 3")
        return name

    return build


def several(spark: SparkSession) -> str:
    """Several delete files over one data file, of both granularities and two formats, in a partitioned table."""
    name = new_table(spark, partitioned=True, write_delete_granularity="partition")
    spark.sql(f"delete from {name} where id % 10 = 3")
    spark.sql(f"alter table {name} set tblproperties ('write.delete.format.default'='orc')")
    spark.sql(f"delete from {name} where id % 100 = 7")
    spark.sql(f"alter table {name} set tblproperties ('write.delete.granularity'='file')")
    spark.sql(f"delete from {name} where id % 1000 = 8")
    return name


def equality(spark: SparkSession) -> str:
    """Equality deletes and position deletes; rows with a deleted key that were added later stay."""
    name = by_granularity("file")(spark)
    write_equality_deletes(spark, name, ["s4", "s5"])
    spark.sql(f"insert into {name} values (4, 9, 's4')")
    return name


def write_equality_deletes(spark: SparkSession, name: str, values: list[str]) -> None:
    java, table = Java(spark), swaps.load(spark, name)
    gateway = spark.sparkContext._gateway
    fields = gateway.new_array(gateway.jvm.int, 1)
    fields[0] = table.schema().findField("s").fieldId()
    schema = table.schema().select(java.type("java.util.List").of("s"))
    builder = java.iceberg("data.GenericFileWriterFactory$Builder")(table)
    factory = builder.equalityFieldIds(fields).equalityDeleteRowSchema(schema).build()
    output = java.iceberg("io.OutputFileFactory").builderFor(table, 1, 1).suffix("eq").build().newOutputFile()
    writer = factory.newEqualityDeleteWriter(output, table.spec(), None)
    for value in values:
        record = java.iceberg("data.GenericRecord").create(schema)
        record.setField("s", value)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def vectors(spark: SparkSession) -> str:
    name = new_table(spark, 3)
    spark.sql(f"delete from {name} where id % 10 = 3")
    spark.sql(f"delete from {name} where id % 100 = 7")
    return name


def upgraded(granularity: str, more: bool) -> Callable[[SparkSession], str]:
    def build(spark: SparkSession) -> str:
        name = by_granularity(granularity)(spark)
        spark.sql(f"alter table {name} set tblproperties ('format-version'='3')")
        if more:
            spark.sql(f"delete from {name} where id = 8")
        return name

    return build


CASES = {
    "v2 file-scoped": Case(by_granularity("file")),
    "v2 partition-scoped": Case(by_granularity("partition")),
    "v2 partition-scoped ORC": Case(by_granularity("partition", "orc")),
    "v2 partition-scoped Avro": Case(by_granularity("partition", "avro"), pyiceberg=False),
    "v2 ORC data and deletes": Case(by_granularity("file", "orc", write_format_default="orc"), data="orc"),
    "v2 several over one": Case(several),
    "v2 equality": Case(equality, pyiceberg=False),
    "v3 vectors": Case(vectors),
    "v3 upgraded, file-scoped": Case(upgraded("file", more=False)),
    "v3 upgraded, partition-scoped": Case(upgraded("partition", more=False)),
    "v3 upgraded, with vectors": Case(upgraded("partition", more=True)),
}


@pytest.mark.parametrize("title", CASES)
def test_deleted_rows_stay_deleted(spark: SparkSession, title: str) -> None:
    case = CASES[title]
    name = case.build(spark)
    before = ids(spark, name)
    start = swaps.load(spark, name).currentSnapshot().snapshotId()

    swaps.swap(spark, name, naive=True)
    assert len(ids(spark, name)) > len(before), "the test can't fail: without their deletes the rows come back"
    spark.sql(f"call ice.system.rollback_to_snapshot('{name}', {start})")

    old = {row.file_path for row in spark.table(f"{name}.data_files").collect()}
    deletes = {row.file_path for row in swaps.delete_files(spark, name) if row.content == 1}
    swaps.swap(spark, name)
    table = swaps.load(spark, name)
    assert ids(spark, name) == before
    assert not old & {row.file_path for row in spark.table(f"{name}.data_files").collect()}
    assert table.currentSnapshot().operation() == "replace"
    assert not deletes & {row.file_path for row in swaps.delete_files(spark, name)}
    if case.pyiceberg:
        assert swaps.pyiceberg_rows(table, Java(spark), "id") == before

    spark.sql(f"delete from {name} where id % 10 = 1")
    expected = [i for i in before if i % 10 != 1]
    assert ids(spark, name) == expected
    spark.sql(
        f"call ice.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all','true'))"
    )
    assert ids(spark, name) == expected
    spark.sql(f"call ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all','true'))")
    assert ids(spark, name) == expected
    assert not [row for row in spark.table(f"{name}.data_files").collect() if row.record_count > len(expected)]


def new_deletes(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    """For each delete file, its format, its rows, and whether it belongs to one data file."""
    found = swaps.delete_files(spark, name)
    return sorted((row.format, row.record_count, row.referenced_data_file is not None) for row in found)


def test_a_delete_file_keeps_the_rows_of_the_data_files_that_stay(spark: SparkSession) -> None:
    name = by_granularity("partition")(spark)
    before = ids(spark, name)
    paths = sorted(row.file_path for row in spark.table(f"{name}.data_files").collect())
    assert new_deletes(spark, name) == [("parquet", 300, False)]
    swaps.swap(spark, name, lambda path: path == paths[0])
    assert new_deletes(spark, name) == [("parquet", 100, True), ("parquet", 200, False)]
    assert ids(spark, name) == before
    swaps.swap(spark, name, lambda path: path in paths)
    assert new_deletes(spark, name) == [("parquet", 100, True)] * 3
    assert ids(spark, name) == before


def test_new_delete_files_have_the_greatest_sequence_number_of_those_they_replace(spark: SparkSession) -> None:
    name = several(spark)
    table = swaps.load(spark, name)
    numbers = {
        task.file().location(): [f.dataSequenceNumber() for f in task.deletes()] for task in all_tasks(spark, name)
    }
    assert {len(found) for found in numbers.values()} == {1, 3}
    replaced = swaps.planned(spark, table, swaps.every)
    changes = plan_deletes(Java(spark), table, table.currentSnapshot().snapshotId(), replaced, [])
    old = {one.path: one.old_path for one in replaced}
    assert {file.referencedDataFile(): number for file, number in changes.add} == {
        new: max(numbers[path]) for new, path in old.items()
    }


def all_tasks(spark: SparkSession, name: str) -> list[Any]:
    return swaps.tasks(Java(spark), swaps.load(spark, name))


def test_version_3_refuses_position_deletes_that_it_could_neither_keep_nor_write(spark: SparkSession) -> None:
    name = upgraded("partition", more=False)(spark)
    before = ids(spark, name)
    first = min(row.file_path for row in spark.table(f"{name}.data_files").collect())
    with pytest.raises(UnsupportedError, match="position delete files") as refusal:
        swaps.swap(spark, name, lambda path: path == first)
    assert f"rewrite_position_delete_files(table => '{name}')" in str(refusal.value.hint)
    spark.sql(
        f"call ice.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    swaps.swap(spark, name, lambda path: path == first)
    assert {row.format for row in swaps.delete_files(spark, name)} == {"puffin"}
    assert ids(spark, name) == before


def test_version_3_drops_a_position_delete_file_once_no_live_data_file_is_named(spark: SparkSession) -> None:
    name = upgraded("partition", more=True)(spark)
    before = ids(spark, name)
    first = min(row.file_path for row in spark.table(f"{name}.data_files").collect())
    with_vector = next(task for task in all_tasks(spark, name) if task.deletes()[0].format().name() == "PUFFIN")
    swaps.swap(spark, name, lambda path: path in {first, with_vector.file().location()})
    assert sorted(format_ for format_, _, _ in new_deletes(spark, name)) in (
        ["parquet", "puffin"],
        ["parquet", "puffin", "puffin"],
    )
    assert ids(spark, name) == before
    swaps.swap(spark, name)
    assert {format_ for format_, _, _ in new_deletes(spark, name)} == {"puffin"}
    assert ids(spark, name) == before


@pytest.mark.parametrize(
    ("build", "between"),
    [
        (by_granularity("file"), "delete"),
        (by_granularity("file"), "rewrite"),
        (by_granularity("partition"), "delete"),
        (by_granularity("partition"), "rewrite"),
        (vectors, "delete"),
    ],
)
def test_a_commit_fails_if_deletes_have_changed_since_the_plan(
    spark: SparkSession, build: Callable[[SparkSession], str], between: str
) -> None:
    name = build(spark)
    table = swaps.load(spark, name)
    replaced = swaps.planned(spark, table, swaps.every)
    changes = plan_deletes(Java(spark), table, table.currentSnapshot().snapshotId(), replaced, [])
    if between == "delete":
        spark.sql(f"delete from {name} where id = 8")
    else:
        spark.sql(
            f"call ice.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))"
        )
    after = ids(spark, name)
    with pytest.raises(Exception, match=r"found new position delete|Missing required files to delete"):
        swaps.commit(spark, table, replaced, changes)
    assert ids(spark, name) == after


@pytest.mark.parametrize("build", [by_granularity("partition"), vectors])
def test_every_new_delete_file_is_named_before_it_is_written(
    spark: SparkSession, build: Callable[[SparkSession], str]
) -> None:
    name = build(spark)
    table = swaps.load(spark, name)
    data = Path(table.location()) / "data"
    replaced = swaps.planned(spark, table, swaps.every)
    files = {str(path) for path in data.iterdir()}
    paths: list[str] = []
    plan_deletes(Java(spark), table, table.currentSnapshot().snapshotId(), replaced, paths)
    assert {str(path) for path in data.iterdir() if path.suffix != ".crc"} - files == set(paths)
    assert paths


def test_a_hundred_thousand_deleted_rows_take_few_calls_of_java(spark: SparkSession) -> None:
    name = new_table(spark, write_delete_granularity="partition")
    spark.range(10**6, 2 * 10**6, 1, 1).selectExpr("id", "0 part", "'' s").writeTo(name).append()
    spark.sql(f"delete from {name} where id % 10 = 3")
    table = swaps.load(spark, name)
    replaced = swaps.planned(spark, table, swaps.every)
    with work.java_calls(spark) as sent:
        changes = plan_deletes(Java(spark), table, table.currentSnapshot().snapshotId(), replaced, [])
    assert sum(file.recordCount() for file, _ in changes.add) == 100_300
    assert len(sent) < 5000, "720 are usual"
