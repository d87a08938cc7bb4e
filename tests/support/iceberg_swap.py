"""Replaces an Iceberg table's data files by copies, byte for byte, for tests of deletes."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomcli.formats.parquet import row_lineage
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.model.schema import RowLineage
from bloomcli.storage.registry import open_source
from bloomcli.tables.iceberg.deletes import DeleteChanges, ReplacedFile, plan_deletes
from bloomcli.tables.iceberg.java import Java
from bloomcli.tables.iceberg.scans import position_deletes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Chosen = Callable[[str], bool]
"""Whether to replace a data file, by its path."""


def every(path: str) -> bool:
    """Choose all data files."""
    return bool(path)


def load(spark: SparkSession, name: str) -> Any:
    """A table's ``org.apache.iceberg.Table``, freshly loaded."""
    java = Java(spark)
    return java.iceberg("spark.Spark3Util").loadIcebergTable(java.spark, name)


def tasks(java: Java, table: Any) -> list[Any]:
    """The scan tasks of the table's current snapshot."""
    scan = table.newScan().useSnapshot(table.currentSnapshot().snapshotId()).includeColumnStats()
    with closing(scan.planFiles()) as tasks:
        return sorted(java.items(tasks), key=lambda task: str(task.file().location()))


Copy = Callable[[Any, Path, Path], object]
"""Makes a new file from the data file of a scan task."""


def plain_copy(task: Any, old: Path, new: Path) -> None:
    """Copy a file, byte for byte."""
    del task
    shutil.copyfile(old, new)


def with_lineage(task: Any, old: Path, new: Path) -> None:
    """Copy a file, and give it the row lineage columns."""
    file = task.file()
    with open_source(str(old)) as source:
        lineage = RowLineage(file.firstRowId(), file.dataSequenceNumber())
        extended = row_lineage.with_lineage(source, read_footer(source), lineage) or source
        new.write_bytes(extended.read_at(0, extended.size))


def planned(spark: SparkSession, table: Any, chosen: Chosen, copy: Copy = plain_copy) -> list[ReplacedFile]:
    """Copies of the chosen data files, under new names."""
    found = []
    for task in tasks(Java(spark), table):
        old = Path(task.file().location())
        if chosen(str(old)):
            new = old.with_name(f"{uuid.uuid4()}{old.suffix}")
            copy(task, old, new)
            (deletes,) = position_deletes(Java(spark), [task])
            found.append(ReplacedFile(task.file(), task.spec(), deletes, str(new)))
    return found


def commit(spark: SparkSession, table: Any, replaced: Iterable[ReplacedFile], changes: DeleteChanges) -> None:
    """One atomic commit; each new data file has the sequence number of the old one."""
    java = Java(spark)
    files = list(replaced)
    start = table.currentSnapshot().snapshotId()  # newTransaction refreshes the table to its newest snapshot
    transaction = table.newTransaction()
    for number in sorted({one.file.dataSequenceNumber() for one in files}):
        rewrite = transaction.newRewrite().validateFromSnapshot(start).dataSequenceNumber(number)
        for one in files:
            if one.file.dataSequenceNumber() == number:
                builder = java.iceberg("DataFiles").builder(one.spec).copy(one.file).withPath(one.path)
                rewrite.deleteFile(one.file)
                rewrite.addFile(builder.withFileSizeInBytes(Path(one.path).stat().st_size).build())
        for file in changes.remove:
            rewrite.deleteFile(file)
        for file, sequence in changes.add:
            rewrite.addFile(file, sequence)
        changes = DeleteChanges()
        rewrite.commit()
    transaction.commitTransaction()


def swap(
    spark: SparkSession, name: str, chosen: Chosen = every, *, naive: bool = False, copy: Copy = plain_copy
) -> DeleteChanges:
    """Replace data files, with the deletes that apply to them or (`naive`) without."""
    table = load(spark, name)
    replaced = planned(spark, table, chosen, copy)
    changes = DeleteChanges()
    if not naive:
        changes = plan_deletes(Java(spark), table, table.currentSnapshot().snapshotId(), replaced, [])
    commit(spark, table, replaced, changes)
    return changes


def delete_files(spark: SparkSession, name: str) -> list[Any]:
    """The delete files of the current snapshot."""
    columns = "content", "lower(file_format) format", "record_count", "file_path", "referenced_data_file"
    return spark.table(f"{name}.delete_files").selectExpr(*columns).orderBy("file_path").collect()


def pyiceberg_rows(table: Any, java: Java, column: str) -> list[Any]:
    """A column of a table as PyIceberg reads it."""
    from pyiceberg.table import StaticTable

    location = java.iceberg("TableUtil").metadataFileLocation(table)
    return sorted(StaticTable.from_metadata(location).scan(selected_fields=(column,)).to_arrow()[column].to_pylist())
