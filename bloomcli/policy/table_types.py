"""A table's schema: the types of its columns, by the columns' paths in a file.

Files and engines name the levels of lists and maps differently: `tags.list.element` (the Parquet specification),
`tags.bag.array_element` (Hive), `tags.array` (Avro), `tags._elem` (orc-core). Therefore a path is followed through
the table's types, and such levels are skipped only if the table has a list or a map there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bloomcli.errors import near_names

_LISTS: Final = ("list", "bag", "array")
"""Names of a list's repeated group."""
_ELEMENTS: Final = ("element", "item", "array_element", "array", "_elem")
_TUPLE: Final = "_tuple"
"""The suffix of the repeated field's name in parquet-thrift's lists."""
_MAPS: Final = ("key_value", "map", "entries")
"""Names of a map's repeated group."""
_KEYS: Final = ("key", "_key")
_VALUES: Final = ("value", "_value")

_NAMES: Final = {
    **dict.fromkeys(("boolean", "bool"), "BOOLEAN"),
    **dict.fromkeys(("tinyint", "byte", "int1"), "TINYINT"),
    **dict.fromkeys(("smallint", "short", "int2"), "SMALLINT"),
    **dict.fromkeys(("int", "integer", "int4"), "INT"),
    **dict.fromkeys(("bigint", "long", "int8"), "BIGINT"),
    **dict.fromkeys(("float", "real", "float4"), "FLOAT"),
    **dict.fromkeys(("double", "float8"), "DOUBLE"),
    **dict.fromkeys(("decimal", "dec", "numeric"), "DECIMAL"),
    **dict.fromkeys(("string", "varchar", "text"), "STRING"),
    **dict.fromkeys(("char", "character"), "CHAR"),
    **dict.fromkeys(("binary", "varbinary", "blob", "bytea", "fixed"), "BINARY"),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz", "datetime"), "TIMESTAMP"),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), "TIMESTAMP_NANOS"),
    **{
        name: name.upper()
        for name in (
            *("date", "time", "timetz", "uuid", "interval", "void", "null", "unknown", "variant", "json", "object"),
            *("geometry", "geography", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint", "uhugeint"),
            *("timestamp_s", "timestamp_ms"),
        )
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableType:
    """The type of a leaf column."""

    name: str
    """The canonical name, for all engines: ``INT``, ``BIGINT``, ``DECIMAL``, ``STRING``, ..."""
    precision: int = 0
    """Decimals only."""
    scale: int = 0

    def __str__(self) -> str:
        """Return the type in SQL."""
        return f"{self.name}({self.precision},{self.scale})" if self.name == "DECIMAL" else self.name


@dataclass(frozen=True, slots=True)
class ListType:
    """A list."""

    element: AnyType


@dataclass(frozen=True, slots=True)
class MapType:
    """A map."""

    key: AnyType
    value: AnyType


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields, in order. The table itself is a struct."""

    fields: tuple[tuple[str, AnyType], ...]


AnyType = TableType | ListType | MapType | StructType


def canonical(name: str) -> str | None:
    """Return the canonical name of a type, for all engines; None if there is no such type."""
    return _NAMES.get(name.lower())


def near_types(name: str) -> str:
    """Return the hint for an unknown type's name."""
    near = near_names(name.lower(), _NAMES, n=3, cutoff=0.5)
    return (
        f"did you mean {' or '.join(near)}?" if near else "types are those of Spark, Hive, Trino, DuckDB or Iceberg"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The columns of a table and their types."""

    path: str
    """The schema's file."""
    root: StructType

    def leaves(self) -> Iterator[tuple[str, TableType]]:
        """Yield the dotted path and type of every leaf column. Levels are named `element`, `key` and `value`."""
        waiting: list[tuple[tuple[str, ...], AnyType]] = [((), self.root)]
        while waiting:
            steps, node = waiting.pop()
            below: list[tuple[tuple[str, ...], AnyType]]
            if isinstance(node, TableType):
                yield ".".join(steps), node
                continue
            if isinstance(node, StructType):
                below = [((*steps, name), child) for name, child in node.fields]
            elif isinstance(node, ListType):
                below = [((*steps, "element"), node.element)]
            else:
                below = [((*steps, "key"), node.key), ((*steps, "value"), node.value)]
            waiting += reversed(below)

    def type_of(self, path: str) -> TableType | None:
        """Return the table's type for a file's leaf path.

        Names are compared exactly, then without regard to case, as in Spark and Hive. None if the table has no such
        column, or if the path matches several of different types.
        """
        for fold in (_same, str.lower):
            found = set(_walk(self.root, fold(path), fold))
            if found:
                return found.pop() if len(found) == 1 else None
        return None


def _same(text: str) -> str:
    return text


def _walk(root: AnyType, path: str, fold: Callable[[str], str]) -> Iterator[TableType]:
    """Yield every leaf type that matches a path. Each state is visited once, which bounds time by types times
    steps."""
    waiting: list[tuple[AnyType, int]] = [(root, 0)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        node, at = waiting.pop()
        if (id(node), at) in seen:
            continue
        seen.add((id(node), at))
        if isinstance(node, TableType):
            if at >= len(path):
                yield node
        elif isinstance(node, StructType):
            waiting += [
                (child, end) for name, child in node.fields if (end := _skip_name(path, at, fold(name))) is not None
            ]
        elif isinstance(node, ListType):
            waiting += [(node.element, end) for end in _skip_list(path, at)]
        else:
            for start in _skip_any(path, at, _MAPS, stay=True):
                waiting += [(node.key, end) for end in _skip_any(path, start, _KEYS)]
                waiting += [(node.value, end) for end in _skip_any(path, start, _VALUES)]


def _skip_name(path: str, at: int, name: str) -> int | None:
    """Return the position after a name, which may contain dots; None if the path has another name there."""
    end = at + len(name)
    if at < len(path) and path.startswith(name, at) and path[end : end + 1] in {"", "."}:
        return end + 1
    return None


def _skip_any(path: str, at: int, names: tuple[str, ...], *, stay: bool = False) -> Iterator[int]:
    if stay:
        yield at
    step = path[at:].partition(".")[0]
    if step.lower() in names:
        yield at + len(step) + 1


def _skip_list(path: str, at: int) -> Iterator[int]:
    """Yield the positions after a list's levels: none (a repeated field), one (of either name), or two."""
    yield at
    yield from _skip_any(path, at, _ELEMENTS)
    step = path[at:].partition(".")[0]
    if step.lower() in _LISTS or step.lower().endswith(_TUPLE):
        yield at + len(step) + 1
        yield from _skip_any(path, at + len(step) + 1, _ELEMENTS)
