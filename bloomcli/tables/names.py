"""Names of tables: a directory or a URI, the same in SQL (``delta.`/path` ``), or the name in a catalog."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Final

from bloomcli.datasets.hadoop_paths import located
from bloomcli.datasets.spark_session import is_running
from bloomcli.errors import BloomError, UnsupportedError, UsageError
from bloomcli.hints import Command
from bloomcli.storage.base import ManagedTable, TableKind
from bloomcli.storage.managed_tables import table_in
from bloomcli.storage.registry import store_of
from bloomcli.tables.java import settings

_BY_PATH: Final = re.compile(r"`?delta`?\.`((?:[^`]|``)+)`", re.IGNORECASE)
_UNREAD: Final = {TableKind.HUDI: "Hudi's timeline", TableKind.PAIMON: "Paimon's snapshots as a table"}
_NO_TABLE: Final = "no table is there: no directory _delta_log, and no directory metadata with *.metadata.json"


def path_of(name: str) -> str | None:
    """The path that a table's name is, or names (``delta.`/path` ``); None for the name in a catalog."""
    if (match := _BY_PATH.fullmatch(name)) is not None:
        return match[1].replace("``", "`")
    return name if name and (_is_path(name) or os.path.exists(name)) else None  # noqa: PTH110  text in


def _is_path(name: str) -> bool:
    """Whether a name has the form of a path or a URI, which no name in a catalog has."""
    return "`" not in name and ("/" in name or os.sep in name)


def table_at(path: str) -> ManagedTable | None:
    """The table whose directory is at a path; None if there is none."""
    location = located(path)
    return table_in(store_of(location), location.rstrip("/") or location)


def not_opened(path: str, table: ManagedTable | None) -> BloomError:
    """The error for a path without a table that `bloom` opens."""
    if table is not None and table.kind in _UNREAD:
        return UnsupportedError(f"{table.kind.value}: bloom doesn't read {_UNREAD[table.kind]}", path=path)
    return UsageError(_NO_TABLE, path=path, hint="name the table's own directory")


def check_named_in_sql(
    name: str, command: str | None = None, columns: Sequence[str] = (), other_options: Sequence[str] = ()
) -> None:
    """Raise UsageError for a path: Spark names tables in SQL.

    Args:
        name: the table's name. A name in the session's catalog may also be that of a directory here, without a table.
        command: the command that changes the table, for the hint; None if the command only reads.
        columns: the columns that it names.
        other_options: its other options.
    """
    if path_of(name) != name:
        return
    table = table_at(name)
    if table is None and not _is_path(name):
        return
    if table is None or table.name is None:
        raise not_opened(name, table)
    options = () if is_running() or table.kind is not TableKind.DELTA else settings("delta")
    if command is None:
        words = shlex.join(["--table", table.name, *options])
        raise UsageError("Spark names tables in SQL", path=name, hint=f"{words}; or leave Spark out to read it")
    line = Command(command, (*options, *other_options), tuple(columns), table=table.name)
    reason = f"{command} changes tables with Spark, which names them in SQL"
    raise UsageError(reason, path=name, hint=str(line))
