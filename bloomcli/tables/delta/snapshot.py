"""A version of a Delta table: its protocol and features, its metadata, and the entries of its data files.

Tables whose features let data files be replaced without loss are changed, others are refused.

The path of an entry (``add`` or ``remove``) is a URI, nearly always relative to the table:
``p=a%2520b/part-0.parquet`` is ``part-0.parquet`` in the directory ``p=a%20b``. Shallow clones have absolute paths.
All other code uses full paths, not encoded, as Hadoop's ``Path`` spells them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.tables.delta.jvm import Jvm, message
from bloomcli.tables.java import java_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


NEWEST_READER: Final = 3
_NEWEST_WRITER: Final = 7
"""The protocol versions with lists of features. Older versions have a fixed set, all of it in `KEPT`."""

KEPT: Final = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features that a replacement keeps: the new file has the same data, and its log entry keeps all other fields."""

_CATALOG: Final = "commits of the table go through its catalog, which bloom doesn't support"
_REDIRECT: Final = "the table redirects to another one"
REFUSED: Final[Mapping[str, str]] = {
    "adaptiveMetadata-preview": "files are listed in a tree of manifests, which bloom doesn't support",
    "catalogManaged": _CATALOG,
    "catalogOwned-preview": _CATALOG,
    "coordinatedCommits-preview": _CATALOG,
    "geospatial": "bloom isn't tested with it",
    "geospatial-dev": "bloom isn't tested with it",
    "redirectReaderWriter-preview": _REDIRECT,
    "redirectWriterOnly-preview": _REDIRECT,
}
"""Features of Delta that are refused, with the reason."""

_UNIFORM: Final = "delta.universalFormat.enabledFormats"
_SUSPENDED: Final = "delta.rowTrackingSuspended"
_BLOOM_INDEX: Final = '"delta.bloomFilter.'


def unsupported(features: Collection[str]) -> str | None:
    """The features that bloom doesn't support, with the reasons; None if it supports all."""
    reasons = [f"{name}: {REFUSED.get(name, 'bloom does not know it')}" for name in sorted(set(features) - KEPT)]
    return "table feature " + "; table feature ".join(reasons) if reasons else None


def refusal(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    """Why data files of a table can't be replaced; None if they can.

    Args:
        protocol: the log's ``protocol``.
        metadata: the log's ``metaData``.
    """
    reader, writer = protocol["minReaderVersion"], protocol["minWriterVersion"]
    if reader > NEWEST_READER or writer > _NEWEST_WRITER:
        return f"protocol version {reader} for readers and {writer} for writers: bloom doesn't know it"
    used = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if (why := unsupported(used)) is not None:
        return why
    configuration: Mapping[str, str] = metadata["configuration"]
    if configuration.get(_UNIFORM, "").strip():
        return (
            f"{_UNIFORM} is {configuration[_UNIFORM]}: Delta writes the table's metadata for other formats too, and"
            " bloom isn't tested with it"
        )
    if configuration.get(_SUSPENDED, "false").lower() == "true":
        return f"{_SUSPENDED} is true: rows would lose their ids"
    if _BLOOM_INDEX in metadata["schemaString"]:
        return "Databricks' Bloom filter indexes belong to the names of data files, and would be lost"
    return None


def check(name: str, protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if data files of the table can't be replaced."""
    if (why := refusal(protocol, metadata)) is not None:
        raise UnsupportedError(f"data files of this Delta table can't be replaced: {why}", path=name)


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


def replacement(entry: Entry, path: str, size: int, modified: int, stats: str | None = None) -> Entry:
    """The ``add`` of the file that replaces an entry's file: only path, size and time differ, and `stats`."""
    new = {**entry, "path": path, "size": size, "modificationTime": modified, "dataChange": False}
    return new if stats is None else {**new, "stats": stats}


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


LISTED: Final = ("path", "partitionValues", "size", "deletionVector")
"""The fields that identify an entry's file."""


class Snapshot:
    """A version of a table."""

    def __init__(self, jvm: Jvm, snapshot: Any) -> None:
        """`snapshot` is Delta's own ``Snapshot``."""
        self._jvm = jvm
        self._snapshot = snapshot
        self.version: int = snapshot.version()

    @cached_property
    def protocol(self) -> dict[str, Any]:
        """The log's ``protocol``."""
        protocol: dict[str, Any] = json.loads(self._snapshot.protocol().json())["protocol"]
        return protocol

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The log's ``metaData``."""
        metadata: dict[str, Any] = json.loads(self._snapshot.metadata().json())["metaData"]
        return {**metadata, "configuration": metadata.get("configuration") or {}}

    def listed(self, *more: str) -> list[dict[str, Any]]:
        """The entries of all data files, ordered by path, with only the fields that identify the file, and `more`."""
        try:
            return _collected(self._entries().select(*LISTED, *more))
        except java_errors() as error:
            raise UnreadableError(f"the table's files can't be listed: {message(error)}") from None

    def entries(self, paths: Collection[str]) -> dict[str, dict[str, Any]]:
        """The complete entries of some paths, by path."""
        if not paths:
            return {}
        from pyspark.sql.functions import broadcast

        chosen = self._jvm.frame(self._jvm.texts(list(paths)).toDF(self._jvm.strings(["path"])))
        return {e["path"]: e for e in _collected(self._entries().join(broadcast(chosen), "path", "left_semi"))}

    def _entries(self) -> DataFrame:
        return self._jvm.frame(self._snapshot.allFiles().toDF())


def _collected(entries: DataFrame) -> list[dict[str, Any]]:
    from pyspark.sql.functions import struct, to_json

    rows = entries.select(to_json(struct("*"))).collect()
    return sorted(({"partitionValues": {}, **json.loads(row[0])} for row in rows), key=lambda entry: entry["path"])
