"""The figures that `index inspect` reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFacts:
    """A blob of the index."""

    type: str
    offset: int
    length: int
    """Bytes in the file, after compression."""
    codec: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumnFacts:
    """A column and type in an index."""

    column: str
    physical: str
    logical: str | None
    row_groups: int
    """Row groups that have the column in this type."""
    filters: int
    """Row groups with the bits of a filter."""
    always: int
    """Row groups that may have every value."""
    never: int
    """Row groups without values."""
    free_slots: int
    """Slots of dropped files, which an update uses again."""
    filter_bytes: int
    """The common size of the filters."""
    fpp: float | None
    """The mean measured false-positive rate of the filters at that size; None without filters."""
    bytes: int
    """Bytes of the bits in the index."""
    lookup_bytes: int
    """Bytes that are read for one value on a local disk."""
    slab_bytes: int
    """Bytes of a block's rows: the most that one request for a value reads from a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """What `index inspect` reports."""

    path: str
    bytes: int
    created_by: str
    fpp: float
    """The false-positive rate that the index was built for."""
    files: int
    row_groups: int
    rows: int
    data_bytes: int
    """Bytes of the indexed files."""
    columns: Sequence[IndexedColumnFacts]
    blobs: Sequence[BlobFacts]
