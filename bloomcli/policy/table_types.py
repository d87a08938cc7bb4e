"""A table's schema: its columns' types, found by the path that a file has for them.

Files and engines name the levels of lists and maps differently: `tags.list.element` (the Parquet specification),
`tags.bag.array_element` (Hive), `tags.array` (Avro), `tags._elem` (orc-core). So a path is walked along the
table's own types, and such levels are stepped over only where the table has a list or a map.
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
"""parquet-thrift's lists end their repeated field's name so."""
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
    """The type of one column of values."""

    name: str
    """One name for what engines name differently: ``INT``, ``BIGINT``, ``DECIMAL``, ``STRING``, ..."""
    precision: int = 0
    """Decimals only."""
    scale: int = 0

    def __str__(self) -> str:
        """As SQL writes it."""
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
    """Named fields, in order; the whole table is one."""

    fields: tuple[tuple[str, AnyType], ...]


AnyType = TableType | ListType | MapType | StructType


def canonical(name: str) -> str | None:
    """The one name of a type that engines name differently; None for no type's."""
    return _NAMES.get(name.lower())


def near_types(name: str) -> str:
    """What to say of a name that is no type's."""
    near = near_names(name.lower(), _NAMES, n=3, cutoff=0.5)
    return (
        f"did you mean {' or '.join(near)}?" if near else "types are those of Spark, Hive, Trino, DuckDB or Iceberg"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """What a table says of its columns."""

    path: str
    """The file that it was read from."""
    root: StructType

    def leaves(self) -> Iterator[tuple[str, TableType]]:
        """Every column of values: its dotted path, lists' elements and maps' sides by their usual names."""
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
        """The type that the table has for a file's leaf path.

        Names are compared as they are first, then in any case, as Spark and Hive do. None where the table has no
        such column, or several of different types that the path might mean.
        """
        for fold in (_same, str.lower):
            found = set(_walk(self.root, fold(path), fold))
            if found:
                return found.pop() if len(found) == 1 else None
        return None


def _same(text: str) -> str:
    return text


def _walk(root: AnyType, path: str, fold: Callable[[str], str]) -> Iterator[TableType]:
    """Every leaf type that a path can mean. States are visited once, so time is bounded by types times steps."""
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
                (child, end) for name, child in node.fields if (end := _past(path, at, fold(name))) is not None
            ]
        elif isinstance(node, ListType):
            waiting += [(node.element, end) for end in _past_list(path, at)]
        else:
            for start in _past_any(path, at, _MAPS, stay=True):
                waiting += [(node.key, end) for end in _past_any(path, start, _KEYS)]
                waiting += [(node.value, end) for end in _past_any(path, start, _VALUES)]


def _past(path: str, at: int, name: str) -> int | None:
    """Where the path goes on behind a name, which may have dots of its own; None where it has another one."""
    end = at + len(name)
    if at < len(path) and path.startswith(name, at) and path[end : end + 1] in {"", "."}:
        return end + 1
    return None


def _past_any(path: str, at: int, names: tuple[str, ...], *, stay: bool = False) -> Iterator[int]:
    if stay:
        yield at
    step = path[at:].partition(".")[0]
    if step.lower() in names:
        yield at + len(step) + 1


def _past_list(path: str, at: int) -> Iterator[int]:
    """Behind a list's levels: none (a repeated field), one (of either name), or two."""
    yield at
    yield from _past_any(path, at, _ELEMENTS)
    step = path[at:].partition(".")[0]
    if step.lower() in _LISTS or step.lower().endswith(_TUPLE):
        yield at + len(step) + 1
        yield from _past_any(path, at + len(step) + 1, _ELEMENTS)
