"""Maps a Parquet file's leaf columns to the paths of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.schema import schema_tree
from bloomcli.formats.table_names import ELEMENT, KEY, VALUE, FileColumn, find_columns, other_path
from bloomcli.model.file import Column
from bloomcli.model.schema import ColumnNames, SchemaNode

_MAPS: Final = ("MAP", "MAP_KEY_VALUE")
_REPEATED: Final = "repeated"


@dataclass(slots=True)
class _Element:
    """An element of the schema, with its children."""

    node: SchemaNode
    below: list[_Element] = field(default_factory=list)


def columns_of_table(footer: Footer, names: ColumnNames) -> tuple[tuple[Column, ...], Sequence[str]]:
    """The leaf columns with the table's paths, and the table's columns that the file doesn't have.

    Raises: as `find_columns`.
    """
    root, groups = _tree(footer)
    leaves = [
        FileColumn(column, node.path, steps, node.id)
        for child in root.below
        for node, steps in _leaves(child, (child.node.name,))
        if (column := node.column) is not None
    ]
    table_columns = find_columns(leaves, names, group_ids=groups, path=footer.path, offset=footer.start)
    ids = {leaf.ordinal: leaf.field_id for leaf in leaves}
    columns = tuple(
        replace(
            column,
            path=table_columns.paths.get(column.index) or other_path(column.path, names),
            field_id=ids.get(column.index),
            not_in_table=column.index not in table_columns.paths,
            wide=table_columns.wide.get(column.index),
        )
        for column in footer.columns
    )
    return columns, table_columns.missing_columns


def _tree(footer: Footer) -> tuple[_Element, set[int]]:
    """The schema's root, and the field ids of the groups below it."""
    above: list[_Element] = []
    groups: set[int] = set()
    for node in schema_tree(footer.top):
        element = _Element(node)
        del above[node.depth :]
        if above:
            above[-1].below.append(element)
            if node.column is None and node.id is not None:
                groups.add(node.id)
        above.append(element)
    return above[0], groups


def _leaves(element: _Element, steps: tuple[str, ...]) -> Iterator[tuple[SchemaNode, tuple[str, ...]]]:
    """Yield each leaf of an element, whose path as `FileColumn.steps` begins with `steps`. The schema's depth was
    checked before."""
    if element.node.repetition == _REPEATED:
        steps = (*steps, ELEMENT)  # a repeated field without a list around it
    if element.node.column is not None:
        yield element.node, steps
        return
    for child, path in _below(element, steps):
        yield from _leaves(child, path)


def _below(element: _Element, steps: tuple[str, ...]) -> Iterator[tuple[_Element, tuple[str, ...]]]:
    """Yield the children of a group, without the repeated groups of lists and maps.

    Source: Parquet's LogicalTypes.md, "Lists" and "Maps", with their rules for older writers.
    """
    repeated = element.below[0] if len(element.below) == 1 else None
    if repeated is None or repeated.node.repetition != _REPEATED:
        repeated = None
    if repeated is not None and element.node.logical == "LIST":
        if _is_element(element, repeated):
            yield _Element(replace(repeated.node, repetition="required"), repeated.below), (*steps, ELEMENT)
        else:
            yield repeated.below[0], (*steps, ELEMENT)
    elif repeated is not None and element.node.logical in _MAPS and repeated.node.column is None:
        for name, child in zip((KEY, VALUE), repeated.below, strict=False):
            yield child, (*steps, name)
    else:
        for child in element.below:
            yield child, (*steps, child.node.name)


def _is_element(above: _Element, repeated: _Element) -> bool:
    """Whether a list's repeated field is the element itself, not a group around it."""
    node = repeated.node
    return (
        node.column is not None
        or len(repeated.below) != 1
        or repeated.below[0].node.repetition == _REPEATED
        or node.name in {"array", f"{above.node.name}_tuple"}
    )
