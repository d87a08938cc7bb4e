"""VARIANT columns: which leaf of a shredded one stores the values of which path, such as ``v:$.user.id`` or
``v:$.tags[*]``.

A VARIANT is a group with the leaves ``metadata`` and ``value``. A shredded one also has ``typed_value``, and pairs of
``value`` and ``typed_value`` at each level below. ``typed_value`` has the values of one type, and ``value`` those of
all other types, encoded.

Source: the Apache Parquet format, VariantEncoding.md and VariantShredding.md. Only the annotation makes a group a
VARIANT. Spark 4.0 writes none (SPARK-54306): there the schema in Spark's own metadata names the column's type.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from bloomcli.model.file import Column
from bloomcli.values import variant_paths

Steps = tuple[str, ...]
"""The names of groups, and of a leaf, from the top."""

SPARK_SCHEMA: Final = "org.apache.spark.sql.parquet.row.metadata"
"""The key of the schema that Spark writes."""
_METADATA: Final = "metadata"
_TYPED: Final = "typed_value"
_UNTYPED: Final = "value"
_ENCODED: Final = "encoded values of a VARIANT, which no query compares"


class Leaf(NamedTuple):
    """A leaf of the schema while the schema is read."""

    column: Column
    steps: Steps
    repeated: tuple[int, ...]
    """The positions of the repeated ones in `steps`."""


def unannotated(leaves: Sequence[Leaf], annotated: Collection[Steps]) -> set[Steps]:
    """The groups that have the leaves of a VARIANT without its annotation."""
    binaries = {leaf.steps for leaf in leaves if leaf.column.physical == "BYTE_ARRAY"}
    groups = {steps[:-1] for steps in binaries if steps[-1] == _METADATA}
    return {group for group in groups if group and group not in annotated and (*group, _UNTYPED) in binaries}


def named_by_spark(groups: Collection[Steps], schema: bytes) -> set[Steps]:
    """Those of some groups that are VARIANTs by Spark's schema."""
    try:
        kind = json.loads(schema)
    except (ValueError, RecursionError):
        return set()
    return {group for group in groups if _spark_type(kind, group) == "variant"}


def _spark_type(kind: Any, steps: Steps) -> Any:
    """The type of a group in Spark's schema; None if the schema doesn't have the group."""
    at = 0
    while at < len(steps) and isinstance(kind, dict):
        if kind.get("type") == "struct":
            fields = kind.get("fields")
            some = fields if isinstance(fields, list) else []
            kind = next((f.get("type") for f in some if isinstance(f, dict) and f.get("name") == steps[at]), None)
            at += 1
        else:  # the repeated group of a list or a map, and its element, key or value
            kind = kind.get("valueType" if steps[at + 1 : at + 2] == ("value",) else "elementType")
            at += 2
    return kind if at == len(steps) else None


def with_paths(leaves: Sequence[Leaf], variants: Collection[Steps]) -> tuple[Column, ...]:
    """The columns, given the groups that are VARIANTs. Those with the values of a path have `Column.variant_path` and
    `untyped`; those with encoded bytes are `unfilterable`."""
    if not variants:
        return tuple(leaf.column for leaf in leaves)
    binaries = {leaf.steps: leaf.column.index for leaf in leaves if leaf.column.physical == "BYTE_ARRAY"}
    return tuple(_with_path(leaf, variants, binaries) for leaf in leaves)


def _with_path(leaf: Leaf, variants: Collection[Steps], binaries: dict[Steps, int]) -> Column:
    *above, name = steps = leaf.steps
    if name in {_METADATA, _UNTYPED} and any(steps[:at] in variants for at in range(1, len(steps))):
        return replace(leaf.column, unfilterable=_ENCODED)
    if name != _TYPED or (path := _path(leaf, variants)) is None:
        return leaf.column
    return replace(leaf.column, variant_path=path, untyped=binaries.get((*above, _UNTYPED)))


def _path(leaf: Leaf, variants: Collection[Steps]) -> str | None:
    """The path in a VARIANT whose values a leaf stores; None for other leaves, and for names that no path has."""
    steps = leaf.steps
    top = next((at for at, name in enumerate(steps) if name == _TYPED and steps[:at] in variants), None)
    if top is None:
        return None
    path, at = ".".join(steps[:top]) + variant_paths.ROOT, top
    while at < len(steps) - 1:  # at a typed_value that is a group
        if at + 1 in leaf.repeated:  # a list: its repeated group, and the group of an element
            step: str | None = variant_paths.ELEMENTS
            at += 3
        else:
            step = variant_paths.step(steps[at + 1])
            at += 2
        if step is None or steps[at : at + 1] != (_TYPED,):
            return None
        path += step
    return path
