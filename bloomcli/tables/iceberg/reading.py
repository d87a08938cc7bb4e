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
        found = sorted(self.listed(where), key=lambda file: file.path)
        if twice := [path for path, count in Counter(file.path for file in found).items() if count > 1]:
            raise CorruptFile("the snapshot lists this data file twice", path=twice[0])
        return found

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
        found: list[Any] | None = None if text is None else json.loads(text)
        return found


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
    known: dict[str, EqualityDeletes] = {}
    deleted = {path: _deleted(path, files, columns, known) for path, files in deletes}
    constants = {
        path: {one.name: _plain(value, one.type) for source, value in values.items()
               if (one := columns.known.get(source)) is not None}
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
    found = []
    for one in mapping:
        if (field_id := one.get("field-id")) is not None:
            found.append((field_id, tuple(one.get("names", ()))))
        found += _names(one.get("fields", []))
    return found


class _Columns:
    """The columns of a snapshot, and those that the table had before.

    Args:
        schema, schemas: as in `rows_of`.
        names: the names of each field id in files without field ids.
        partitions: the field ids of columns that partition files by their values.

    Attributes:
        shape: the snapshot's columns.
        known: the columns by field id.
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
        self.known = {field.field_id: field for field in self.shape}
        self._dropped: dict[int | None, RecordField] = {}

    @property
    def dropped(self) -> Shape:
        """The columns that `leaf` found in other schemas."""
        return tuple(self._dropped.values())

    def leaf(self, field_id: int) -> RecordField | None:
        """A column of the snapshot, or of the newest schema that has it; None if it is nested, or if no schema of the
        table has it."""
        if field_id not in self.known:
            for field in self._others.get(field_id, ()):
                name = f"{field.name} (dropped, field {field_id})"
                taken = {name for one in self.shape for name in one.names}
                names = tuple(one for one in field.names if one not in taken)
                self.known[field_id] = self._dropped[field_id] = replace(field, name=name, names=names)
                break
        found = self.known.get(field_id)
        return None if found is None or found.parts or found.type is None else found

    @cached_property
    def _others(self) -> dict[int, list[RecordField]]:
        """The top-level columns of all schemas by field id, the newest schema first."""
        found: dict[int, list[RecordField]] = {}
        for schema in self._schemas():
            for field in self._of(schema):
                found.setdefault(int(field.field_id or 0), []).append(field)
        return found

    def _of(self, schema: Mapping[str, Any]) -> Shape:
        """The columns of a schema."""
        return tuple(
            replace(field, constant=field.name, missing_reason=_PARTITION.format(field.name))
            if field.field_id in self._partitions
            else field
            for field in _fields(schema["fields"], self._names)
        )


def _fields(fields: list[Any], names: Mapping[int, tuple[str, ...]]) -> Shape:
    return tuple(_field(one["name"], one["id"], one["type"], names, one.get("initial-default")) for one in fields)


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
            {"name": one["name"], "type": _spark_type(one["type"]), "nullable": not one["required"]}
            for one in kind["fields"]
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
    data_file: str, files: Sequence[Mapping[str, Any]], columns: _Columns, known: dict[str, EqualityDeletes]
) -> DeletedRows:
    """The deletes of a data file. `known` has each equality delete file once, by its path: it may apply to all data
    files."""
    vectors, positions, equalities = [], [], []
    for one in files:
        kind, path, size = one["file-format"].lower(), portable(one["file-path"]), one.get("file-size-in-bytes")
        if "key-metadata" in one and "body" not in one:
            raise UnsupportedError(
                "the delete file is encrypted, and bloom decrypts only data files and deletion vectors",
                path=path,
                hint="rewrite_data_files applies the table's deletes",
            )
        if one["content"].lower().startswith("equality"):
            if path not in known:
                compared = _compared(one["equality-ids"], columns, path)
                known[path] = EqualityDeletes(path=path, format=kind, shape=compared, size=size)
            equalities.append(known[path])
        elif kind == "puffin":
            vectors.append(
                DeletionVector(
                    path=path,
                    offset=one["content-offset"],
                    size=one["content-size-in-bytes"],
                    body=one.get("body"),
                    rows=one.get("record-count"),
                )
            )
        else:
            positions.append(PositionDeletes(path=path, format=kind, size=size))
    return DeletedRows(
        data_file=data_file, vectors=tuple(vectors), positions=tuple(positions), equalities=tuple(equalities)
    )


def _compared(ids: Sequence[int], columns: _Columns, path: str) -> Shape:
    """The columns that an equality delete file compares."""
    found = {number: columns.leaf(number) for number in ids}
    if missing := [number for number, field in found.items() if field is None]:
        raise UnsupportedError(
            f"an equality delete file compares the field {missing[0]}, which is nested in a column, has a type that"
            " Arrow or Spark doesn't have, or is in no schema of the table",
            path=path,
            hint="rewrite_data_files applies equality deletes",
        )
    return tuple(field for field in found.values() if field is not None)
