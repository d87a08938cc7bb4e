"""The names that a table has for the columns of its files.

A table renames, drops and adds columns without rewriting files. Iceberg finds a column in a file by its field id, or,
in files without field ids, by a name mapping; Delta finds it by its physical name or by its field id. `ColumnNames`
holds the names and ids that this needs. It can be pickled, and is passed with the options to the code that opens a
file.
"""

from __future__ import annotations

from typing import NamedTuple


class ColumnName(NamedTuple):
    """A leaf column of a table, and its names in files."""

    path: str
    """The table's dotted path of the leaf: ``user.email``, ``tags.element``, ``prices.key``."""
    field_id: int | None = None
    """The leaf's field id; None if the table doesn't find columns by field ids."""
    physical: tuple[str, ...] = ()
    """The leaf's dotted paths in files where it isn't found by its field id: from a name mapping, or its physical
    name. The paths leave out the groups that a format puts around elements, keys and values, which are called
    ``element``, ``key`` and ``value``. If both this and the field id are missing, the column has its `path` in
    files."""
    wide: str | None = None
    """``DOUBLE`` or ``TIMESTAMP``, if that is the column's type. Files from before it was widened have narrower
    types, whose values are compared as values of this type."""


class ColumnNames(NamedTuple):
    """The leaf columns of a table, in the order of its schema."""

    columns: tuple[ColumnName, ...]
