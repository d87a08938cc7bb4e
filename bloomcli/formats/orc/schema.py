"""Turns ORC's list of types into columns with dotted paths, and into the types that literals are parsed as.

Paths are orc-core's (TypeDescription.findSubtype): struct fields by name, a list's ``_elem``, a map's ``_key``
and ``_value``, a union's members by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from bloomcli import limits
from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.model.file import Column
from bloomcli.values.literals import parquet_column
from bloomcli.words import counted

_NAMES: Final = {"BYTE": "tinyint", "SHORT": "smallint", "LONG": "bigint", "TIMESTAMP_INSTANT": "timestamp with tz"}
_LENGTHS: Final = dict.fromkeys(("LIST", "MAP", "UNION"), 64)
"""The filters of these types hold lengths, or a union's tags."""
_INTEGER_BITS: Final = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64, **_LENGTHS}
_CHILDREN: Final = {"LIST": ("_elem",), "MAP": ("_key", "_value")}
SHORT_DIGITS: Final = 18
"""Maximum digits of a decimal that readers hold in 64 bits."""
COMPOUND: Final = ("LIST", "MAP", "STRUCT", "UNION")


class OrcType(NamedTuple):
    """One type of the tree.

    Attributes:
        id: column id, the position in the preorder of the tree.
        last: id of the last type below it; its own for a primitive one.
        kind: ``LONG``, ``STRUCT``, ...
        path: dotted path; empty for the root. In a file opened with a table's names, the table's path.
        steps: the names in the path, in the file.
        field_id, not_in_table, wide: as in `Column`.
    """

    id: int
    last: int
    kind: str
    path: str
    steps: tuple[str, ...]
    children: tuple[int, ...]
    precision: int = 0
    scale: int = 0
    maximum_length: int = 0
    field_id: int | None = None
    not_in_table: bool = False
    wide: str | None = None

    @property
    def label(self) -> str:
        """The type's path, or a text for a type without one: the root, or a column with an empty name."""
        return self.path or ("(no name)" if self.id else "(root)")

    @property
    def fault(self) -> str | None:
        """Why values of the type can't be looked up; None for every type that a writer makes."""
        digits = orc_limits.DECIMAL_DIGITS
        if self.kind == "DECIMAL" and not (1 <= self.precision <= digits and self.scale <= digits):
            return f"{self.name} is no type that ORC has: how its values are hashed isn't known"
        if self.kind == "CHAR" and self.maximum_length > orc_limits.CHAR_MAX:
            return f"{self.name} is padded to more than the {orc_limits.CHAR_MAX} characters that are looked up"
        return None

    @property
    def name(self) -> str:
        """The type as SQL writes it."""
        base = _NAMES.get(self.kind, self.kind.lower())
        if self.kind == "DECIMAL":
            return f"decimal({self.precision},{self.scale})"
        return f"{base}({self.maximum_length})" if self.kind in {"CHAR", "VARCHAR"} else base


def read_types(types: Sequence[Any], path: str, offset: int) -> tuple[OrcType, ...]:
    """Check that the footer's types are one tree in preorder, and compute their paths."""

    def fault(reason: str, index: int) -> CorruptFile:
        return CorruptFile(
            reason,
            path=path,
            offset=offset,
            field=f"types[{index}]",
            hint="the footer is damaged; get the file from its source again",
        )

    if not types or len(types) > orc_limits.TYPES_MAX:
        raise fault(f"the file has {counted(len(types), 'type')}", 0)
    orc_types: list[OrcType] = []
    # (id, steps) still to be visited; a preorder hands out ids in the order of the visits
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while waiting:
        index, steps = waiting.pop()
        if index != len(orc_types) or index >= len(types):
            raise fault(f"type {index} is not where a preorder has it", min(index, len(types) - 1))
        if len(steps) > limits.SCHEMA_MAX_DEPTH:
            raise fault(f"the types nest deeper than {limits.SCHEMA_MAX_DEPTH}", index)
        item = types[index]
        kind = spec.name_of("TypeKind", item.kind)
        children = tuple(item.subtypes)
        if (kind not in COMPOUND and children) or len(children) != len(_CHILDREN.get(kind, children)):
            raise fault(f"a {kind} with {len(children)} children", index)
        if kind == "STRUCT" and len(item.field_names) != len(children):
            raise fault(f"a struct of {len(children)} fields with {len(item.field_names)} names", index)
        if not all(isinstance(n, str) for n in item.field_names):
            raise fault("a name that is no UTF-8", index)
        orc_types.append(
            OrcType(
                id=index,
                last=index,
                kind=kind,
                path=".".join(steps),
                steps=steps,
                children=children,
                precision=item.precision,
                scale=item.scale,
                maximum_length=item.maximum_length,
            )
        )
        names = _CHILDREN.get(kind) or (item.field_names if kind == "STRUCT" else map(str, range(len(children))))
        waiting += [(c, (*steps, n)) for c, n in reversed(list(zip(children, names, strict=True)))]
    if len(orc_types) != len(types):
        raise fault(f"{counted(len(types) - len(orc_types), 'type')} belong to no column", len(orc_types))
    last = list(range(len(orc_types)))
    for item in reversed(orc_types):
        for child in item.children:
            last[item.id] = max(last[item.id], last[child])
    return tuple(t._replace(last=last[t.id]) for t in orc_types)


def column_of(orc: OrcType) -> Column:
    """A type as a column in reports."""
    return Column(
        path=orc.label,
        index=orc.id,
        physical=orc.name,
        scale=orc.scale,
        precision=orc.precision,
        field_id=orc.field_id,
        not_in_table=orc.not_in_table,
        wide=orc.wide,
    )


def literal_column(orc: OrcType) -> Column:
    """The column with the Parquet type that holds the same values, by which `literals` reads and compares them."""
    column = replace(column_of(orc), type_name=orc.name)
    kind = orc.kind
    if kind in {"TIMESTAMP", "TIMESTAMP_INSTANT"}:
        utc = kind == "TIMESTAMP_INSTANT"
        # 64-bit seconds and nanoseconds: no Parquet type has this range
        return replace(column, physical="INT128", logical="TIMESTAMP(NANOS)", unit="NANOS", utc=utc)
    return parquet_column(column, "STRING" if kind in {"CHAR", "VARCHAR"} else kind, _INTEGER_BITS.get(kind))
