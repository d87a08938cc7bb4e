"""Opens tables to read them without Spark, from their own metadata, and decides who opens a table.

Who opens a table for a command that reads is decided in this order: the engine that the user names; Spark, if a
session exists or is described; bloom itself, for a table that it can open; Spark. Changes are always Spark's, because
the table's own library commits them.
"""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec

from bloomcli.datasets.hadoop_paths import located
from bloomcli.datasets.spark_session import is_running
from bloomcli.storage.base import ICEBERG_METADATA, TableKind
from bloomcli.tables.base import TableSnapshot
from bloomcli.tables.delta.log import DeltaLogTable
from bloomcli.tables.iceberg.metadata import has_catalog, newest_metadata, open_in_catalog, open_metadata, split
from bloomcli.tables.names import not_opened, path_of, table_at


def reads_with_spark(name: str, engine: str | None, *, described: bool) -> bool:
    """Whether Spark opens a table for a command that reads.

    Args:
        name: the table's name.
        engine: the engine that the user names; None if the user names none.
        described: the user sets up a Spark session.
    """
    if engine is not None:
        return engine == "spark"
    ours = path_of(name) is not None or has_catalog(name) or find_spec("pyspark") is None
    return described or is_running() or not ours


def open_snapshot(name: str, *, snapshot: int | None = None, as_of: datetime | None = None) -> TableSnapshot:
    """Open a table to read it, without Spark.

    Args:
        name: a table's directory or URI, or ``delta.`/path` ``.
        snapshot: the snapshot's id (Iceberg) or the version (Delta) to read; the newest if None.
        as_of: read the snapshot or version that was current at this time.

    Raises:
        UsageError: there is no table, or it has no such snapshot.
        UnsupportedError: a feature of the table that can't be read; a table of another format.
        UnreadableError, CorruptFile: the table's metadata can't be read, or are damaged.
    """
    path = path_of(name)
    if path is None:
        return open_in_catalog(name, snapshot, as_of)
    whole, selector = split(path)
    if whole.endswith(ICEBERG_METADATA):
        return open_metadata(name, located(whole), selector, snapshot, as_of)
    table = table_at(path)
    if table is not None:
        selector = None
    elif selector is not None:
        table = table_at(whole)
    if table is not None and table.kind is TableKind.ICEBERG:
        return open_metadata(name, newest_metadata(table.path), selector, snapshot, as_of)
    if table is not None and table.kind is TableKind.DELTA:
        return DeltaLogTable(str(table.name) if path == name else name, table.path, snapshot=snapshot, as_of=as_of)
    raise not_opened(name, table)
