"""Opens tables in the user's Spark session, in any catalog and format."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bloomcli.datasets.spark_session import activate, first_line, is_connect
from bloomcli.errors import BloomError, UnreadableError, UnsupportedError, UsageError
from bloomcli.tables.base import Table
from bloomcli.tables.java import java_errors, library_hint, without_log
from bloomcli.tables.names import check_named_in_sql

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
    check_named_in_sql(name)
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
