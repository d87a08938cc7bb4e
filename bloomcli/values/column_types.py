"""Names of column types."""

from __future__ import annotations

from bloomcli.model.file import Column


def type_name(column: Column) -> str:
    """Return the usual name of a column's type: `type_name` if set, else the logical type, else the physical type."""
    return column.type_name or column.logical or column.physical


def kind_of(column: Column) -> str:
    """Return the logical type's name without its parameters, else the physical type."""
    return (column.logical or column.physical).partition("(")[0]
