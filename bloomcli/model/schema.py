"""The schema of a file as a tree, in the format's own terms."""

from __future__ import annotations

from dataclasses import dataclass


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
    """ORC: the type's attributes, as names and values. Mosaic: the bucket."""
