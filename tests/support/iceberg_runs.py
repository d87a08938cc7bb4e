"""Retrofits Iceberg tables step by step, without the run loop, and makes the changes of other writers."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bloomcli
from bloomcli.tables.base import CommitInfo, Replacement
from bloomcli.tables.iceberg import IcebergTable, open_table
from bloomcli.tables.iceberg.java import Java

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_ADDED = re.compile(r"-bloom-[0-9a-f]{32}")


def make(
    spark: SparkSession, name: str, *, version: str = "2", partitioned: str = "", appends: int = 2, **properties: str
) -> str:
    """A table with the columns id, day, name and parts; each append has the ids of one hundred."""
    modes = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
    given = {"format-version": version, **modes}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**given, **properties}.items())
    by = f"partitioned by ({partitioned})" if partitioned else ""
    spark.sql(
        f"create table ice.db.{name} (id int, day date, name string, parts struct<a: bigint, b: array<int>>) "
        f"using iceberg {by} tblproperties ({listed})"
    )
    for number in range(appends):
        append(spark, f"ice.db.{name}", number * 100)
    return f"ice.db.{name}"


def append(spark: SparkSession, name: str, start: int) -> None:
    """A hundred rows."""
    spark.sql(
        f"insert into {name} select cast(id as int), date_add(date'2026-01-01', cast(id % 2 as int)), "
        f"concat('n', id), named_struct('a', id, 'b', array(cast(id as int))) "
        f"from range({start}, {start + 100}, 1, 1)"
    )


def opened(spark: SparkSession, name: str, **chosen: Any) -> IcebergTable:
    """An Iceberg table."""
    table = open_table(spark, name, **chosen)
    assert table is not None
    return table


def info(columns: Iterable[str] = ("id",), *, batch: int = 1, run: str | None = None) -> CommitInfo:
    """The description of a commit."""
    return CommitInfo(run=run or str(uuid.uuid4()), batch=batch, command="add", columns=tuple(columns))


def prepared(
    spark: SparkSession,
    name: str,
    columns: Sequence[str] = ("id",),
    *,
    new_row_ids: bool = False,
    where: str | None = None,
) -> tuple[IcebergTable, list[Replacement]]:
    """A table, and retrofitted copies of its data files that aren't committed yet."""
    table = opened(spark, name)
    table.check_changes(new_row_ids=new_row_ids)
    return table, [copied(table, file, columns) for file in table.files(where)]


def local_path(path: str) -> Path:
    """The file of this machine that a path or a ``file:`` URI of the metadata names."""
    return Path(path.removeprefix("file:"))


def copied(table: IcebergTable, file: Any, columns: Sequence[str] = ("id",)) -> Replacement:
    """A retrofitted copy of a data file."""
    path = table.new_path(file)
    local = local_path(path)
    local.parent.mkdir(parents=True, exist_ok=True)
    bloomcli.add(local_path(file.path), columns, output=local, replace=True)
    return Replacement(file, path, local.stat().st_size)


def retrofitted(spark: SparkSession, name: str, columns: Sequence[str] = ("id",), **more: Any) -> IcebergTable:
    """A table after all its data files were replaced."""
    table, replacements = prepared(spark, name, columns, **more)
    table.commit(replacements, info(columns))
    return table


def rows(spark: SparkSession, name: str, *columns: str) -> list[Row]:
    """All rows, sorted."""
    return sorted(spark.table(name).select(*columns or ["*"]).collect(), key=repr)


def ids(spark: SparkSession, name: str) -> list[int]:
    """The values of the column ``id``, ascending."""
    return sorted(row.id for row in spark.table(name).select("id").collect())


