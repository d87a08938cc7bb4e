"""Reads a table's leaf columns from the JSON of its schema and of its name mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from bloomcli.model.schema import ColumnName, ColumnNames

NAME_MAPPING: Final = "schema.name-mapping.default"
"""The table property that maps columns to their names in files without field ids."""

_WITHOUT_LEAF: Final = ("variant", "unknown")
"""Types whose columns aren't one leaf of a file: a variant is a group, and an unknown column isn't written."""

_WIDE: Final = {"double": "DOUBLE", "timestamp": "TIMESTAMP", "timestamp_ns": "TIMESTAMP"}
"""`ColumnName.wide` of types. Source: the specification, "Schema Evolution": from floats to doubles, and in version 3
from dates to timestamps without a zone."""

_Names = tuple[str, ...]


def column_names(schema: Mapping[str, Any], mapping: list[Any] | None) -> ColumnNames:
    """The leaf columns of a schema.

    Args:
        schema: the JSON of SchemaParser (the specification's appendix C).
        mapping: the JSON of the name mapping; None if the table has none.
    """
    mapped = dict(_mapped(mapping or [], ()))
    leaves = _leaves(schema["fields"], "")
    return ColumnNames(
        columns=tuple(
            ColumnName(path=path, field_id=field_id, physical=mapped.get(field_id, ()), wide=_WIDE.get(kind))
            for path, field_id, kind in leaves
        )
    )


def _leaves(fields: list[Any], above: str) -> Iterator[tuple[str, int, str]]:
    for field in fields:
        yield from _below(field["type"], above + field["name"], field["id"])


def _below(kind: Any, path: str, field_id: int) -> Iterator[tuple[str, int, str]]:
    """The leaves of a column, or the column itself, with their types. Primitive types are strings, nested types are
    objects."""
    if isinstance(kind, str):
        if kind not in _WITHOUT_LEAF:
            yield path, field_id, kind
    elif kind["type"] == "struct":
        yield from _leaves(kind["fields"], f"{path}.")
    elif kind["type"] == "list":
        yield from _below(kind["element"], f"{path}.element", kind["element-id"])
    elif kind["type"] == "map":
        yield from _below(kind["key"], f"{path}.key", kind["key-id"])
        yield from _below(kind["value"], f"{path}.value", kind["value-id"])
    elif kind["type"] not in _WITHOUT_LEAF:
        yield path, field_id, kind["type"]


def _mapped(fields: list[Any], above: _Names) -> Iterator[tuple[int, _Names]]:
    """The dotted paths of each field id: one for each combination of the names of the field and of those above it."""
    for field in fields:
        names = field.get("names", ())
        paths = tuple(map(".".join, product(above, names))) if above else tuple(names)
        if (field_id := field.get("field-id")) is not None:
            yield field_id, paths
        yield from _mapped(field.get("fields", []), paths)
