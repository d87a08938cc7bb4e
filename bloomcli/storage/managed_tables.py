"""Finds the tables that files belong to.

A table's log or metadata say which of the files below its directory are current, and which of their rows are deleted.
A command that reads such a directory as plain files reads replaced files and deleted rows, too: `find` asks for
--as-files, and the other commands say so (`tables_of`).

A command that changes such a file makes the table's metadata wrong. Filters make a file larger, and tables record the
sizes of their files, or copies of their footers:

Delta      _delta_log/ in a directory above     each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
Paimon     snapshot/, schema/, manifest/ above  manifests have the file's size
_metadata  in a directory above                 a summary file copies the footers of the files below it

Above means: above the path as it was named, above the file that its links lead to, and above each link in between. A
summary named _common_metadata contains only the schema, which doesn't change.

For a local file, the directories above it are searched before each change. In other stores, where each lookup is a
request, `TableSearch` searches each directory once per run. A table below a directory that is listed in such a store
shows in the listing (`root_of_mark`), which takes no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.concurrency.threads import Threads
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.hints import Command
from bloomcli.storage import traffic
from bloomcli.storage.base import ICEBERG_METADATA, FileEntry, Kind, ManagedTable, Store, TableKind, root_of_mark
from bloomcli.storage.names import folder_of, has_wildcard
from bloomcli.storage.objects.client import AccessDenied
from bloomcli.storage.registry import store_of

_LEVELS: Final = 16
"""Maximum number of directories above a file that are searched for a table's root: partitions don't nest deeper."""

PAIMON_FOLDERS: Final = ("snapshot", "schema", "manifest")
"""The directories in which every Paimon table has its metadata."""
_TABLE_NAMES: Final = {
    "_delta_log": Kind.DIRECTORY,
    ".hoodie": Kind.DIRECTORY,
    "metadata": Kind.DIRECTORY,
    "_metadata": Kind.FILE,
    **dict.fromkeys(PAIMON_FOLDERS, Kind.DIRECTORY),
}
"""Names that show that a directory contains a table or a summary."""
_CONCURRENT_LOOKUPS: Final = 16
"""Number of directories that are searched at the same time."""


def table_error(path: str, table: ManagedTable, command: str, columns: Sequence[str] = ()) -> UsageError:
    """The error for a file that isn't changed in place because a table records facts about it.

    Args:
        path: the file.
        table: the table, or the summary.
        command: the command that would change the file.
        columns: the columns that the command names; the hint's command names them too.
    """
    commit = ""
    if table.name is not None and not is_metadata(path):
        commit = f"{Command(command, columns=tuple(columns), table=table.name)} lets the table commit the change; "
    if table.keeps_filters:
        commit = "CALL sys.rewrite_file_index('DATABASE.TABLE') adds the table's own filters; "
    return UsageError(
        f"not to be changed in place: {table.why_not_changed}",
        path=path,
        hint=f"{commit}-o writes a copy; --force changes it anyway, and the table's log must then be repaired",
    )


def is_metadata(path: str) -> bool:
    """Whether a file lies in the directory of a Delta or Hudi table's log, and so isn't a data file of the table."""
    return root_of_mark(f"{folder_of(path)}/") is not None


def table_above(store: Store, path: str) -> ManagedTable | None:
    """The table or summary that describes a file; None if there is none above it.

    Raises:
        UnreadableError: the store can't tell.
    """
    return TableSearch(store, [path]).above(path)


def tables_of(paths: Iterable[str], listed: Iterable[FileEntry], seen: Iterable[ManagedTable]) -> list[ManagedTable]:
    """The tables that describe listed files, each once. Summaries are left out: they describe current files.

    Args:
        paths: what the user named: files, directories, patterns.
        listed: the files that `paths` name.
        seen: the tables that the listing came across (`Store.list`), in stores where each lookup is a request. Only
            the directories above `paths` are looked up there; directories that may not be listed are left out.

    Raises:
        UnreadableError: a store can't tell.
    """
    all_tables = dict.fromkeys(seen)
    paths_of: dict[Store, dict[str, None]] = {}
    for path in map(_below_lookups, paths):
        if (store := store_of(path)).remote:
            paths_of.setdefault(store, {})[path] = None
    for path in {item.path.rpartition("/")[0]: item.path for item in listed if item.problem is None}.values():
        if not (store := store_of(path)).remote:
            paths_of.setdefault(store, {})[path] = None
    for store, below in paths_of.items():
        tables = TableSearch(store, below)
        all_tables |= {table: None for path in below if (table := tables.above(path, strict=False)) is not None}
    return [table for table in all_tables if table.kind is not TableKind.SUMMARY]


def _below_lookups(path: str) -> str:
    """A path whose directories above it aren't part of the listing of `path`: of a pattern, one of the directory
    that has the first wildcard, which the listing may show in part."""
    first = next((at for at, character in enumerate(path) if has_wildcard(character)), None)
    return path.rstrip("/") if first is None else path[:first].rpartition("/")[0] + "/*"


class TableSearch:
    """The tables and summaries above files of one store. Each directory is searched once, several at a time.

    Args:
        store: the store.
        paths: the files.
    """

    def __init__(self, store: Store, paths: Iterable[str]) -> None:
        self._store = store
        needed: dict[str, None] = {}
        of_directories = {store.directory(path): path for path in paths} if store.remote else {}
        for path in of_directories.values() or paths:  # files of this machine may be links
            needed |= dict.fromkeys(store.directories_above(path, _LEVELS))
        meter = traffic.current()

        def look(directory: str) -> ManagedTable | UnreadableError | None:
            try:
                with traffic.counted_by(meter):
                    return table_in(store, directory)
            except UnreadableError as error:
                return error

        with Threads(_CONCURRENT_LOOKUPS if store.remote else 0, "bloom-tables") as threads:
            self._tables = dict(zip(needed, threads.map(look, needed), strict=True))

    def above(self, path: str, *, strict: bool = True) -> ManagedTable | None:
        """The table or summary that describes one of the files; None if there is none above it.

        Skips directories above a readable one that the user may not list: permissions are often those of a prefix.
        If not `strict`, skips all directories that the user may not list.

        Raises:
            UnreadableError: the store can't tell.
        """
        lenient = not strict
        for directory in self._store.directories_above(path, _LEVELS):
            outcome = self._tables[directory]
            if isinstance(outcome, UnreadableError):
                denied = isinstance(outcome.__cause__, PermissionError) and not self._store.may_search(directory)
                if not denied and not (lenient and isinstance(outcome, AccessDenied)):
                    raise outcome  # a table may exist there
            elif outcome is not None:
                return outcome
            else:
                lenient = True
        return None


def table_in(store: Store, directory: str) -> ManagedTable | None:
    """The table or summary of which a directory has the metadata; None without one.

    Not cached here, because a table may be created at any time; `TableSearch` caches it for one run.
    """
    names = store.existing(directory, _TABLE_NAMES)
    if "_delta_log" in names:
        return ManagedTable(TableKind.DELTA, directory)
    if ".hoodie" in names:
        return ManagedTable(TableKind.HUDI, directory)
    if "metadata" in names and _has_metadata(store, store.join(directory, "metadata")):
        return ManagedTable(TableKind.ICEBERG, directory)
    if all(name in names for name in PAIMON_FOLDERS):
        return ManagedTable(TableKind.PAIMON, directory)
    if "_metadata" in names:
        return ManagedTable(TableKind.SUMMARY, store.join(directory, "_metadata"))
    return None


def _has_metadata(store: Store, directory: str) -> bool:
    """Whether a directory has an Iceberg table's metadata files."""
    try:
        return any(name.endswith(ICEBERG_METADATA) for name in store.names(directory))
    except UnreadableError as error:
        raise UnreadableError(
            f"{error.reason}, so it isn't known whether the directory is an Iceberg table's",
            path=directory,
            hint="check who may read it; --force changes files all the same",
        ) from None
