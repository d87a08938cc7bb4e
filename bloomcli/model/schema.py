"""The schema of a file as a tree, the names that a table has for its columns, and the row lineage of a data file.

A table renames, drops and adds columns without rewriting files. Iceberg finds a column in a file by its field id, or,
in files without field ids, by a name mapping; Delta finds it by its physical name or by its field id. `ColumnNames`
holds the names and ids that this needs. It can be pickled, and is passed with the options to the code that opens a
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNode:
    """One element of the schema. The elements come in preorder: a group comes before what it contains."""

    depth: int
    """0 for the root; Mosaic has no root, and its columns are at 1."""
    name: str
    path: str
    """The dotted path, as `--columns` takes it for a leaf; empty for the root."""
    type: str
    """Parquet: the physical type, or ``group``. ORC and Mosaic: the type."""
    logical: str | None = None
    """Parquet: the logical type, or the converted type if there is no logical one."""
    repetition: str | None = None
    """Parquet: ``required``, ``optional`` or ``repeated``. Mosaic: ``required`` for a NOT NULL column."""
    id: int | None = None
    """Parquet: the field id. ORC: the column id."""
    length: int | None = None
    """Parquet: the bytes of a fixed-length type."""
    column: int | None = None
    """The ordinal of a leaf column, counted from 0."""
    attributes: tuple[tuple[str, str], ...] = ()
    """As names and values: the attributes, the crs and the algorithm of ORC's type; Mosaic's bucket; in Parquet the
    order of a leaf's bounds, if it isn't TYPE_ORDER."""


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


class RowLineage(NamedTuple):
    """The row numbers that a table's metadata assigns to a data file, for rows without stored numbers."""

    first_row_id: int
    """The number of the first row; the others follow in the file's order."""
    sequence_number: int
    """The number of the commit that last changed the rows."""
