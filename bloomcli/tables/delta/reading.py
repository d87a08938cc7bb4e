"""Reads a version of a Delta table from its metadata and its entries, whoever has read these from the log."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from base64 import b85decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol
from uuid import UUID

from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.record_shape import RecordField, Shape
from bloomcli.errors import CorruptFile, UnreadableError
from bloomcli.model.schema import ColumnNames
from bloomcli.model.table_statistics import FileStatistics
from bloomcli.tables.base import DataFile, FilterRequest, TableSnapshot, in_sql
from bloomcli.tables.columns import arrow_type
from bloomcli.tables.deleted_rows import DeletedRows, DeletionVector, TableRows
from bloomcli.tables.delta import schema, statistics
from bloomcli.tables.delta.schema import ID, PHYSICAL, mapping_mode
from bloomcli.tables.delta.snapshot import full_path, partition_of, record_of


class Version(Protocol):
    """A version of a table's log."""

    version: int

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The log's ``metaData``."""

    def listed(self, *more: str) -> list[dict[str, Any]]:
        """The entries of all data files, ordered by path, with the fields that identify the file, and `more`. Raises
        UnreadableError."""


class DeltaSnapshot(TableSnapshot):
    """A Delta table at one version.

    Args:
        name: as `--table` takes it.
        location: the table's directory.
        snapshot: the version.
    """

    format = "delta"

    def __init__(self, name: str, location: str, snapshot: Version) -> None:
        self.name = name
        self._location = location
        self._snapshot = snapshot

    @property
    def version(self) -> int:
        """The version that `files` lists."""
        return self._snapshot.version

    def names(self) -> ColumnNames:
        """The leaf columns of the version's schema, and their names in files."""
        return schema.names_of(self._snapshot.metadata)

    def files(self, where: str | None = None) -> list[DataFile]:
        """The version's data files by path: all, or those that data skipping keeps for a condition."""
        chosen = None if where is None else self._chosen(where)
        columns = schema.partition_columns(self._snapshot.metadata)
        provider = self._snapshot.metadata["format"]["provider"]
        files = []
        for path, entry in self._entries().items():
            if chosen is None or path in chosen:
                partition = partition_of(entry, columns)
                record = record_of(entry)
                files.append(
                    DataFile(path=path, size=entry["size"], format=provider, partition=partition, record=record)
                )
        return files

    def _entries(self, *more: str) -> dict[str, dict[str, Any]]:
        """The entries by the full paths of their files."""
        try:
            return {full_path(self._location, entry["path"]): entry for entry in self._snapshot.listed(*more)}
        except UnreadableError as error:
            error.path = error.path or self.name
            raise

    @abstractmethod
    def _chosen(self, where: str) -> set[str]:
        """The full paths of the files that a query with a condition reads. Raises UsageError."""

    def rows(self, files: Sequence[DataFile]) -> TableRows:
        """The version's columns, its deletion vectors, and the values of its partitions."""
        mine = {file.path for file in files}
        entries = {path: entry for path, entry in self._entries().items() if path in mine}
        names = schema.partition_columns(self._snapshot.metadata)
        deletes = {path: deleted_of(entry, self._location) for path, entry in entries.items()}
        constants = {}
        for path, entry in entries.items() if names else ():
            values = entry.get("partitionValues") or {}
            constants[path] = {name: values.get(physical) or None for name, physical in names}  # empty texts are null
        deleted = {path: rows for path, rows in deletes.items() if rows is not None}
        return TableRows(shape=shape_of(self._snapshot.metadata), deleted=deleted, constants=constants)

    def statistics(self, files: Sequence[DataFile]) -> Iterator[FileStatistics]:
        """The statistics in the log or its checkpoint."""
        entries = self._entries("stats")
        leaves = statistics.leaves_of(self._snapshot.metadata)
        partitions = self._snapshot.metadata["partitionColumns"]
        fields = (field["name"] for field in json.loads(self._snapshot.metadata["schemaString"])["fields"])
        column = in_sql([next((name for name in fields if name not in partitions), "COLUMN")])
        rewriting = f"UPDATE {self.name} SET {column} = {column}"  # noqa: S608  a hint
        for file in files:
            yield replace(statistics.statistics_of(entries[file.path], leaves, partitions), rewriting=rewriting)

    def filter_requests(self) -> list[FilterRequest]:
        """The filters that the table properties ``parquet.bloom.filter.*`` request."""
        return schema.filter_requests_of(self._snapshot.metadata)


