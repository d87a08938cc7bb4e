"""Reads an Iceberg snapshot from the JSON of its metadata, whoever has read these: bloom or Spark's library.

A search needs its columns, and the deletes that apply to its data files.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.record_shape import RecordField, Shape
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.model.schema import ColumnNames
from bloomcli.tables.base import DataFile, FilterRequest, TableSnapshot
from bloomcli.tables.columns import arrow_type
from bloomcli.tables.deleted_rows import DeletedRows, DeletionVector, EqualityDeletes, PositionDeletes, TableRows
from bloomcli.tables.iceberg.schema import NAME_MAPPING, column_names, filter_requests

_DEFAULT: Final = (
    "the file was written before the column {} was added: all of its rows have the column's default value"
)
_PARTITION: Final = "the file has no partition column {}: its value is only in the table's metadata"
_SPARK: Final = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
    "fixed": "binary",
    "unknown": "void",
}
"""The names of Spark's types, where they differ from Iceberg's."""
SELECTOR: Final = re.compile(r"(branch|tag)_(.+)|(snapshot_id|at_timestamp)_(\d+)")
"""The end of a table's name that selects a branch, a tag or a snapshot."""
_NOT_OF_SPARK: Final = ("time", "timestamp_ns", "timestamptz_ns")


class IcebergSnapshot(TableSnapshot):
    """An Iceberg table at one snapshot."""

    format = "iceberg"

    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The current schema, or the snapshot's if the table was opened at one, in the JSON of SchemaParser."""

    @abstractmethod
    def schemas(self) -> list[dict[str, Any]]:
        """All schemas of the table, the newest first."""

    @abstractmethod
    def listed(self, where: str | None) -> Iterable[DataFile]:
        """The data files of the snapshot, in no order; with `where`, as in `files`."""

    def names(self) -> ColumnNames:
        """The leaf columns of the current schema, or of the snapshot's if the table was opened at one."""
        return column_names(self.schema(), self._mapping())

    def files(self, where: str | None = None) -> list[DataFile]:
        """The data files of the snapshot, by path."""
        files = sorted(self.listed(where), key=lambda file: file.path)
        if twice := [path for path, count in Counter(file.path for file in files).items() if count > 1]:
            raise CorruptFile("the snapshot lists this data file twice", path=twice[0])
        return files

    def filter_requests(self) -> Sequence[FilterRequest]:
        """The filters that the properties request, for Parquet and for ORC files."""
        return filter_requests(self.properties(), self.name)

    def rows_with(
        self, identities: Mapping[str, Mapping[int, Any]], deletes: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]
    ) -> TableRows:
        """What a search needs of the snapshot; the arguments are those of `rows_of`."""
        return rows_of(self.schema(), self.schemas, self._mapping(), identities, deletes)

    def _mapping(self) -> list[Any] | None:
        """The table's names of columns in files without field ids."""
        text = self.properties().get(NAME_MAPPING)
        mapping: list[Any] | None = None if text is None else json.loads(text)
        return mapping


def rows_of(
    schema: Mapping[str, Any],
    schemas: Callable[[], Sequence[Mapping[str, Any]]],
    mapping: list[Any] | None,
    identities: Mapping[str, Mapping[int, Any]],
    deletes: Iterable[tuple[str, Sequence[Mapping[str, Any]]]],
) -> TableRows:
    """Collect what a search needs of a snapshot.

    Args:
        schema: the snapshot's schema, in the JSON of SchemaParser.
        schemas: returns all schemas of the table, the newest first.
        mapping: the name mapping; None if the table has none.
        identities: the values of each data file's partition fields that are columns, by path and field id: other
            writers' files may only have them in the table's metadata. In the form of the specification, "Appendix D:
            Single-value serialization".
        deletes: the delete files of each data file that has some, in the JSON of ContentFileParser. `body`: the
            bitmap of an encrypted deletion vector.

    Raises:
        UnsupportedError: the delete files can't be read.
    """
    partitions = {source for values in identities.values() for source in values}
    columns = _Columns(schema, schemas, dict(_names(mapping or [])), partitions)
    by_path: dict[str, EqualityDeletes] = {}
    deleted = {path: _deleted(path, files, columns, by_path) for path, files in deletes}
    constants = {
        path: {field.name: _plain(value, field.type) for source, value in values.items()
               if (field := columns.fields.get(source)) is not None}
        for path, values in identities.items()
    } if partitions else {}  # fmt: skip
    return TableRows(shape=columns.shape, dropped=columns.dropped, deleted=deleted, constants=constants)


def _plain(value: Any, kind: Any) -> str | bytes | None:
    """A value of Iceberg's JSON as text or, if its Arrow type is binary, as bytes."""
    if isinstance(value, str) and kind == pa.binary():
        return bytes.fromhex(value)
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _names(mapping: list[Any]) -> list[tuple[int, tuple[str, ...]]]:
    """The names of each field id in a name mapping."""
    names = []
    for entry in mapping:
        if (field_id := entry.get("field-id")) is not None:
            names.append((field_id, tuple(entry.get("names", ()))))
        names += _names(entry.get("fields", []))
    return names


