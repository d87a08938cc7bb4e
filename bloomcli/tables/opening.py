"""Opens tables: in the user's Spark session, in any catalog and format, or without Spark, to read them.

Who opens a table for a command that reads is decided in this order: the engine that the user names; Spark, if a
session exists or is described; bloom itself, for a table that it can open; Spark. Changes are always Spark's, because
the table's own library commits them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from bloomcli.datasets.hadoop_paths import absolute, portable
from bloomcli.datasets.spark_session import activate, first_line, is_connect, is_running
from bloomcli.errors import BloomError, UnreadableError, UnsupportedError, UsageError, install
from bloomcli.hints import Command
from bloomcli.storage.base import ICEBERG_METADATA, ManagedTable, TableKind
from bloomcli.storage.managed_tables import table_in
from bloomcli.storage.names import is_uri
from bloomcli.storage.registry import store_of
from bloomcli.tables.base import Table, TableSnapshot
from bloomcli.tables.delta.log import DeltaLogTable
from bloomcli.tables.iceberg.metadata import IcebergFiles, has_catalog, metadata_location, newest_metadata
from bloomcli.tables.iceberg.opening import SELECTOR
from bloomcli.tables.java import java_errors, library_hint, settings, without_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES: Final = ["bloomcli.tables.iceberg", "bloomcli.tables.delta"]
"""For each format, the module whose `open_table` opens its tables, and returns None for tables of other formats."""

_DELTA_PACKAGE: Final = "org.apache.spark.sql.delta."
_LIBRARIES: Final = {"iceberg": "Iceberg", "delta": "Delta"}

_REFUSED: Final = {
    "hudi": "a Hudi table: its commits record each file's size, and bloom doesn't write Hudi's timeline",
    "paimon": "a Paimon table: its manifests record each file's size, and bloom doesn't write Paimon's snapshots",
}
_REWRITE: Final = (
    "`bloom add -o DIRECTORY` writes changed copies of its files; the table's own engine writes new files"
)
_NAMES: Final = (
    "catalog.db.name, or delta.`/path` for a Delta table by its path; a part with other characters than letters,"
    " digits and _ needs backticks, and in a shell single quotes around the whole: 'ice.db.`my-table`'"
)
_LOOK: Final = (
    "SHOW TABLES IN catalog.db lists the tables of a catalog; --conf spark.sql.catalog.NAME=... gives the session"
    " one; see docs/tables.md"
)
_PLAIN: Final = "name its directory instead of the table: `bloom add DIRECTORY --columns NAME --in-place`"

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
    name: str, command: str | None = None, columns: Sequence[str] = (), other_options: Sequence[str] = ()
) -> None:
    """Raise UsageError for a path: Spark names tables in SQL.

    Args:
        name: the table's name.
        command: the command that changes the table, for the hint; None if the command only reads.
        columns: the columns that it names.
        other_options: its other options.
    """
    if path_of(name) != name:
        return
    table = _table_at(name)
    if table is None:
        raise UsageError(_NO_TABLE, path=name, hint="name the table's own directory")
    options = () if is_running() or table.kind is not TableKind.DELTA else settings("delta")
    if command is None:
        words = shlex.join(["--table", str(table.name), *options])
        raise UsageError("Spark names tables in SQL", path=name, hint=f"{words}; or leave Spark out to read it")
    line = Command(command, (*options, *other_options), tuple(columns), table=table.name)
    reason = f"{command} changes tables with Spark, which names them in SQL"
    raise UsageError(reason, path=name, hint=str(line))


def _table_at(path: str) -> ManagedTable | None:
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
    table = _table_at(path)
    if table is not None:
        selector = None
    elif selector is not None:
        table = _table_at(whole)
    if table is not None and table.kind is TableKind.ICEBERG:
        return _iceberg(name, newest_metadata(table.path), selector, snapshot, as_of)
    if table is not None and table.kind is TableKind.DELTA:
        return DeltaLogTable(str(table.name) if path == name else name, table.path, snapshot=snapshot, as_of=as_of)
    if table is not None and table.kind in _UNREAD:
        raise UnsupportedError(f"{table.kind.value}: bloom doesn't read {_UNREAD[table.kind]}", path=name)
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


def open_table(
    session: SparkSession, name: str, *, snapshot: int | None = None, as_of: datetime | None = None
) -> Table:
    """Open a table.

    Args:
        session: a classic session, with the table's catalog.
        name: as SQL names the table: ``catalog.db.name``, ``delta.`/path` ``.
        snapshot: the snapshot's id (Iceberg) or the version (Delta) to read; the newest if None.
        as_of: read the snapshot or version that was current at this time.

    Raises:
        UsageError: the table or the snapshot doesn't exist, or the name is an Iceberg view.
        UnsupportedError: another view, a table of another format, or a Spark Connect session.
    """
    if is_connect(session):
        raise UnsupportedError(
            "a Spark Connect session gives no access to a table's files and transactions",
            path=name,
            hint="use a classic session, as under spark-submit or with --master",
        )
    try:
        activate(session)
    except java_errors() as error:
        raise UnreadableError(
            f"the table can't be opened: {first_line(error)}", path=name, hint="start a new Spark session"
        ) from None
    quoted = _quoted(session, name)
    for module in MODULES:
        table: Table | None = import_module(module).open_table(session, name, snapshot=snapshot, as_of=as_of)
        if table is not None:
            return table
    raise _refusal(session, name, _provider(session, name, quoted))


def _refusal(session: Any, name: str, provider: str) -> BloomError:
    """The error for a table of another format.

    Args:
        session: the session.
        name: the table's name.
        provider: its format, as Spark names it.
    """
    if provider in _REFUSED:
        return UnsupportedError(_REFUSED[provider], path=name, hint=_REWRITE)
    if provider in _LIBRARIES:
        return UnsupportedError(
            f"a table of {_LIBRARIES[provider]}, whose library isn't in the Spark session",
            path=name,
            hint=library_hint(session, provider, name),
        )
    return UnsupportedError(f"a table of plain files ({provider}): no log records its files", path=name, hint=_PLAIN)


def _quoted(session: Any, name: str) -> str:
    """A table's name with each part in backticks. Raises UsageError for an invalid name."""
    if not name.strip():
        raise UsageError("the name of the table is empty", hint=_NAMES)
    try:
        parts = session._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
        return ".".join("`" + parts.apply(i).replace("`", "``") + "`" for i in range(parts.length()))
    except java_errors():
        raise UsageError(
            "this isn't the name of a table in SQL",
            path=name,
            hint=_NAMES,
        ) from None


def _provider(session: Any, name: str, quoted: str) -> str:
    """The format of a table, as Spark names it. Raises UsageError, UnsupportedError."""
    try:
        with without_log():
            rows = session.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    except java_errors() as error:
        reason = first_line(error)
        if "NOT_FOUND" in reason or "REQUIRES_SINGLE_PART_NAMESPACE" in reason:
            raise UsageError(
                "the Spark session has no such table",
                path=name,
                hint=_LOOK,
            ) from None
        hint = "see docs/tables.md"
        if "Cannot find catalog plugin class" in reason:
            hint = library_hint(session, "delta" if _DELTA_PACKAGE in reason else "iceberg", name)
        raise UsageError(f"the table can't be opened: {reason}", path=name, hint=hint) from None
    description = {row[0]: row[1] for row in rows if row[0]}
    provider = str(description.get("Provider", "")).lower()
    if "VIEW" in str(description.get("Type", "")).upper() or not provider:
        raise UnsupportedError("a view has no files", path=name, hint="name the table that the view reads")
    return provider
