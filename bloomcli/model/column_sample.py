"""The results of `advise` for one file: its columns' metadata, and the values of sampled units.

A unit is a row group; in ORC a stripe, which contains several row groups. Bytes are compressed bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import Column

SUMS: Final = 4
"""Number of sums that don't depend on a rate: row groups and bytes by min/max, row groups and bytes today."""
RATE_SUMS: Final = 3
"""Number of sums for each rate: row groups and bytes with the filter, and bytes of the filters that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnExtents:
    """The metadata of a column of one file. Sequences have an item for each row group of the file."""

    column: str
    type: str
    typed: Column
    """The type by which `literals` reads and renders values. Its path and index have no meaning."""
    unfilterable: str | None
    loses_rows: bool
    values: tuple[int, ...]
    """Upper bound of the number of values that aren't null."""
    nulls: int | None
    chunk_bytes: int
    lows: tuple[bytes | None, ...]
    highs: tuple[bytes | None, ...]
    """PLAIN bytes of `typed`; None without a bound."""
    empty: bytes
    """1 for row groups that contain only nulls according to the metadata."""
    dictionary: int
    """Row groups in which every data page is dictionary-encoded."""
    filters: int
    without_filter: int
    """Row groups that have values and no filter."""
    filter_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExtents:
    """The metadata of a file."""

    format: str
    bytes: int
    rows: int
    units: tuple[int, ...]
    """The number of row groups of each unit."""
    row_group_bytes: tuple[int, ...]
    columns: tuple[ColumnExtents, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingSample:
    """The existing filters of a column in a sampled unit, read and measured."""

    filters: int = 0
    unreadable: int = 0
    measured: int = 0
    """Filters that were read completely. The following fields describe only these."""
    bitset_bytes: int = 0
    foldable_bytes: int = 0
    max_fpp: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSample:
    """One column of one sampled unit."""

    column: str
    unit: int
    typed: Column
    hashed: int
    """Number of hashed values: equal neighbours count once, and so does each entry of a dictionary."""
    sketch: bytes
    """A theta sketch of the values' hashes, as DataSketches serializes it."""
    filter_bytes: tuple[int, ...]
    """Bitset bytes of the new filters of all row groups, for each rate."""
    filter_fpp: tuple[float, ...]
    """The sum of their measured false-positive rates, for each rate."""
    highest_fpp: tuple[float, ...]
    """The highest of these rates, for each rate."""
    tight_bytes: tuple[int, ...]
    """Their expected bytes with tight sizes (any number of blocks)."""
    row_groups: int
    fixed_filters: bool
    """The size of a filter doesn't depend on its values."""
    seconds: float
    """Time to decode and hash the values, and to build the filters."""
    existing: ExistingSample
    values: tuple[bytes, ...] = ()
    """A random sample of distinct values, PLAIN bytes of `typed`."""
    sums: bytes = b""
    """float64s, cells x sums: the sums of the lookups of each cell in this unit. If the unit has `values`, these are
    looked up, in two cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRow(FileRow):
    """The row of one file of a run of `advise`, with its metadata and samples."""

    extents: FileExtents | None = None
    units: tuple[UnitSample, ...] = ()