_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_B85: Final = str.maketrans(
    _Z85, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
"""Python's own decoder has the same digits, written in other characters."""
_UUID_CHARS: Final = 20
_FRAME_BYTES: Final = 8
"""The length before a vector and the checksum after it."""


def shape_of(metadata: Mapping[str, Any]) -> Shape:
    """The columns of a version, and their names in files.

    Args:
        metadata: the log's ``metaData``.
    """
    partitions = set(metadata["partitionColumns"])
    mode = mapping_mode(metadata)
    fields = json.loads(metadata["schemaString"])["fields"]
    return tuple(_field(field, mode, constant=field["name"] in partitions) for field in fields)


def _field(field: Mapping[str, Any], mode: str, *, constant: bool = False) -> RecordField:
    facts: Mapping[str, Any] = field.get("metadata") or {}
    name = field["name"]
    return RecordField(
        name=name,
        type=arrow_type(field["type"]),
        field_id=facts.get(ID) if mode == "id" else None,
        names=(name if mode == "none" else facts.get(PHYSICAL, name),),
        parts=_parts(field["type"], mode),
        constant=name if constant else None,
    )


def _parts(kind: Any, mode: str) -> Shape:
    if isinstance(kind, str):
        return ()
    if kind["type"] == "struct":
        return tuple(_field(field, mode) for field in kind["fields"])
    named = {
        "array": (("element", "elementType"),),
        "map": (("key", "keyType"), ("value", "valueType")),
    }.get(kind["type"], ())
    return tuple(
        RecordField(name=name, type=arrow_type(kind[inner]), names=(name,), parts=_parts(kind[inner], mode))
        for name, inner in named
    )


def deleted_of(entry: Mapping[str, Any], location: str) -> DeletedRows | None:
    """The deleted rows of an entry's file; None if it has none.

    Args:
        entry: the log's ``add``.
        location: the table's directory, as Hadoop spells it.

    Raises:
        CorruptFile: the deletion vector has a kind that Delta doesn't define.
    """
    vector = entry.get("deletionVector")
    if vector is None:
        return None
    path = full_path(location, entry["path"])
    kind, where, size = vector["storageType"], vector["pathOrInlineDv"], int(vector["sizeInBytes"])
    rows = None if vector.get("cardinality") is None else int(vector["cardinality"])
    if kind == "i":
        return DeletedRows(
            data_file=path, vectors=(DeletionVector(path=path, body=z85(where, path)[:size], rows=rows),)
        )
    if kind == "u":
        prefix, name = where[:-_UUID_CHARS], UUID(bytes=z85(where[-_UUID_CHARS:], path))
        folder = f"{location.rstrip('/')}/{prefix}" if prefix else location.rstrip("/")
        file = f"{folder}/deletion_vector_{name}.bin"
    elif kind == "p":
        file = full_path(location, where)
    else:
        raise CorruptFile(f"a deletion vector of the kind {kind!r}, which Delta doesn't have", path=path)
    blob = DeletionVector(
        path=portable(file), offset=int(vector.get("offset") or 0), size=size + _FRAME_BYTES, rows=rows
    )
    return DeletedRows(data_file=path, vectors=(blob,))


def z85(text: str, path: str) -> bytes:
    """The bytes of a text in Z85 (ZeroMQ's RFC 32). Raises CorruptFile."""
    with suppress(ValueError):  # a group of five characters that is too large
        if len(text) % 5 == 0 and re.fullmatch(f"[{re.escape(_Z85)}]*", text):
            return b85decode(text.translate(_TO_B85))
    raise CorruptFile("the text of a deletion vector isn't Z85", path=path)
