"""Finds a table's columns in a file: by field ids, or by their names in the file.

Sources: Iceberg's specification ("Column Projection" and "Name Mapping"), which looks for names only in files without
any field id; Delta's PROTOCOL.md ("Column Mapping"), in which elements, keys and values have no field ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.model.schema import ColumnName, ColumnNames

ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"

_NOT_IN_TABLE: Final = " (not a column of the table)"


class FileColumn(NamedTuple):
    """A leaf column of a file."""

    ordinal: int
    """`Column.index`."""
    path: str
    """The path in the file."""
    steps: tuple[str, ...]
    """The path without the groups that a format puts around elements, keys and values; these are called `element`,
    `key` and `value`."""
    field_id: int | None


class TableColumns(NamedTuple):
    """A table's columns in a file."""

    paths: Mapping[int, str]
    """The table's path of each leaf column that the table has, by `Column.index`."""
    missing_columns: tuple[str, ...]
    """The table's paths of its other columns, in the table's order."""
    wide: Mapping[int, str]
    """`ColumnName.wide` of the columns that have it, by `Column.index`."""


def find_columns(
    leaves: Iterable[FileColumn], names: ColumnNames, *, group_ids: Iterable[int], path: str, offset: int
) -> TableColumns:
    """Find the columns of a table in a file.

    Args:
        leaves: the file's leaf columns.
        names: the table's column names.
        group_ids: the field ids of the file's groups: structs, lists and maps.
        path, offset: the file, and where its schema is, for errors.

    Raises:
        UsageError: two columns of the table have the same path, field id or name in files.
        CorruptFile: two columns of the file have the field id of one column of the table.
        UnsupportedError: two columns of the file have names of one column of the table, or the file has no field ids
            and the table has no names for files.
    """
    by_id, by_name = _index(names, path)
    leaves, groups = list(leaves), frozenset(group_ids)
    with_ids = bool(groups) or any(leaf.field_id is not None for leaf in leaves)
    if not with_ids and by_id and not by_name and leaves:
        raise UnsupportedError(
            "the file has no field ids, and the table has no name mapping: which column is which isn't known",
            path=path,
            offset=offset,
            hint="set the table property schema.name-mapping.default",
        )
    columns: dict[str, FileColumn] = {}
    wide: dict[int, str] = {}
    for leaf in leaves:
        name = by_id.get(leaf.field_id) if leaf.field_id is not None else None
        if name is None:
            name = by_name.get(".".join(leaf.steps))
            if name is not None and with_ids and name.field_id is not None:
                name = None  # the table finds the column by its field id, which no or another leaf has
        if name is None:
            continue
        other = columns.setdefault(name.path, leaf)
        if other is not leaf:
            raise _ambiguous(name, other, leaf, path, offset)
        if name.wide is not None:
            wide[leaf.ordinal] = name.wide
    missing = [n for n in names.columns if n.path not in columns and not (with_ids and n.field_id in groups)]
    paths = {leaf.ordinal: name for name, leaf in columns.items()}
    return TableColumns(paths, tuple(n.path for n in missing), wide)


def other_path(path: str, names: ColumnNames) -> str:
    """The path to show for a column of a file that the table doesn't have."""
    paths = {name.path for name in names.columns}
    shown = path + _NOT_IN_TABLE
    while shown in paths:
        shown += _NOT_IN_TABLE
    return shown


def why_missing(columns: Sequence[str]) -> str:
    """The message about columns of the table that the file doesn't have."""
    single = len(columns) == 1
    return (
        f"the file doesn't have the table's column{'' if single else 's'} {', '.join(columns)}: it was written before"
        f" {'the column was' if single else 'they were'} added, or without {'it' if single else 'them'}"
    )


def _index(names: ColumnNames, path: str) -> tuple[dict[int, ColumnName], dict[str, ColumnName]]:
    """The columns by field id, and by each of their names in files."""
    by_path: dict[str, ColumnName] = {}
    by_id: dict[int, ColumnName] = {}
    by_name: dict[str, ColumnName] = {}
    for name in names.columns:
        if by_path.setdefault(name.path, name) is not name:
            raise UsageError(f"two columns of the table are called {name.path!r}", path=path)
        if name.field_id is not None and (other := by_id.setdefault(name.field_id, name)) is not name:
            raise UsageError(
                f"the table's columns {other.path} and {name.path} have the same field id, {name.field_id}", path=path
            )
        for physical in name.physical or ((name.path,) if name.field_id is None else ()):
            if (other := by_name.setdefault(physical, name)) is not name:
                raise UsageError(
                    f"the table's columns {other.path} and {name.path} have the same name in files, {physical!r}",
                    path=path,
                )
    return by_id, by_name


def _ambiguous(
    name: ColumnName, leaf: FileColumn, other: FileColumn, path: str, offset: int
) -> CorruptFile | UnsupportedError:
    """The error about two columns of the file that are the same column of the table."""
    pair = f"the file's columns {leaf.path} and {other.path}"
    if leaf.field_id is not None and leaf.field_id == other.field_id == name.field_id:
        return CorruptFile(
            f"{pair} have the same field id, {leaf.field_id}: which of them is the table's {name.path} isn't known",
            path=path,
            offset=offset,
            hint="the footer is damaged; get the file from its source again",
        )
    return UnsupportedError(
        f"{pair} have names of the same column of the table, {name.path}: which of them it is isn't known",
        path=path,
        offset=offset,
    )
