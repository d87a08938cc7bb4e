"""Finds tables whose metadata would be out of date if one of their files changed.

Filters make a file larger. Tables record the sizes of their files, or copies of their footers:

Delta      _delta_log/ in a directory above     each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
_metadata  in a directory above                 a summary file copies the footers of the files below it

Above means: above the path as it was named, above the file that its links lead to, and above each link in between. A
summary named _common_metadata contains only the schema, which doesn't change.

For a local file, the directories above it are searched before each change. In other stores, where each lookup is a
request, `TableSearch` searches each directory once per run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from bloomcli.errors import UnreadableError, UsageError
from bloomcli.hints import listed
from bloomcli.storage import traffic
from bloomcli.storage.base import Kind, Store
from bloomcli.storage.objects.client import AccessDenied

_LEVELS: Final = 16
"""Maximum number of directories above a file that are searched for a table's root: partitions don't nest deeper."""

_ICEBERG: Final = (".metadata.json", ".metadata.json.gz")
"""Suffixes of Iceberg's metadata files. Old releases wrote compressed ones with the second (TableMetadataParser)."""

_TABLE_NAMES: Final = {
    "_delta_log": Kind.DIRECTORY,
    ".hoodie": Kind.DIRECTORY,
    "metadata": Kind.DIRECTORY,
    "_metadata": Kind.FILE,
}
"""Names that show that a directory contains a table or a summary."""
_IS_DELTA: Final = " is a Delta table: its log records each file's size"
_IS_ICEBERG: Final = " is an Iceberg table: its manifests record each file's size"
_CONCURRENT_LOOKUPS: Final = 16
"""Number of directories that are searched at the same time."""
_CACHED_DIRECTORIES: Final = 1 << 16
"""Number of directories that are cached in addition to those above the current files."""


def table_error(path: str, reason: str, command: str, columns: Sequence[str] = ()) -> UsageError:
    """The error for a file that isn't changed in place because a table records facts about it.

    Args:
        path: the file.
        reason: the result of `reason_against`.
        command: the command that would change the file.
        columns: the columns that the command names; the hint's command names them too.
    """
    import shlex

    table = table_name(reason)
    named = f" --columns {shlex.quote(','.join(map(listed, columns)))}" if columns else ""
    commit = ""
    if table is not None:
        commit = f"bloom {command} --table {shlex.quote(table)}{named} lets the table commit the change; "
    return UsageError(
        f"not to be changed in place: {reason}",
        path=path,
        hint=f"{commit}-o writes a copy; --force changes it anyway, and the table's log must then be repaired",
    )


def table_name(reason: str) -> str | None:
    """The ``--table`` name of the table in a result of `reason_against`.

    None for a summary, and for a table whose files `bloom` doesn't replace. An Iceberg table's files don't contain
    its name, so the result is a template for the user to fill in.
    """
    if reason.endswith(_IS_DELTA):
        root = reason.removesuffix(_IS_DELTA).replace("`", "``")
        return f"delta.`{root}`"
    return "CATALOG.DATABASE.TABLE" if reason.endswith(_IS_ICEBERG) else None


def reason_against(store: Store, path: str) -> str | None:
    """The reason not to change a file in place; None if no table or summary exists above it.

    Raises:
        UnreadableError: the store can't tell.
    """
    if store.remote:
        tables = TableSearch(store)
        tables.look_above([path])
        return tables.reason_against(path)
    seen: set[str] = set()
    for directory in store.directories_above(path, _LEVELS):
        if directory in seen:
            continue
        seen.add(directory)
        try:
            reason = _directory_reason(store, directory)
        except UnreadableError as error:
            if not isinstance(error.__cause__, PermissionError) or store.may_search(directory):
                raise  # a table may exist there
            continue  # above a directory that was searched; the file's other paths remain
        if reason is not None:
            return reason
    return None


class TableSearch:
    """Finds the tables above many files of one store. Searches each directory once, several at a time.

    Caches the results of the most recently used directories: neighbouring files have the same ones.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reasons: dict[str, str | UnreadableError | None] = {}
        """The result of each directory, the least recently used first."""

    def look_above(self, paths: Iterable[str]) -> None:
        """Search each directory above these files for tables and summaries, and keep the results."""
        needed: dict[str, None] = {}
        for path in {self._store.directory(path): path for path in paths}.values():
            needed |= dict.fromkeys(self._store.directories_above(path, _LEVELS))
        known = {directory: self._reasons.pop(directory) for directory in needed if directory in self._reasons}
        for directory in list(self._reasons)[: max(len(self._reasons) - _CACHED_DIRECTORIES, 0)]:
            del self._reasons[directory]
        self._reasons |= known
        self._look(directory for directory in needed if directory not in known)

    def _look(self, directories: Iterable[str]) -> None:
        from bloomcli.concurrency.threads import Threads  # commands that only read don't import it

        meter = traffic.current()

        def look(directory: str) -> str | None:
            with traffic.counted_by(meter):
                return _directory_reason(self._store, directory)

        with Threads(_CONCURRENT_LOOKUPS, "bloom-tables") as threads:
            looks = {directory: threads.submit(partial(look, directory)) for directory in directories}
            for directory, future in looks.items():
                try:
                    self._reasons[directory] = threads.result(future)
                except UnreadableError as error:
                    self._reasons[directory] = error

    def reason_against(self, path: str) -> str | None:
        """The reason not to change one of the last `look_above`'s files in place; None if no table or summary exists
        above it.

        Skips directories above a readable one that the user may not list: permissions are often those of a prefix.

        Raises:
            UnreadableError: the store can't tell.
        """
        seen = False
        for directory in self._store.directories_above(path, _LEVELS):
            found = self._reasons[directory]
            if isinstance(found, UnreadableError):
                if not (seen and isinstance(found, AccessDenied)):
                    raise found
            elif found is not None:
                return found
            else:
                seen = True
        return None


def _directory_reason(store: Store, directory: str) -> str | None:
    """The reason that a directory's table or summary gives against changes of the files below it; None without one.

    Not cached here, because a table may be created at any time; `TableSearch` caches it for one run.
    """
    found = store.existing(directory, _TABLE_NAMES)
    if "_delta_log" in found:
        return directory + _IS_DELTA
    if ".hoodie" in found:
        return f"{directory} is a Hudi table: its commits record each file's size"
    if "metadata" in found and _has_metadata(store, store.join(directory, "metadata")):
        return directory + _IS_ICEBERG
    if "_metadata" in found:
        return f"{store.join(directory, '_metadata')} holds copies of the footers of the files below it"
    return None


def _has_metadata(store: Store, directory: str) -> bool:
    """Whether a directory has an Iceberg table's metadata files."""
    try:
        return any(name.endswith(_ICEBERG) for name in store.names(directory))
    except UnreadableError as error:
        why = error.reason.rpartition(": ")[2]
        raise UnreadableError(
            f"the directory can't be read, so it isn't known whether it is an Iceberg table's: {why}",
            path=directory,
            hint="check who may read it; --force changes files all the same",
        ) from None