class _Columns:
    """The columns of a snapshot, and those that the table had before.

    Args:
        schema, schemas: as in `rows_of`.
        names: the names of each field id in files without field ids.
        partitions: the field ids of columns that partition files by their values.

    Attributes:
        shape: the snapshot's columns.
        fields: the columns by field id.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        schemas: Callable[[], Sequence[Mapping[str, Any]]],
        names: Mapping[int, tuple[str, ...]],
        partitions: set[int],
    ) -> None:
        self._schemas, self._names, self._partitions = schemas, names, partitions
        self.shape = self._of(schema)
        self.fields = {field.field_id: field for field in self.shape}
        self._dropped: dict[int | None, RecordField] = {}

    @property
    def dropped(self) -> Shape:
        """The columns that `leaf` found in other schemas."""
        return tuple(self._dropped.values())

    def leaf(self, field_id: int) -> RecordField | None:
        """A column of the snapshot, or of the newest schema that has it; None if it is nested, or if no schema of the
        table has it."""
        if field_id not in self.fields:
            for field in self._others.get(field_id, ()):
                name = f"{field.name} (dropped, field {field_id})"
                own_names = {name for column in self.shape for name in column.names}
                names = tuple(alias for alias in field.names if alias not in own_names)
                self.fields[field_id] = self._dropped[field_id] = replace(field, name=name, names=names)
                break
        column = self.fields.get(field_id)
        return None if column is None or column.parts or column.type is None else column

    @cached_property
    def _others(self) -> dict[int, list[RecordField]]:
        """The top-level columns of all schemas by field id, the newest schema first."""
        columns: dict[int, list[RecordField]] = {}
        for schema in self._schemas():
            for field in self._of(schema):
                columns.setdefault(int(field.field_id or 0), []).append(field)
        return columns

    def _of(self, schema: Mapping[str, Any]) -> Shape:
        """The columns of a schema."""
        return tuple(
            replace(field, constant=field.name, missing_reason=_PARTITION.format(field.name))
            if field.field_id in self._partitions
            else field
            for field in _fields(schema["fields"], self._names)
        )


def _fields(fields: list[Any], names: Mapping[int, tuple[str, ...]]) -> Shape:
    return tuple(
        _field(field["name"], field["id"], field["type"], names, field.get("initial-default")) for field in fields
    )


def _field(
    name: str, field_id: int, own_type: Any, names: Mapping[int, tuple[str, ...]], default: Any = None
) -> RecordField:
    """A field, from its type in Iceberg's JSON."""
    kind = None if isinstance(own_type, str) else own_type["type"]
    parts: Shape = ()
    if kind == "struct":
        parts = _fields(own_type["fields"], names)
    elif kind == "list":
        parts = (_field("element", own_type["element-id"], own_type["element"], names),)
    elif kind == "map":
        parts = (
            _field("key", own_type["key-id"], own_type["key"], names),
            _field("value", own_type["value-id"], own_type["value"], names),
        )
    arrow = arrow_type(_spark_type(own_type))
    return RecordField(
        name=name,
        type=arrow,
        field_id=field_id,
        names=names.get(field_id, ()),
        parts=parts,
        default=None if parts else _plain(default, arrow),
        missing_reason=None if default is None else _DEFAULT.format(name),
        uuid=own_type == "uuid",
    )


def _spark_type(kind: Any) -> Any:
    """Spark's type for a type, both as parsed JSON."""
    if isinstance(kind, str):
        name = re.split(r"[\[(]", kind)[0]
        return "none" if name in _NOT_OF_SPARK else _SPARK.get(name, kind)
    if kind["type"] == "struct":
        fields = [
            {"name": field["name"], "type": _spark_type(field["type"]), "nullable": not field["required"]}
            for field in kind["fields"]
        ]
        return {"type": "struct", "fields": fields}
    if kind["type"] == "list":
        element = _spark_type(kind["element"])
        return {"type": "array", "elementType": element, "containsNull": _is_optional(kind, "element")}
    if kind["type"] == "map":
        key, value = _spark_type(kind["key"]), _spark_type(kind["value"])
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": _is_optional(kind, "value")}
    return _spark_type(kind["type"])


def _is_optional(kind: Mapping[str, Any], part: str) -> bool:
    """Whether the elements of a list, or the values of a map, may be null."""
    return not kind[f"{part}-required"]


def _deleted(
    data_file: str, files: Sequence[Mapping[str, Any]], columns: _Columns, by_path: dict[str, EqualityDeletes]
) -> DeletedRows:
    """The deletes of a data file. `by_path` has each equality delete file once, by its path: it may apply to all data
    files."""
    vectors, positions, equalities = [], [], []
    for file in files:
        kind, path, size = file["file-format"].lower(), portable(file["file-path"]), file.get("file-size-in-bytes")
        if "key-metadata" in file and "body" not in file:
            raise UnsupportedError(
                "the delete file is encrypted, and bloom decrypts only data files and deletion vectors",
                path=path,
                hint="rewrite_data_files applies the table's deletes",
            )
        if file["content"].lower().startswith("equality"):
            if path not in by_path:
                compared = _compared(file["equality-ids"], columns, path)
                by_path[path] = EqualityDeletes(path=path, format=kind, shape=compared, size=size)
            equalities.append(by_path[path])
        elif kind == "puffin":
            vectors.append(
                DeletionVector(
                    path=path,
                    offset=file["content-offset"],
                    size=file["content-size-in-bytes"],
                    body=file.get("body"),
                    rows=file.get("record-count"),
                )
            )
        else:
            positions.append(PositionDeletes(path=path, format=kind, size=size))
    return DeletedRows(
        data_file=data_file, vectors=tuple(vectors), positions=tuple(positions), equalities=tuple(equalities)
    )


def _compared(ids: Sequence[int], columns: _Columns, path: str) -> Shape:
    """The columns that an equality delete file compares."""
    fields = {number: columns.leaf(number) for number in ids}
    if missing := [number for number, field in fields.items() if field is None]:
        raise UnsupportedError(
            f"an equality delete file compares the field {missing[0]}, which is nested in a column, has a type that"
            " Arrow or Spark doesn't have, or is in no schema of the table",
            path=path,
            hint="rewrite_data_files applies equality deletes",
        )
    return tuple(field for field in fields.values() if field is not None)