def facts(table: IcebergTable, *, but: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """All metadata of each data file in the newest snapshot, by the part of its name that retrofitting keeps."""
    table.refresh()
    found = {}
    for file in table.files():
        of = json.loads(table.java.iceberg("ContentFileParser").toJson(file.record.file, file.record.partition_spec))
        for key in ("file-path", "file-size-in-bytes", "first-row-id", *but):
            of.pop(key, None)
        for bounds in ("column-sizes", "value-counts", "null-value-counts", "nan-value-counts"):
            of[bounds] = dict(zip(of[bounds]["keys"], of[bounds]["values"], strict=True))
        for bounds in ("lower-bounds", "upper-bounds"):
            of[bounds] = dict(zip(of[bounds]["keys"], of[bounds]["values"], strict=True))
        found[_ADDED.sub("", Path(file.path).name)] = of
    return found


def delete_equal(spark: SparkSession, name: str, column: str, values: Iterable[int | str], **more: Any) -> None:
    """Commit an equality delete file, as Flink does; Spark writes none."""
    row_delta(spark, name, [(column, values)], **more)


def row_delta(
    spark: SparkSession,
    name: str,
    deletes: Iterable[tuple[str, Iterable[int | str]]] = (),
    rows: Iterable[int] = (),
    *,
    day: dt.date | None = None,
    branch: str | None = None,
) -> None:
    """Commit equality delete files and a data file with one data sequence number, by Iceberg's ``RowDelta``.

    Args:
        spark: the session.
        name: the table, of `make`; unpartitioned, or partitioned by `day`.
        deletes: a column and the deleted values, for each delete file.
        rows: ids of new rows.
        day: the rows' day, and the partition of the new files.
        branch: the branch to commit to.
    """
    java = Java(spark)
    table = opened(spark, name).table
    spec = table.spec()
    partition = None
    if not spec.isUnpartitioned():
        assert day is not None
        partition = java.iceberg("DataFiles").data(spec, f"day={day}").copy()
    delta = table.newRowDelta()
    generic = java.iceberg("data.GenericFileWriterFactory$Builder")
    kind = table.properties().get("write.format.default") or "parquet"

    def output(suffix: str) -> Any:
        format_ = java.iceberg("FileFormat").fromString(kind)
        files = java.iceberg("io.OutputFileFactory").builderFor(table, 0, 0).format(format_).suffix(suffix).build()
        return files.newOutputFile() if partition is None else files.newOutputFile(spec, partition)

    for column, values in deletes:
        names = java.type("java.util.ArrayList")()
        names.add(column)
        schema = table.schema().select(names)
        numbers = java.gateway.new_array(java.gateway.jvm.int, 1)
        numbers[0] = table.schema().findField(column).fieldId()
        factory = generic(table).equalityFieldIds(numbers).equalityDeleteRowSchema(schema).build()
        writer = factory.newEqualityDeleteWriter(output("eq"), spec, partition)
        for value in values:
            record = java.iceberg("data.GenericRecord").create(schema)
            record.setField(column, value)
            writer.write(record)
        writer.close()
        delta.addDeletes(writer.toDeleteFile())
    if ids := list(rows):
        writer = generic(table).build().newDataWriter(output("data"), spec, partition)
        for number in ids:
            record = java.iceberg("data.GenericRecord").create(table.schema())
            record.setField("id", number)
            record.setField("name", f"n{number}")
            if day is not None:
                record.setField("day", java.type("java.time.LocalDate").parse(str(day)))
            writer.write(record)
        writer.close()
        delta.addRows(writer.toDataFile())
    if branch is not None:
        delta = delta.toBranch(branch)
    delta.commit()


def summaries(spark: SparkSession, name: str) -> list[Row]:
    """The operations and summaries of the table's snapshots, the oldest first."""
    return spark.table(f"{name}.snapshots").orderBy("committed_at").select("operation", "summary").collect()


def read_by_pyiceberg(table: IcebergTable) -> list[dict[str, Any]]:
    """All rows, as another implementation reads the table."""
    from pyiceberg.table import StaticTable

    table.refresh()
    location = table.java.iceberg("TableUtil").metadataFileLocation(table.table)
    return sorted(StaticTable.from_metadata(location).scan().to_arrow().to_pylist(), key=repr)


def files_below(table: IcebergTable) -> set[str]:
    """The names of all data and delete files in the table's folder."""
    return {
        path.name
        for path in Path(table.table.location(), "data").rglob("*")
        if path.suffix != ".crc" and path.is_file()
    }
