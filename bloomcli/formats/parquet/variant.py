"""Shredded VARIANT columns: which leaf stores the values of which path, such as ``v:$.user.id`` or ``v:$.tags[*]``.

A shredded VARIANT is a group with the leaf ``metadata``, and pairs of ``value`` and ``typed_value`` at each level.
``typed_value`` has the values of one type, and ``value`` those of all other types, encoded.

Source: the Apache Parquet format, VariantShredding.md. Writers don't need to annotate the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from bloomcli.model.file import Column
from bloomcli.values import variant_paths

_TYPED: Final = "typed_value"
_UNTYPED: Final = "value"


class Leaf(NamedTuple):
    """A leaf of the schema while the schema is read."""

    column: Column
    steps: tuple[str, ...]
    """The names of the groups and of the leaf, from the top."""
    repeated: tuple[int, ...]
    """The positions of the repeated ones in `steps`."""


def with_paths(leaves: Sequence[Leaf]) -> tuple[Column, ...]:
    """The columns; those with the values of a path of a VARIANT have `Column.variant_path` and `untyped`."""
    if not any(_TYPED in leaf.steps for leaf in leaves):
        return tuple(leaf.column for leaf in leaves)
    binaries = {leaf.steps: leaf.column.index for leaf in leaves if leaf.column.physical == "BYTE_ARRAY"}
    return tuple(
        replace(leaf.column, variant_path=path, untyped=binaries.get((*leaf.steps[:-1], _UNTYPED)))
        if leaf.steps[-1] == _TYPED and (path := _path(leaf, binaries)) is not None
        else leaf.column
        for leaf in leaves
    )


def _path(leaf: Leaf, binaries: dict[tuple[str, ...], int]) -> str | None:
    """The path in a VARIANT whose values a leaf stores; None for other leaves, and for names that no path has."""
    steps = leaf.steps
    top = next(
        (at for at, name in enumerate(steps) if name == _TYPED and (*steps[:at], "metadata") in binaries), None
    )
    if not top:
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
