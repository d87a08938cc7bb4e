"""Lists the files to search, and refuses files of tables: a table's metadata say which rows are deleted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bloomcli.commands.options import FindOptions
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.storage.base import FileEntry, ManagedTable
from bloomcli.storage.listing import expand, no_files
from bloomcli.storage.managed_tables import is_metadata, tables_of


def listed_files(paths: Sequence[str], options: FindOptions) -> Sequence[FileEntry]:
    """The files that paths name.

    Raises:
        UsageError: there are no files; or some belong to a table, and the options don't say `as_files`.
        UnreadableError: a directory can't be listed, or it isn't known whether its files belong to a table.
    """
    if options.as_files:
        listed = expand(paths)
    else:
        seen: set[ManagedTable] = set()
        listed = expand(paths, seen)
        try:
            tables = tables_of(paths, listed, seen)
        except UnreadableError as error:
            error.hint = "check who may read it; --as-files searches the files all the same"
            raise
        if tables:
            raise _table_error(tables[0], len(tables) - 1, listed, options)
    if not listed:
        raise no_files(paths)
    return listed


def _table_error(table: ManagedTable, others: int, listed: Sequence[FileEntry], options: FindOptions) -> UsageError:
    if listed and all(is_metadata(item.path) for item in listed):
        return UsageError(
            f"the files are metadata of {table.kind.value}, and hold none of its rows",
            path=table.path,
            hint="--as-files searches them as plain files",
        )
    others_too = f" (and {others:,} more)" if others else ""
    by_table = ""
    if table.name_to_read is not None:
        column = shlex.quote(options.column)
        by_table = (
            f"bloom find VALUE -c {column} --table {shlex.quote(table.name_to_read)} searches the table's rows; "
        )
    return UsageError(
        f"it is {table.kind.value}{others_too}: its files may have rows that the table has replaced or deleted",
        path=table.path,
        hint=f"{by_table}--as-files searches all files below it, with these rows",
    )
