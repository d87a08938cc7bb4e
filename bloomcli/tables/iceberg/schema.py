"""The leaf columns of an Iceberg table, from the JSON of its schema and name mapping, and the filters that its
properties request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from bloomcli.errors import UsageError
from bloomcli.model.schema import ColumnName, ColumnNames
from bloomcli.tables.base import FilterRequest

NAME_MAPPING: Final = "schema.name-mapping.default"
"""The table property that maps columns to their names in files without field ids."""

_WITHOUT_LEAF: Final = ("variant", "unknown")
"""Types whose columns aren't one leaf of a file: a variant is a group, and an unknown column isn't written."""

_PARTS: Final = {"list": ("element",), "map": ("key", "value")}

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
    return ColumnNames(
        columns=tuple(
            ColumnName(path=path, field_id=field_id, physical=mapped.get(field_id, ()), wide=_WIDE.get(kind))
            for path, field_id, kind, *_ in walked(schema["fields"])
            if kind not in _WITHOUT_LEAF
        )
    )


_Walked = tuple[str, int, str, bool, Any]


def walked(fields: list[Any], above: str = "", *, repeated: bool = False) -> Iterator[_Walked]:
    """Yield the leaves of fields in a schema's JSON: path, field id, type, whether it is in a list or map, and its
    default in files from before it was added."""
    for field in fields:
        yield from _below(field["type"], above + field["name"], field["id"], repeated, field.get("initial-default"))


def _below(kind: Any, path: str, field_id: int, repeated: bool, default: Any = None) -> Iterator[_Walked]:
    """Yield the leaves of a column, or the column itself. Primitive types are texts, nested types are objects."""
    if isinstance(kind, str):
        yield path, field_id, kind, repeated, default
    elif kind["type"] == "struct":
        yield from walked(kind["fields"], f"{path}.", repeated=repeated)
    elif kind["type"] in _PARTS:
        for part in _PARTS[kind["type"]]:
            yield from _below(kind[part], f"{path}.{part}", kind[f"{part}-id"], True)
    else:
        yield from _below(kind["type"], path, field_id, repeated, default)


def _mapped(fields: list[Any], above: _Names) -> Iterator[tuple[int, _Names]]:
    """The dotted paths of each field id: one for each combination of the names of the field and of those above it."""
    for field in fields:
        names = field.get("names", ())
        paths = tuple(map(".".join, product(above, names))) if above else tuple(names)
        if (field_id := field.get("field-id")) is not None:
            yield field_id, paths
        yield from _mapped(field.get("fields", []), paths)


_ENABLED: Final = "write.parquet.bloom-filter-enabled.column."
_FPP: Final = "write.parquet.bloom-filter-fpp.column."
_MAX_BYTES: Final = "write.parquet.bloom-filter-max-bytes"
_ORC_COLUMNS: Final = "write.orc.bloom.filter.columns"
_ORC_FPP: Final = "write.orc.bloom.filter.fpp"


def filter_requests(properties: Mapping[str, str], table: str) -> tuple[FilterRequest, ...]:
    """The requested filters, those of Parquet files first. Properties may name columns that the table doesn't have.

    Args:
        properties: the table's properties.
        table: its name, for errors.

    Raises:
        UsageError: the value of a property isn't a number.
    """
    size = _number(properties, _MAX_BYTES, table)
    parquet = [
        FilterRequest(
            column=name.removeprefix(_ENABLED),
            format="parquet",
            fpp=_number(properties, _FPP + name.removeprefix(_ENABLED), table),
            max_bytes=None if size is None else int(size),
        )
        for name, value in sorted(properties.items())
        if name.startswith(_ENABLED) and value.strip().lower() == "true"
    ]
    columns = [name.strip() for name in properties.get(_ORC_COLUMNS, "").split(",")]
    fpp = _number(properties, _ORC_FPP, table)
    orc = [FilterRequest(column=name, format="orc", fpp=fpp) for name in columns if name]
    return (*parquet, *orc)


def _number(properties: Mapping[str, str], name: str, table: str) -> float | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"the table property {name} is not a number: {text!r}", path=table) from None
