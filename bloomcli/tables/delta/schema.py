"""The columns of a Delta table: their names in files, and the filters that properties request on them.

With column mapping, each field of a struct has a physical name and an id, which renames don't change. Elements of
lists, and keys and values of maps, have neither. Files of mode ``name`` are read by physical names, those of mode
``id`` by field ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bloomcli.errors import UsageError
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.tables.base import FilterRequest

_MODE: Final = "delta.columnMapping.mode"
PHYSICAL: Final = "delta.columnMapping.physicalName"
"""The key of a field's name in files."""
ID: Final = "delta.columnMapping.id"
"""The key of a field's id in files."""
_NESTED_IDS: Final = "delta.columnMapping.nested.ids"
_DECLARED: Final = "__CHAR_VARCHAR_TYPE_STRING"
_VARIANT: Final = "variant"
"""A group of two leaves in files. Values can't be looked up in it, so it isn't among the leaf columns."""

PROPERTY: Final = "parquet.bloom.filter."
"""The prefix of properties for Parquet's writer: Delta's writers pass table properties on to it."""

_WIDE: Final = {"double": "DOUBLE", "timestamp_ntz": "TIMESTAMP"}
"""`ColumnName.wide` of types. Source: PROTOCOL.md, "Type Widening": from bytes, shorts, integers and floats to
doubles, and from dates to timestamps without a zone."""

_NO_FILTERS: Final = ("boolean",)
"""Types for which Parquet's writer makes no filters."""


class Column(NamedTuple):
    """A leaf column."""

    path: str
    """The table's dotted path."""
    names: tuple[str, ...]
    """The names in files of the column and of those around it, without the groups around elements and entries."""
    in_file: str
    """The path in the files that Delta's own writers write."""
    type: str
    field_id: int | None
    declared: str = ""
    """The type of a text that the schema declares as ``char(9)`` or ``varchar(9)``."""
    plain: bool = True
    """The column is in no array, map or user-defined type."""

    @property
    def physical(self) -> str:
        """The dotted path in files."""
        return ".".join(self.names)


def _leaves(fields: Sequence[Any], mapped: bool, above: Column | None = None) -> Iterator[Column]:
    """Yield the leaves of the fields of a struct, or of the schema."""
    for field in fields:
        metadata: Mapping[str, Any] = field.get("metadata") or {}
        own = metadata.get(PHYSICAL, field["name"]) if mapped else field["name"]
        at = Column(field["name"], (own,), own, "", metadata.get(ID), str(metadata.get(_DECLARED, "")))
        if above is not None:
            path, in_file = f"{above.path}." + field["name"], f"{above.in_file}.{own}"
            at = at._replace(path=path, names=(*above.names, own), in_file=in_file, plain=above.plain)
        nested: Mapping[str, int] = (metadata.get(_NESTED_IDS) or {}) if mapped else {}
        yield from _below(field["type"], at, nested, own, mapped)


def _below(kind: Any, at: Column, nested: Mapping[str, int], nested_at: str, mapped: bool) -> Iterator[Column]:
    """Yield the leaves of a type.

    Args:
        kind: the type, in the schema's JSON.
        at: the field, element, key or value of the type.
        nested: ids of elements, keys and values of the innermost field, by their paths from it.
        nested_at: the path of `at` from the innermost field.
        mapped: the table has column mapping.
    """
    if isinstance(kind, str):
        if kind != _VARIANT:
            yield at._replace(type=kind)
        return
    if kind["type"] == "struct":
        yield from _leaves(kind["fields"], mapped, at)
        return
    parts = {
        "array": (("element", "list.element", "elementType"),),
        "map": (("key", "key_value.key", "keyType"), ("value", "key_value.value", "valueType")),
    }.get(kind["type"])
    if parts is None:  # a user-defined type
        yield from _below(kind["sqlType"], at._replace(plain=False), nested, nested_at, mapped)
        return
    for name, in_file, inner in parts:
        below, path = f"{nested_at}.{name}", f"{at.path}.{name}"
        field_id = nested.get(below)
        part = Column(path, (*at.names, name), f"{at.in_file}.{in_file}", "", field_id, plain=False)
        yield from _below(kind[inner], part, nested, below, mapped)


def mapping_mode(metadata: Mapping[str, Any]) -> str:
    """The table's column mapping: ``none``, ``name`` or ``id``."""
    return str(metadata["configuration"].get(_MODE, "none"))


def leaves_of(metadata: Mapping[str, Any]) -> list[Column]:
    """The leaf columns, in the order of the schema.

    Args:
        metadata: the log's ``metaData``.
    """
    return list(_leaves(json.loads(metadata["schemaString"])["fields"], mapping_mode(metadata) != "none"))


def names_of(metadata: Mapping[str, Any]) -> ColumnNames:
    """The leaf columns, with their names in files."""
    by_id = mapping_mode(metadata) == "id"
    return ColumnNames(
        columns=tuple(
            ColumnName(
                path=leaf.path,
                field_id=leaf.field_id if by_id else None,
                physical=(leaf.physical,),
                wide=_WIDE.get(leaf.type),
            )
            for leaf in leaves_of(metadata)
        )
    )


def partition_columns(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The partition columns' names and physical names."""
    mapped = mapping_mode(metadata) != "none"
    fields = {field["name"]: field.get("metadata") or {} for field in json.loads(metadata["schemaString"])["fields"]}
    return [(name, fields[name].get(PHYSICAL, name) if mapped else name) for name in metadata["partitionColumns"]]


def filter_requests_of(metadata: Mapping[str, Any]) -> list[FilterRequest]:
    """The filters that table properties request, such as with ``parquet.bloom.filter.enabled#COLUMN``.

    Parquet's writer identifies a column by its path in files. A property may also use the table's name or the
    physical name.

    Raises:
        UsageError: the value of a property is invalid.
    """
    properties = {k.removeprefix(PROPERTY): v for k, v in metadata["configuration"].items() if k.startswith(PROPERTY)}
    partitions = set(metadata["partitionColumns"])
    leaves = [leaf for leaf in leaves_of(metadata) if leaf.path not in partitions]
    asked = {leaf.path: (leaf.in_file, leaf.physical, leaf.path) for leaf in leaves if leaf.type not in _NO_FILTERS}
    names = {name for leaf in leaves for name in (leaf.in_file, leaf.physical, leaf.path)}
    named = [key.partition("#")[2] for key in properties if key.startswith("enabled#")]
    asked |= {column: (column,) for column in named if column not in names}
    return [
        FilterRequest(
            column=column,
            fpp=_number(properties, "fpp", spelled),
            max_bytes=None if (most := _number(properties, "max.bytes", spelled)) is None else int(most),
        )
        for column, spelled in asked.items()
        if (_value(properties, "enabled", spelled)[1] or "").strip().lower() == "true"
    ]


def _value(properties: Mapping[str, str], key: str, spelled: Sequence[str]) -> tuple[str, str | None]:
    """The property that applies to a column, and its value: the column's own, or the one for all columns."""
    for column in spelled:
        if f"{key}#{column}" in properties:
            return f"{key}#{column}", properties[f"{key}#{column}"]
    return key, properties.get(key)


def _number(properties: Mapping[str, str], key: str, spelled: Sequence[str]) -> float | None:
    name, value = _value(properties, key, spelled)
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 < number < (1 if key == "fpp" else float("inf")):
        raise UsageError(f"the table property {PROPERTY}{name} is {value!r}")
    return number
