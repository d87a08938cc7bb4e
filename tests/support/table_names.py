"""Files with the field ids of tables, and the names by which tables find their columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from bloomcli.formats.orc import spec
from bloomcli.model.schema import ColumnName, ColumnNames
from support import footers, orcfiles, thrift
from support.thrift import Fields, Items


def by_id(**ids: int) -> ColumnNames:
    """Names of an Iceberg table without a name mapping; `__` stands for a dot."""
    found = (ColumnName(path=name.replace("__", "."), field_id=number) for name, number in ids.items())
    return ColumnNames(columns=tuple(found))


def by_name(**physical: str | tuple[str, ...]) -> ColumnNames:
    """Names of a table whose files use these names for its columns; `__` stands for a dot."""
    return ColumnNames(
        columns=tuple(
            ColumnName(path=name.replace("__", "."), physical=(found,) if isinstance(found, str) else found)
            for name, found in physical.items()
        )
    )


def field(name: str, kind: pa.DataType, number: int, **options: Any) -> pa.Field:
    """A field that pyarrow writes with a field id."""
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()}, **options)


def orc_ids(path: Path, target: Path, ids: Mapping[str, int | str]) -> Path:
    """An ORC file with the field ids that Iceberg writes, by the types' own paths."""

    def edit(file: orcfiles.File) -> None:
        types = file.footer.types
        paths = [""] * len(types)
        for number, item in enumerate(types):
            names = list(item.field_names) or {"LIST": ["_elem"], "MAP": ["_key", "_value"]}.get(
                spec.name_of("TypeKind", item.kind), []
            )
            for child, name in zip(item.subtypes, names, strict=True):
                paths[child] = f"{paths[number]}.{name}".removeprefix(".")
        for path_, value in ids.items():
            attributes = {"iceberg.id": str(value), "iceberg.required": "false"}
            for key, text in attributes.items():
                pair = spec.message("StringPair")(key=key, value=text)
                types[paths.index(path_)].attributes.append(pair.SerializeToString())

    return orcfiles.edited(path, target, edit)


def element(
    name: str, children: int = 0, *, repetition: int = 1, converted: int | None = None, number: int | None = None
) -> Fields:
    """A schema element: a group with children, else a leaf of type INT64."""
    fields: Fields = {} if children else {1: (thrift.I32, 2)}
    fields |= {3: (thrift.I32, repetition), 4: (thrift.BINARY, name.encode())}
    if children:
        fields[5] = (thrift.I32, children)
    if converted is not None:
        fields[6] = (thrift.I32, converted)
    if number is not None:
        fields[9] = (thrift.I32, number)
    return fields


def parquet_of(path: Path, *elements: Fields, roots: int) -> Path:
    """A Parquet file without rows, of a schema with these elements in preorder, `roots` of them below its root."""
    root: Fields = {4: (thrift.BINARY, b"schema"), 5: (thrift.I32, roots)}
    footer: Fields = {
        1: (thrift.I32, 2),
        2: (thrift.LIST, Items(thrift.STRUCT, [root, *elements])),
        3: (thrift.I64, 0),
        4: (thrift.LIST, Items(thrift.STRUCT, [])),
    }
    path.write_bytes(footers.join(b"PAR1", thrift.encode(footer)))
    return path
