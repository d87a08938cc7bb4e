"""Files that mustn't change in place, because something else records their length or copies their footer.

Delta      _delta_log/ in a directory above     each add action has the file's size
Iceberg    metadata/*.metadata.json above       manifests have file_size_in_bytes and split offsets
Hudi       .hoodie/ above                       commit metadata has the file's size
_metadata  in a directory above                 a summary file copies the footers of the files below it

Above means: above the path as it was named, above what it leads to, and above each link on the way. A summary called
_common_metadata holds the schema only, which doesn't change.
"""

from __future__ import annotations

from typing import Final

from bloomcli.errors import UnreadableError
from bloomcli.storage.base import Kind, Store

_LEVELS: Final = 16
"""The number of parent directories that are searched for a table's root: partitions don't nest deeper."""

_ICEBERG: Final = (".metadata.json", ".metadata.json.gz")
"""The suffixes of its metadata files; the second is the compressed form of old releases (TableMetadataParser)."""

_MARKS: Final = {
    "_delta_log": Kind.DIRECTORY,
    ".hoodie": Kind.DIRECTORY,
    "metadata": Kind.DIRECTORY,
    "_metadata": Kind.FILE,
}
"""The names that tell of a table or a summary."""


def reason_against(store: Store, path: str) -> str | None:
    """Why a file must not be changed in place; None where no table or summary is found above it.

    Raises:
        UnreadableError: the store can't tell.
    """
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


def _directory_reason(store: Store, directory: str) -> str | None:
    """The table or summary in a directory. It is looked up anew each time, as tables come into being; a store whose
    look-ups are requests may remember it for the time of a run."""
    found = store.existing(directory, _MARKS)
    if "_delta_log" in found:
        return f"{directory} is a Delta table: its log records each file's size"
    if ".hoodie" in found:
        return f"{directory} is a Hudi table: its commits record each file's size"
    if "metadata" in found and _has_metadata(store, store.join(directory, "metadata")):
        return f"{directory} is an Iceberg table: its manifests record each file's size"
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
