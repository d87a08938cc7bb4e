"""Decides whether Spark opens a table for a command that reads, and opens it without Spark.

In this order: the engine that the user names; Spark, if a session exists or is described; bloom itself, for a table
that it can open; Spark. Changes are always Spark's, because the table's own library commits them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Final

from bloomcli.datasets.hadoop_paths import absolute, portable
from bloomcli.datasets.spark_session import is_running
from bloomcli.errors import UnsupportedError, UsageError, install
from bloomcli.hints import Command
from bloomcli.storage.base import ICEBERG_METADATA, ManagedTable, TableKind
from bloomcli.storage.managed_tables import table_in
from bloomcli.storage.names import is_uri
from bloomcli.storage.registry import store_of
from bloomcli.tables.base import TableSnapshot
from bloomcli.tables.delta.log import DeltaLogTable
from bloomcli.tables.iceberg.catalogs import has_catalog, metadata_location
from bloomcli.tables.iceberg.metadata import IcebergFiles, newest_metadata
from bloomcli.tables.iceberg.opening import SELECTOR
from bloomcli.tables.libraries import settings

_BY_PATH: Final = re.compile(r"`?delta`?\.`((?:[^`]|``)+)`", re.IGNORECASE)
_UNREAD: Final = {TableKind.HUDI: "Hudi's timeline", TableKind.PAIMON: "Paimon's snapshots as a table"}
_NO_TABLE: Final = "no table is there: no directory _delta_log, and no directory metadata with *.metadata.json"


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


def path_of(name: str) -> str | None:
    """The path that a table's name is, or names (``delta.`/path` ``); None for the name in a catalog."""
    if (match := _BY_PATH.fullmatch(name)) is not None:
        return match[1].replace("``", "`")
    is_path = ("`" not in name and (os.sep in name or is_uri(name))) or os.path.exists(name)  # noqa: PTH110  text in
    return name if is_path and name else None


def check_named_in_sql(
    name: str, command: str | None = None, columns: Sequence[str] = (), given: Sequence[str] = ()
) -> None:
    """Raise UsageError for a path: Spark names tables in SQL.

    Args:
        name: the table's name.
        command: the command that changes the table, for the hint; None: the command only reads.
        columns: the columns that it names.
        given: its other options.
    """
    if path_of(name) != name:
        return
    found = _found(name)
    if found is None:
        raise UsageError(_NO_TABLE, path=name, hint="name the table's own directory")
    options = () if is_running() or found.kind is not TableKind.DELTA else settings("delta")
    if command is None:
        words = shlex.join(["--table", str(found.name), *options])
        raise UsageError("Spark names tables in SQL", path=name, hint=f"{words}; or leave Spark out to read it")
    line = Command(command, (*options, *given), tuple(columns), table=found.name)
    reason = f"{command} changes tables with Spark, which names them in SQL"
    raise UsageError(reason, path=name, hint=str(line))


def _found(path: str) -> ManagedTable | None:
    """The table whose directory is at a path; None if there is none."""
    location = absolute(portable(path))
    return table_in(store_of(location), location.rstrip("/") or location)


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
        return _in_catalog(name, snapshot, as_of)
    whole, selector = _split(path)
    if whole.endswith(ICEBERG_METADATA):
        return _iceberg(name, absolute(portable(whole)), selector, snapshot, as_of)
    found = _found(path)
    if found is not None:
        selector = None
    elif selector is not None:
        found = _found(whole)
    if found is not None and found.kind is TableKind.ICEBERG:
        return _iceberg(name, newest_metadata(found.path), selector, snapshot, as_of)
    if found is not None and found.kind is TableKind.DELTA:
        return DeltaLogTable(str(found.name) if path == name else name, found.path, snapshot=snapshot, as_of=as_of)
    if found is not None and found.kind in _UNREAD:
        raise UnsupportedError(f"{found.kind.value}: bloom doesn't read {_UNREAD[found.kind]}", path=name)
    raise UsageError(_NO_TABLE, path=name, hint="name the table's own directory")


def _in_catalog(name: str, snapshot: int | None, as_of: datetime | None) -> TableSnapshot:
    """Open a table of a catalog that PyIceberg knows."""
    if not has_catalog(name):
        raise UsageError(
            "without Spark, a table is named by its directory, or by a catalog of PyIceberg's configuration",
            path=name,
            hint=f"name the directory; or `{install('iceberg')}` and set PYICEBERG_CATALOG__NAME__URI;"
            f" other commands than trial find it with --engine spark (`{install('spark')}`)",
        )
    location, selector = metadata_location(name), None
    if location is None:
        whole, selector = _split(name)
        location = None if selector is None else metadata_location(whole)
    if location is None:
        raise UsageError("the catalog has no such table", path=name)
    return _iceberg(name, portable(location), selector, snapshot, as_of)


def _split(name: str) -> tuple[str, str | None]:
    """A table's name without the selector of a snapshot at its end, and the selector."""
    table, _, last = name.rpartition(".")
    return (table, last) if table and SELECTOR.fullmatch(last) else (name, None)


def _iceberg(
    name: str, metadata: str, selector: str | None, snapshot: int | None, as_of: datetime | None
) -> TableSnapshot:
    """Open an Iceberg table at a metadata file."""
    match = None if selector is None else SELECTOR.fullmatch(selector)
    if match is None:
        return IcebergFiles(name, metadata, snapshot=snapshot, as_of=as_of)
    if snapshot is not None or as_of is not None:
        raise UsageError("a table is read at one snapshot or branch, and several are named", path=name)
    _, ref, unit, number = match.groups()
    if ref is not None:
        return IcebergFiles(name, metadata, ref=ref)
    if unit == "snapshot_id":
        return IcebergFiles(name, metadata, snapshot=int(number))
    return IcebergFiles(name, metadata, as_of=datetime.fromtimestamp(int(number) / 1000, UTC))
