"""Finds tables whose metadata would be out of date if a file below them changed.

A file that gets filters becomes larger. Tables record the sizes of their files, or copies of their footers:

Delta      _delta_log/ in a directory above     each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
_metadata  in a directory above                 a summary file copies the footers of the files below it

Above means: above the path as it was named, above what it leads to, and above each link on the way. A summary called
_common_metadata holds the schema only, which doesn't change.

On this machine, tables are looked for above each file before it is changed. In a store where each look is a request,
`TableSearch` looks into each directory once in a run.
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
"""The number of parent directories that are searched for a table's root: partitions don't nest deeper."""

_ICEBERG: Final = (".metadata.json", ".metadata.json.gz")
"""The suffixes of its metadata files; the second is the compressed form of old releases (TableMetadataParser)."""

_TABLE_NAMES: Final = {
    "_delta_log": Kind.DIRECTORY,
    ".hoodie": Kind.DIRECTORY,
    "metadata": Kind.DIRECTORY,
    "_metadata": Kind.FILE,
}
"""Names that show that a directory has a table or a summary."""
_IS_DELTA: Final = " is a Delta table: its log records each file's size"
_IS_ICEBERG: Final = " is an Iceberg table: its manifests record each file's size"
_CONCURRENT_LOOKUPS: Final = 16
"""Directories that are looked into at the same time."""
_CACHED_DIRECTORIES: Final = 1 << 16
"""Directories that are remembered besides those of the files at hand."""


def table_error(path: str, reason: str, command: str, columns: Sequence[str] = ()) -> UsageError:
    """The error of a file that isn't changed in place.

    Args:
        path: the file's.
        reason: as `reason_against` gave it.
        command: the command that would change the file.
        columns: the columns that the command names, which the hint's command names too.
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
    """The name for ``--table`` of the table that `reason_against` names; None for a table whose files `bloom`
    doesn't replace, and for a summary. An Iceberg table's name isn't in its files: the parts are the user's to fill
    in."""
    if reason.endswith(_IS_DELTA):
        root = reason.removesuffix(_IS_DELTA).replace("`", "``")
        return f"delta.`{root}`"
    return "CATALOG.DATABASE.TABLE" if reason.endswith(_IS_ICEBERG) else None


def reason_against(store: Store, path: str) -> str | None:
    """Why a file must not be changed in place; None where no table or summary is found above it.

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
                raise  # there may be a table that isn't seen
            continue  # a directory that may not be searched, above one that was; the file's other names are left
        if reason is not None:
            return reason
    return None


class TableSearch:
    """The tables above many files of one store. A directory is looked into once, several at a time.

    Of many thousands of directories only the last ones are remembered, which are those of neighbouring files.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reasons: dict[str, str | UnreadableError | None] = {}
        """The one that wasn't needed for longest is the first."""

    def look_above(self, paths: Iterable[str]) -> None:
        """Note what each directory above these files holds against changes below it."""
        needed: dict[str, None] = {}
        for path in {self._store.directory(path): path for path in paths}.values():
            needed |= dict.fromkeys(self._store.directories_above(path, _LEVELS))
        known = {directory: self._reasons.pop(directory) for directory in needed if directory in self._reasons}
        for directory in list(self._reasons)[: max(len(self._reasons) - _CACHED_DIRECTORIES, 0)]:
            del self._reasons[directory]
        self._reasons |= known
        self._look(directory for directory in needed if directory not in known)

    def _look(self, directories: Iterable[str]) -> None:
        from bloomcli.concurrency.threads import Threads  # commands that only read start without it

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
        """Why one of the files of the last `look_above` must not be changed in place; None where no table or summary
        is found above it.

        A directory above that the user may not list is passed over: a store's permissions are often those of a
        prefix.

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
    """The table or summary in a directory. It is looked up anew each time, as tables come into being; a store whose
    look-ups are requests may remember it for the time of a run."""
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
