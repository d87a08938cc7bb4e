"""The entries of a Delta log for data files: ``add`` and ``remove``.

An entry's path is a URI, nearly always relative to the table: ``p=a%2520b/part-0.parquet`` is ``part-0.parquet`` in
the directory ``p=a%20b``. Shallow clones have absolute paths. All other code uses full paths, not encoded,
as Hadoop's ``Path`` spells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

Entry = dict[str, Any]
"""An ``add`` of the log, as parsed JSON."""

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.parquet")
_NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""The characters that Spark escapes in the names of partition directories."""

_REMOVED_FIELDS: Final = ("path", "partitionValues", "size", "tags", "deletionVector", "baseRowId",
                          "defaultRowCommitVersion", "stats")  # fmt: skip


def is_absolute(path: str) -> bool:
    """Whether an entry's path isn't relative to the table."""
    return _ABSOLUTE.match(path) is not None


def full_path(location: str, path: str) -> str:
    """The full path of an entry's file, as Hadoop spells it.

    Args:
        location: the table's directory, as Hadoop spells it.
        path: the entry's path.
    """
    decoded = unquote(path)
    if not is_absolute(path):
        return f"{location.rstrip('/')}/{decoded}"
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*:)//(?=/)", r"\1", decoded)  # file:///x is file:/x for Hadoop


def new_entry_path(path: str) -> str:
    """A path for the file that replaces an entry's file: in the same directory, with another UUID in its name.

    The directory is that of the partition or, if the table uses them, a random prefix. A file of another table (a
    shallow clone's source) is replaced by a file in this table's own directory.
    """
    directory, slash, name = path.rpartition("/")
    if _PLAIN_NAME.fullmatch(name) and _UUID.search(name):
        name = _UUID.sub(str(uuid4()), name, count=1)
    else:
        name = f"part-00000-{uuid4()}-c000.parquet"
    return name if is_absolute(path) else f"{directory}{slash}{name}"


class Record(NamedTuple):
    """The identity of a data file in a snapshot."""

    path: str
    """The path in its entry."""
    deletion_vector: tuple[object, ...] | None


def record_of(entry: Mapping[str, Any]) -> Record:
    """The identity of an entry's file: with another deletion vector, it has other rows."""
    return Record(entry["path"], deletion_vector_of(entry))


def deletion_vector_of(entry: Mapping[str, Any]) -> tuple[object, ...] | None:
    """The identity of an entry's deletion vector; None if it has none."""
    vector = entry.get("deletionVector")
    return None if vector is None else (vector["storageType"], vector["pathOrInlineDv"], vector.get("offset"))


def removal(entry: Entry, now: int) -> Entry:
    """The ``remove`` for an entry's file, without a change of data; `now` in milliseconds."""
    kept = {key: entry[key] for key in _REMOVED_FIELDS if entry.get(key) is not None}
    return {**kept, "deletionTimestamp": now, "dataChange": False, "extendedFileMetadata": True}


def replacement(entry: Entry, path: str, size: int, modified: int) -> Entry:
    """The ``add`` of the file that replaces an entry's file: only path, size and time differ."""
    return {**entry, "path": path, "size": size, "modificationTime": modified, "dataChange": False}


def partition_of(entry: Mapping[str, Any], columns: Sequence[tuple[str, str]]) -> str:
    """An entry's partition, such as ``day=2026-11-01/region=eu``, escaped as in the names of directories.

    Args:
        entry: the entry.
        columns: the partition columns' names and physical names.
    """
    values: Mapping[str, str | None] = entry.get("partitionValues") or {}
    return "/".join(_equation(name, values.get(physical)) for name, physical in columns)


def _equation(name: str, value: str | None) -> str:
    return f"{_escaped(name)}={_NULL_DIRECTORY if value is None or value == '' else _escaped(value)}"


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
