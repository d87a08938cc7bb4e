"""Files of real tables whose columns were renamed, dropped and added: bloom names a file's columns as Spark does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
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
from bloomcli.tables.opening import open_table

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
MADE = {
    "iceberg, Parquet": "using iceberg tblproperties ('write.format.default' = 'parquet')",
    "iceberg, ORC": "using iceberg tblproperties ('write.format.default' = 'orc')",
    "delta, by names": "using delta tblproperties ('delta.columnMapping.mode' = 'name')",
    "delta, by ids": "using delta tblproperties ('delta.columnMapping.mode' = 'id')",
}


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


@pytest.mark.parametrize("kind", MADE)
def test_a_file_s_columns_have_the_names_that_spark_gives_them(
    spark: SparkSession, kind: str, folder: Path, tmp_path: Path
) -> None:
    table = f"delta.`{folder}`" if kind.startswith("delta") else f"ice.db.{kind.replace(', ', '_')}"
    spark.sql(f"create table {table} ({COLUMNS}) {MADE[kind]}")
    insert(spark, table, 0)
    for change in CHANGES:
        spark.sql(f"alter table {table} {change}")
    names = open_table(spark, table).names()
    new = assert_named_as_spark_does(spark, table, names, tmp_path)
    assert_without_the_new_column(new, names)
    assert not {"order_id", "a"} & {facts.column for facts in bloomcli.inspect(new).filters}, "the file's own names"
    spark.sql(f"insert into {table} (order_id, name) select /*+ coalesce(1) */ id, concat('m', id) from range(9)")
    _, later = files(spark, table)
    changes.run(later, AddOptions(columns=["name"], names=names, output=tmp_path / "later"))
    asked = probe.run(tmp_path / "later", ProbeOptions(column="name", values=["m1", "n1"], names=names))
    assert [total.presence for total in asked.totals] == [Presence.MAYBE, Presence.ABSENT]


def test_a_file_without_ids_of_a_table_without_a_name_mapping_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    names = ColumnNames(columns=(ColumnName(path="id", field_id=1),))
    with pytest.raises(UnsupportedError, match="the table has no name mapping"):
        inspect.run(tmp_path / "f.parquet", InspectOptions(names=names))
