"""What a search needs of an Iceberg snapshot: its columns, and the deletes that apply to its data files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.record_shape import RecordField, Shape
from bloomcli.errors import UnsupportedError
from bloomcli.tables.base import DataFile
from bloomcli.tables.deleted_rows import DeletedRows, DeletionVector, EqualityDeletes, PositionDeletes, TableRows
from bloomcli.tables.iceberg.java import Java
from bloomcli.tables.spark_shape import arrow_type

_DEFAULT: Final = "the file was written before the column {} was added, whose rows have a default value there"
_PARTITION: Final = "the file has no partition column {}: its value is only in the table's metadata"


def rows_of(java: Java, table: Any, schema: Any, mapping: list[Any] | None, files: Sequence[DataFile]) -> TableRows:
    """Collect what a search needs of a snapshot.

    Args:
        java: the session's Java.
        table: an ``org.apache.iceberg.Table``.
        schema: the snapshot's ``org.apache.iceberg.Schema``.
        mapping: the name mapping; None if the table has none.
        files: the snapshot's data files.

    Raises:
        UnsupportedError: executors can't read the delete files.
    """
    spark = json.loads(java.iceberg("spark.SparkSchemaUtil").convert(schema).json())
    names = dict(_names(mapping or []))
    partitions = _identity_sources(java, table)
    own = json.loads(java.iceberg("SchemaParser").toJson(schema))
    shape = _fields(own["fields"], spark["fields"], names, partitions)
    deleted = {file.path: found for file in files if (found := _deleted(java, file, shape)) is not None}
    return TableRows(shape=shape, deleted=deleted, constants={})


def _names(mapping: list[Any]) -> list[tuple[int, tuple[str, ...]]]:
    """The names of each field id in a name mapping."""
    found = []
    for one in mapping:
        if (field_id := one.get("field-id")) is not None:
            found.append((field_id, tuple(one.get("names", ()))))
        found += _names(one.get("fields", []))
    return found


def _identity_sources(java: Java, table: Any) -> set[int]:
    """The field ids of columns that partition files by their value: files of other writers may not have them."""
    found = set()
    for spec in java.items(table.specs().values()):
        fields = json.loads(java.iceberg("PartitionSpecParser").toJson(spec))["fields"]
        found |= {one["source-id"] for one in fields if one["transform"] == "identity"}
    return found


def _fields(fields: list[Any], spark: list[Any], names: Mapping[int, tuple[str, ...]], partitions: set[int]) -> Shape:
    return tuple(
        _field(one["name"], one["id"], one["type"], other["type"], names, _missing_reason(one, partitions))
        for one, other in zip(fields, spark, strict=True)
    )


def _missing_reason(field: Mapping[str, Any], partitions: set[int]) -> str | None:
    if field.get("initial-default") is not None:
        return _DEFAULT.format(field["name"])
    return _PARTITION.format(field["name"]) if field["id"] in partitions else None


def _field(
    name: str,
    field_id: int,
    own_type: Any,
    spark: Any,
    names: Mapping[int, tuple[str, ...]],
    missing_reason: str | None = None,
) -> RecordField:
    """A field, from its type in Iceberg's JSON and in Spark's."""
    kind = None if isinstance(own_type, str) else own_type["type"]
    parts: Shape = ()
    if kind == "struct":
        parts = _fields(own_type["fields"], spark["fields"], names, set())
    elif kind == "list":
        parts = (_field("element", own_type["element-id"], own_type["element"], spark["elementType"], names),)
    elif kind == "map":
        parts = (
            _field("key", own_type["key-id"], own_type["key"], spark["keyType"], names),
            _field("value", own_type["value-id"], own_type["value"], spark["valueType"], names),
        )
    return RecordField(
        name=name,
        type=arrow_type(spark),
        field_id=field_id,
        names=names.get(field_id, ()),
        parts=parts,
        missing_reason=missing_reason,
    )


def _deleted(java: Java, file: DataFile, shape: Shape) -> DeletedRows | None:
    """The deletes of a data file; None if it has none. Makes one call into Java, or two for a file with deletes."""
    task = file.record.task
    if task.deletes().isEmpty():
        return None
    vectors, positions, equalities = [], [], []
    for one in json.loads(java.iceberg("ScanTaskParser").toJson(task))["delete-files"]:
        kind, path, size = one["file-format"].lower(), portable(one["file-path"]), one.get("file-size-in-bytes")
        if one["content"].lower().startswith("equality"):
            columns = _columns_of(one["equality-ids"], shape, path)
            equalities.append(EqualityDeletes(path=path, format=kind, shape=columns, size=size))
        elif kind == "puffin":
            vectors.append(DeletionVector(path=path, offset=one["content-offset"], size=one["content-size-in-bytes"]))
        else:
            positions.append(PositionDeletes(path=path, format=kind, size=size))
    return DeletedRows(
        data_file=file.path, vectors=tuple(vectors), positions=tuple(positions), equalities=tuple(equalities)
    )


def _columns_of(ids: Sequence[int], shape: Shape, path: str) -> Shape:
    found = {field.field_id: field for field in shape if not field.parts}
    if missing := [number for number in ids if number not in found]:
        raise UnsupportedError(
            f"an equality delete file compares the field {missing[0]}, which is no longer a column of the table, or"
            " is nested in another column",
            path=path,
            hint="rewrite_data_files applies equality deletes",
        )
    return tuple(found[number] for number in ids)
