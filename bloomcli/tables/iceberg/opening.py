"""Opens an Iceberg table by its name in Spark SQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError
from bloomcli.tables.base import in_sql
from bloomcli.tables.iceberg.commit import IcebergTable
from bloomcli.tables.iceberg.java import Java, class_names, message, reading
from bloomcli.tables.iceberg.reading import SELECTOR
from bloomcli.tables.java import java_errors, without_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UTIL: Final = "spark.Spark3Util"
_ICEBERG_PACKAGE: Final = "org.apache.iceberg.spark."
_NO_SUCH: Final = {"AnalysisException", "ParseException", "NoSuchTableException", "NoSuchNamespaceException"}


def open_table(
    session: SparkSession, name: str, *, snapshot: int | None = None, as_of: datetime | None = None
) -> IcebergTable | None:
    """Open an Iceberg table of the session's catalogs; None if the name isn't an Iceberg table.

    Args:
        session: a classic session.
        name: the table's name in SQL: ``ice.db.orders``. A suffix ``.branch_NAME``, ``.tag_NAME``, ``.snapshot_id_N``
            or ``.at_timestamp_MILLISECONDS`` selects a branch or an older snapshot.
        snapshot: the id of the snapshot to read; the newest of the branch if None.
        as_of: read the snapshot that was current at this time, which has a zone.

    Raises:
        UsageError: the snapshot doesn't exist, or the name is a view or a metadata table.
        UnreadableError: the catalog or the table's metadata can't be read.
    """
    java = Java(session)
    if not java.has(f"org.apache.iceberg.{_UTIL}"):
        return None
    with without_log():
        loaded = _load(java, name)
    if loaded is None:
        return None
    spark_table, selector, full_name = loaded
    table = spark_table.table()
    branch, selected = _resolve_selector(java, table, selector, name)
    chosen = [choice for choice in (snapshot, as_of, selected) if choice is not None]
    if len(chosen) > 1 or (chosen and branch is not None):
        raise UsageError("a table is read at one snapshot or branch, and several are named", path=name)
    with reading("the table's metadata can't be read", name):
        table.refresh()
    _check_staging(java, table, branch, name)
    fixed = selected if snapshot is None else snapshot
    if as_of is not None:
        fixed = _snapshot_at(java, table, round(as_of.timestamp() * 1000), name)
    if fixed is not None and table.snapshot(fixed) is None:
        raise UsageError(f"the table has no snapshot {fixed}", path=name, hint=_snapshots_hint(name))
    return IcebergTable(java, name, table, branch=branch, fixed=fixed, full_name=full_name)


def _load(java: Java, name: str) -> tuple[Any, str | None, str] | None:
    """Load Iceberg's table for Spark, the selector in its name, and its full name; None if it isn't an Iceberg table.

    Raises UsageError for a view or a metadata table.
    """
    iceberg = False
    try:
        pair = java.iceberg(_UTIL).catalogAndIdentifier(java.spark, name)
        catalog, identifier = pair.catalog(), pair.identifier()
        iceberg = _class_name(catalog).startswith(_ICEBERG_PACKAGE)
        try:
            table = catalog.loadTable(identifier)
        except java_errors():
            if iceberg and _is_view(catalog, identifier):
                raise UsageError("it is a view, and has no files", path=name) from None
            raise
    except java_errors() as error:
        raised = class_names(error)
        if not raised & _NO_SUCH and "Cannot use branch" in message(error):
            raise UsageError("the table has no such branch", path=name) from None
        if iceberg and not raised & _NO_SUCH:
            raise UnreadableError(f"the catalog can't load the table: {message(error)}", path=name) from None
        return None
    kind = _class_name(table)
    if not kind.startswith(_ICEBERG_PACKAGE):
        return None
    of = None if kind.endswith("SparkChangelogTable") else table.table()
    if of is None or _is_metadata(of):
        table_name = name.rpartition(".")[0]
        raise UsageError("it is a metadata table, and has no data files of its own", path=name, hint=table_name)
    last = str(identifier.name())  # which may look like a selector, and be the table's own name
    parts = [str(catalog.name()), *map(str, identifier.namespace()), last]
    selects = SELECTOR.fullmatch(last) and str(of.name()).rpartition(".")[2] != last
    return (table, last, in_sql(parts[:-1])) if selects else (table, None, in_sql(parts))


def _class_name(thing: Any) -> str:
    return str(thing.getClass().getName())


def _is_metadata(table: Any) -> bool:
    kind = table.getClass()
    while kind is not None:
        if kind.getSimpleName() == "BaseMetadataTable":
            return True
        kind = kind.getSuperclass()
    return False


def _is_view(catalog: Any, identifier: Any) -> bool:
    try:
        return catalog.loadView(identifier) is not None
    except java_errors():
        return False


def _resolve_selector(java: Java, table: Any, selector: str | None, name: str) -> tuple[str | None, int | None]:
    """The branch, or the id of the snapshot, that a selector in a table's name chooses."""
    match = None if selector is None else SELECTOR.fullmatch(selector)
    if match is None:
        return None, None
    kind, ref, unit, number = match.groups()
    if kind == "branch":
        return (None if ref == "main" else ref), None
    if kind == "tag":
        return None, int(table.snapshot(ref).snapshotId())
    return None, int(number) if unit == "snapshot_id" else _snapshot_at(java, table, int(number), name)


def _snapshot_at(java: Java, table: Any, milliseconds: int, name: str) -> int:
    """The id of the main branch's snapshot at a time. Raises UsageError."""
    try:
        return int(java.iceberg("util.SnapshotUtil").snapshotIdAsOfTime(table, milliseconds))
    except java_errors() as error:
        raise UsageError(message(error), path=name, hint=_snapshots_hint(name)) from None


def _check_staging(java: Java, table: Any, branch: str | None, name: str) -> None:
    """Raise an error if the session's settings send writes to another branch than the name selects."""
    if branch is not None or str(table.properties().get("write.wap.enabled")).lower() != "true":
        return
    conf = java.session.conf
    staged = conf.get("spark.wap.branch", None)
    if staged:
        hint = f"name the branch: {name}.branch_{staged}, or unset spark.wap.branch"
        raise UsageError("the session's spark.wap.branch sends reads and writes to a branch", path=name, hint=hint)
    if conf.get("spark.wap.id", None):
        raise UnsupportedError("the session's spark.wap.id stages commits", path=name, hint="unset spark.wap.id")


def _snapshots_hint(name: str) -> str:
    return f"the table's snapshots: SELECT committed_at, snapshot_id FROM {name}.snapshots"  # noqa: S608  a hint
