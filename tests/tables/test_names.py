"""Files of real tables whose columns were renamed, dropped and added: bloom names a file's columns as Spark does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import bloomcli
from bloomcli.commands import change as changes
from bloomcli.commands import inspect, probe, validate
from bloomcli.commands.options import AddOptions, InspectOptions, ProbeOptions, ValidateOptions
from bloomcli.datasets import task
from bloomcli.datasets.task import Task
from bloomcli.errors import UnsupportedError
from bloomcli.model.dataset import Status
from bloomcli.model.file import Presence
from bloomcli.model.schema import ColumnName, ColumnNames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 300
COLUMNS = """id bigint, name string, tags array<string>, props map<string,int>,
    user struct<email:string,age:int>, items array<struct<sku:string,n:int>>, a string, b string"""
CHANGES = (
    "rename column id to order_id",
    "drop column name",
    "add column name string",
    "rename column tags to labels",
    "rename column user.email to mail",
    "rename column items.element.sku to code",
    "rename column a to c",
    "rename column b to a",
    "rename column c to b",
)
FILTERED = {
    "order_id": "order_id",
    "labels.element": "labels[0]",
    "props.key": "map_keys(props)[0]",
    "user.mail": "user.mail",
    "items.element.code": "items[0].code",
    "a": "a",
}
"""Columns to add filters to, by the table's paths, and how Spark reads them."""
ICEBERG = {
    "order_id": 1, "labels.element": 9, "props.key": 10, "props.value": 11, "user.mail": 12, "user.age": 13,
    "items.element.code": 15, "items.element.n": 16, "b": 7, "a": 8, "name": 17,
}  # fmt: skip
"""The field ids that Iceberg gives: top-level columns first."""


def insert(spark: SparkSession, table: str, start: int) -> None:
    """One file of `ROWS` rows."""
    spark.sql(
        f"""insert into {table} select /*+ coalesce(1) */ {{}} from range({start}, {start + ROWS})""".format(
            "id, concat('n', id), array(concat('t', id)), map(concat('k', id), cast(id as int)),"
            " named_struct('email', concat('e', id), 'age', cast(id as int)),"
            " array(named_struct('sku', concat('s', id), 'n', 1)), concat('a', id), concat('b', id)"
        )
    )


def files(spark: SparkSession, table: str) -> list[Path]:
    """The table's data files, the oldest first."""
    if table.startswith("ice."):
        names = [row["file_path"] for row in spark.table(f"{table}.files").collect()]
    else:
        names = spark.table(table).inputFiles()
    found = [Path("/" + name.removeprefix("file:").lstrip("/")) for name in names]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def assert_named_as_spark_does(spark: SparkSession, table: str, names: ColumnNames, folder: Path) -> Path:
    """Add filters to a table's first file, which has the older schema. Returns the new file, not in the table."""
    (file,) = files(spark, table)
    new = folder / f"new{file.suffix}"
    report = changes.run(file, AddOptions(columns=list(FILTERED), names=names, output=new))
    assert {change.column for change in report.changes} == set(FILTERED)
    found = inspect.run(new, InspectOptions(names=names))
    assert {facts.column for facts in found.filters} == set(FILTERED)
    for column, expression in FILTERED.items():
        values = [str(row[0]) for row in spark.sql(f"select {expression} from {table} limit 20").collect()]
        asked = probe.run(new, ProbeOptions(column=column, values=values, names=names))
        assert {total.presence for total in asked.totals} == {Presence.MAYBE}, column
        asked = probe.run(new, ProbeOptions(column=column, values="-1", names=names))
        assert asked.absent_everywhere, column
    checked = validate.run(new, ValidateOptions(names=names, require=list(FILTERED), deep=True))
    assert (checked.findings, checked.values_checked) == ((), len(FILTERED) * ROWS)
    return new


