"""The reports of `inspect` and `dump`: every filter of a file, and a filter's bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bloomcli.model.file import ColumnSummary, EngineFilterFacts, FilterFacts, IndexEntry, MergedFilter, PageFacts
from bloomcli.model.report import Brief, Rows
from bloomcli.model.schema import SchemaNode


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSummary:
    """Totals of all filters of one column and encoding, in a format with a filter for every few thousand rows."""

    column: str
    physical: str
    logical: str | None
    filters: int
    unreadable: int
    bitset_bytes: int
    """Bytes of all bitsets together."""
    fill: float | None
    """Mean share of bits set."""
    fpp: float | None
    """Mean false-positive probability."""
    max_fpp: float | None
    ndv_estimate: float | None
    """Mean number of distinct values per filter, estimated from the set bits."""
    bits: int | None = None
    """m, if all filters have the same."""
    hash_functions: int | None = None
    """k, if all filters have the same."""
    encoding: str | None = None
    asked_fpp: float | None = None
    untrusted: str | None = None
    problem: str | None = None
    """Why the first unreadable filter can't be read; None if all can."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InspectReport(Rows):
    """A file, its columns, and every filter in it."""

    rows_in: ClassVar = (FilterFacts, "filters")

    path: str
    format: str
    file_bytes: int
    rows: int
    row_groups: int
    columns: int
    created_by: str | None
    filters: tuple[FilterFacts, ...]
    summary: tuple[FilterSummary, ...] = ()
    """One per column and encoding, for formats with a filter for every few thousand rows; else empty."""
    stripes: int | None = None
    """ORC: number of stripes."""
    details: tuple[tuple[str, str], ...] = ()
    """Other facts about the file, as names and values. Mosaic: version, schema, buckets."""
    engine_filters: tuple[EngineFilterFacts, ...] = ()
    """Filters that engines keep themselves, of the chosen columns."""
    columns_without_filters: tuple[str, ...] = ()
    """Columns chosen by name or glob that have no filter; empty if none were chosen."""
    other_columns_with_filters: tuple[str, ...] = ()
    """Columns with filters that weren't chosen, and so aren't shown."""
    requests: int | None = None
    """Requests to the object store, retries included; None for local files."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the store."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the store."""
    bytes_copied_by_store: int | None = None
    """Bytes that the store copied from object to object, and that didn't pass through this machine."""
    by_column: tuple[ColumnSummary, ...] = ()
    """One per chosen column, in schema order; empty for a file that contains only a filter."""
    pages: tuple[PageFacts, ...] = ()
    """With --pages: the stored parts of the chosen column."""
    index: tuple[IndexEntry, ...] = ()
    """With --indexes: the index entries of the chosen column."""
    merged_filters: tuple[MergedFilter, ...] = ()
    """With --indexes, ORC: the column's filters of each stripe, joined."""
    schema_tree: tuple[SchemaNode, ...] = ()
    """With --schema: every element of the schema, in preorder."""
    footer: dict[str, Any] | None = None
    """With --footer: the whole footer. Known fields have names, unknown ones their numbers; bytes are objects with
    the key hex."""
    unverified: str | None = None
    """`UNVERIFIED`, if the file's footer is signed, and its key isn't given."""

    @property
    def filter_bytes(self) -> int:
        """Bytes of all filters, headers included."""
        return sum(f.length or 0 for f in self.filters)

    @property
    def unreadable(self) -> int:
        """Filters that can't be read."""
        return sum(f.problem is not None for f in self.filters)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FilterDump(Brief):
    """A filter's bits."""

    path: str
    facts: FilterFacts
    header: bytes
    bitset: bytes
    """Blocks of 32 bytes, each 8 little-endian 32-bit words; of filters without blocks the bytes as in the file."""
    engine_filter: EngineFilterFacts | None = None
    """The facts of a filter that an engine keeps itself; `facts` repeats those that every filter has."""
    unverified: str | None = None
    """`UNVERIFIED`, if the file's footer is signed, and its key isn't given."""
    requests: int | None = None
    """Requests to the object store, retries included; None for local files."""
    bytes_downloaded: int | None = None
    """Bytes of objects that came from the store."""
    bytes_uploaded: int | None = None
    """Bytes of objects that went to the store."""
    bytes_copied_by_store: int | None = None
    """Bytes that the store copied from object to object, and that didn't pass through this machine."""
