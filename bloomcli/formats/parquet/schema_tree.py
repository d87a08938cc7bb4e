"""Lists the schema's elements in preorder."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.schema import leaf_columns, logical_text
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.schema import SchemaNode


def schema_tree(top: Struct) -> Iterator[SchemaNode]:
    """Yield every element of the schema of FileMetaData. Raises CorruptFile."""
    count = len(leaf_columns(top))  # checks the tree
    starts = top.list_starts("schema")[:-1]
    waiting: list[tuple[tuple[str, ...], int]] = []  # groups: (path, children to come)
    leaf = 0
    for index, start in enumerate(starts):
        element = Struct("SchemaElement", top.data, start, top.location.at(f"schema[{index}]"))
        while waiting and not waiting[-1][1]:
            waiting.pop()
        steps: tuple[str, ...] = ()
        depth = len(waiting)
        if waiting:
            above, left = waiting[-1]
            waiting[-1] = (above, left - 1)
            steps = (*above, element.text("name") or "")
        children = element.integer("num_children") or 0
        is_leaf = bool(index) and not children and element.span("type") is not None
        yield _schema_node(element, depth, steps, leaf if is_leaf and leaf < count else None)
        if is_leaf:
            leaf += 1
        else:
            waiting.append((steps, children))


def _schema_node(element: Struct, depth: int, steps: tuple[str, ...], leaf: int | None) -> SchemaNode:
    number = element.integer("repetition_type")
    converted = element.integer("converted_type")
    logical = logical_text(element)
    if logical is None and converted is not None:
        logical = spec.enum_name("ConvertedType", converted)
    kind = element.integer("type")
    return SchemaNode(
        depth=depth,
        name=element.text("name") or "",
        path=".".join(steps),
        type="group" if leaf is None or kind is None else spec.enum_name("Type", kind),
        logical=logical,
        repetition=spec.enum_name("FieldRepetitionType", number).lower() if number is not None and depth else None,
        id=element.integer("field_id"),
        length=element.integer("type_length") if leaf is not None else None,
        column=leaf,
    )