def assert_without_the_new_column(new: Path, names: ColumnNames) -> None:
    """`name` was added again: the older file has another column of that name."""
    by_column = inspect.run(new, InspectOptions(names=names)).by_column
    assert sum(column.column.endswith(" (not a column of the table)") for column in by_column) == 1
    options = AddOptions(columns=["name"], names=names, in_place=True).checked()
    row = task.run(Task(options=options, path=str(new), size=-1))
    assert (row.status, (row.reason or "").partition(":")[0]) == (
        Status.SKIPPED,
        "the file doesn't have the table's column name",
    )
    asked = probe.run(new, ProbeOptions(column="name", values="n7", names=names))
    assert {total.answer for total in asked.totals} == {Presence.UNKNOWN}


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_iceberg_finds_columns_by_field_ids(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    table = f"ice.db.names_{kind}"
    spark.sql(f"create table {table} ({COLUMNS}) using iceberg tblproperties ('write.format.default' = '{kind}')")
    insert(spark, table, 0)
    for change in CHANGES:
        spark.sql(f"alter table {table} {change}")
    names = ColumnNames(columns=tuple(ColumnName(path=path, field_id=found) for path, found in ICEBERG.items()))
    new = assert_named_as_spark_does(spark, table, names, tmp_path)
    assert_without_the_new_column(new, names)
    # the file's own names: `a` of the table was `b`
    own = {facts.column for facts in bloomcli.inspect(new).filters}
    assert {"id", "b", "user.email"} <= own
    assert "a" not in own
    spark.sql(f"insert into {table} (order_id, name) select /*+ coalesce(1) */ id, concat('m', id) from range(9)")
    _, later = files(spark, table)
    changes.run(later, AddOptions(columns=["name"], names=names, output=tmp_path / "later"))
    asked = probe.run(tmp_path / "later", ProbeOptions(column="name", values=["m1", "n1"], names=names))
    assert [total.presence for total in asked.totals] == [Presence.MAYBE, Presence.ABSENT]


def test_iceberg_finds_columns_of_files_without_ids_by_its_name_mapping(spark: SparkSession, tmp_path: Path) -> None:
    """Files that another engine wrote, which `add_files` took into the table before it renamed a column."""
    spark.range(ROWS).selectExpr("id", "concat('n', id) name").coalesce(1).write.parquet(str(tmp_path / "old"))
    table = "ice.db.names_mapped"
    spark.sql(f"create table {table} (id bigint, name string) using iceberg")
    spark.sql(
        f"call ice.system.add_files(table => 'db.names_mapped', source_table => 'parquet.`{tmp_path / 'old'}`')"
    )
    spark.sql(f"alter table {table} rename column id to order_id")
    properties = {row["key"]: row["value"] for row in spark.sql(f"show tblproperties {table}").collect()}
    mapping = {
        entry["field-id"]: tuple(entry["names"]) for entry in json.loads(properties["schema.name-mapping.default"])
    }
    ids = {"order_id": 1, "name": 2}
    names = ColumnNames(
        columns=tuple(
            ColumnName(path=path, field_id=number, physical=mapping[number]) for path, number in ids.items()
        )
    )
    assert "id" in mapping[1]
    (file,) = files(spark, table)
    changes.run(file, AddOptions(columns=["order_id"], names=names, output=tmp_path / "new"))
    (found,) = bloomcli.inspect(tmp_path / "new").filters
    assert found.column == "id"
    value = spark.sql(f"select max(order_id) from {table}").collect()[0][0]
    asked = probe.run(tmp_path / "new", ProbeOptions(column="order_id", values=[value, value + 1], names=names))
    assert [total.answer for total in asked.totals] == [Presence.MAYBE, Presence.ABSENT]
    bare = ColumnNames(columns=tuple(ColumnName(path=path, field_id=number) for path, number in ids.items()))
    with pytest.raises(UnsupportedError, match="the table has no name mapping"):
        inspect.run(file, InspectOptions(names=bare))


def leaves(
    node: Mapping[str, Any] | str, path: tuple[str, ...], physical: tuple[str, ...], number: int | None
) -> Iterator[tuple[str, str, int | None]]:
    """The leaves of a schema of Delta: path, physical path, and the field id where the leaf has one of its own."""
    if isinstance(node, str):
        yield ".".join(path), ".".join(physical), number
    elif node["type"] == "struct":
        for field in node["fields"]:
            own = field["metadata"]
            steps = (*physical, own["delta.columnMapping.physicalName"])
            yield from leaves(field["type"], (*path, field["name"]), steps, own["delta.columnMapping.id"])
    elif node["type"] == "array":
        yield from leaves(node["elementType"], (*path, "element"), (*physical, "element"), None)
    else:
        for step in ("key", "value"):
            yield from leaves(node[f"{step}Type"], (*path, step), (*physical, step), None)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_delta_finds_columns_by_its_column_mapping(
    spark: SparkSession, mode: str, folder: Path, tmp_path: Path
) -> None:
    table = f"delta.`{folder}`"
    spark.sql(f"create table {table} ({COLUMNS}) using delta tblproperties ('delta.columnMapping.mode' = '{mode}')")
    insert(spark, table, 0)
    for change in CHANGES:
        spark.sql(f"alter table {table} {change}")
    log = [
        json.loads(line)
        for path in sorted(folder.glob("_delta_log/*.json"))
        for line in path.read_text().splitlines()
    ]
    schema = json.loads([entry["metaData"]["schemaString"] for entry in log if "metaData" in entry][-1])
    names = ColumnNames(
        columns=tuple(
            ColumnName(path=path, physical=(physical,), field_id=number if mode == "id" else None)
            for path, physical, number in leaves(schema, (), (), None)
        )
    )
    new = assert_named_as_spark_does(spark, table, names, tmp_path)
    assert_without_the_new_column(new, names)
    assert not any(facts.column in FILTERED for facts in bloomcli.inspect(new).filters)
