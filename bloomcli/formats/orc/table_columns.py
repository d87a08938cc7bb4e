"""Gives an ORC file's columns the paths that a table has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.schema import COMPOUND, OrcType
from bloomcli.formats.table_names import ELEMENT, KEY, VALUE, FileColumn, find_columns, other_path
from bloomcli.model.schema import ColumnNames

_ID: Final = "iceberg.id"
"""The attribute with a type's field id. Source: Iceberg's specification, "Appendix A: ORC"."""
_MOST: Final = (1 << 31) - 1
_LEVELS: Final = {"LIST": (ELEMENT,), "MAP": (KEY, VALUE)}


def types_of_table(footer: Footer, names: ColumnNames) -> tuple[tuple[OrcType, ...], Sequence[str]]:
    """The types with the table's paths, and the table's columns that the file doesn't have.

    A list or a map has the path of the table's list or map if the table has a column in it.

    Raises:
        CorruptFile: a field id that isn't a number.
        Other errors: as `find_columns`.
    """
    ids = [_field_id(footer, column, message) for column, message in enumerate(footer.message.types)]
    steps = _steps(footer)
    leaves = [
        FileColumn(orc.id, orc.label, steps[orc.id], ids[orc.id]) for orc in footer.types if orc.kind not in COMPOUND
    ]
    groups = {field_id for orc in footer.types[1:] if orc.kind in COMPOUND and (field_id := ids[orc.id]) is not None}
    of_table = find_columns(leaves, names, group_ids=groups, path=footer.path, offset=footer.footer_at)
    paths = dict(of_table.paths)
    for orc in footer.types:
        if orc.kind in _LEVELS and (path := _group_path(orc, steps, of_table.paths)) is not None:
            paths[orc.id] = path
    types = tuple(
        orc
        if orc.kind == "STRUCT"
        else orc._replace(
            path=paths[orc.id] if orc.id in paths else other_path(orc.label, names),
            field_id=ids[orc.id],
            not_in_table=orc.id not in paths,
            wide=of_table.wide.get(orc.id),
        )
        for orc in footer.types
    )
    return types, of_table.missing_columns


def _field_id(footer: Footer, column: int, message: Any) -> int | None:
    """A type's field id. Raises CorruptFile."""
    field = f"types[{column}].attributes"
    for raw in message.attributes:
        pair = spec.parse("StringPair", raw, footer.path, footer.footer_at, field)
        if spec.text(pair.key) == _ID:
            text = spec.text(pair.value)
            if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= _MOST):
                raise CorruptFile(
                    f"the field id {text!r} is not a number from 0 to {_MOST}",
                    path=footer.path,
                    offset=footer.footer_at,
                    field=field,
                )
            return int(text)
    return None


def _steps(footer: Footer) -> list[tuple[str, ...]]:
    """Each type's path as `FileColumn.steps`."""
    steps: list[tuple[str, ...]] = [()] * len(footer.types)
    for orc in footer.types:  # in preorder
        for at, child in enumerate(orc.children):
            levels = _LEVELS.get(orc.kind)
            steps[child] = (*steps[orc.id], levels[at] if levels else footer.types[child].steps[-1])
    return steps


def _group_path(orc: OrcType, steps: Sequence[tuple[str, ...]], paths: Mapping[int, str]) -> str | None:
    """The table's path of a list or a map, by the first column in it that the table has."""
    for below in range(orc.id + 1, orc.last + 1):
        if below in paths:
            inner = steps[below][len(steps[orc.id]) :]
            parts = paths[below].rsplit(".", len(inner))
            # a name with a dot may be among them: then the path isn't known
            return parts[0] if len(parts) == len(inner) + 1 and parts[1] == inner[0] else None
    return None
