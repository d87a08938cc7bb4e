"""What one file tells `advise` of its columns: from its metadata, and from the values of sampled units.

A unit is a row group, in ORC a stripe, which has several row groups. Bytes are compressed bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import Column

SUMS: Final = 4
"""Sums of a lookup that no rate matters for: row groups and bytes by min/max, row groups and bytes today."""
RATE_SUMS: Final = 3
"""Sums for each rate: row groups and bytes with the filter, and bytes of the filters that are read for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnExtents:
    """A column by the file's metadata. Sequences have an item for each row group of the file."""

    column: str
    type: str
    typed: Column
    """As `literals` reads and renders values of it; its path and index are of no meaning."""
    unfilterable: str | None
    loses_rows: bool
    values: tuple[int, ...]
    """Values that aren't null, at most."""
    nulls: int | None
    chunk_bytes: int
    lows: tuple[bytes | None, ...]
    highs: tuple[bytes | None, ...]
    """PLAIN bytes of `typed`; None where there is no bound."""
    empty: bytes
    """1 where the metadata say that there is no value but nulls."""
    dictionary: int
    """Row groups in which every data page is dictionary-encoded."""
    filters: int
    without_filter: int
    """Row groups that have values and no filter."""
    filter_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExtents:
    """A file by its metadata."""

    format: str
    bytes: int
    rows: int
    units: tuple[int, ...]
    """The row groups of each unit."""
    row_group_bytes: tuple[int, ...]
    columns: tuple[ColumnExtents, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingSample:
    """The filters that a column has in a sampled unit, read and measured."""

    filters: int = 0
    unreadable: int = 0
    measured: int = 0
    """Filters that were read whole; the following are about these."""
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
    """Hashes of values, equal neighbours once; the entries of a dictionary once each."""
    sketch: bytes
    """A theta sketch of the values' hashes, as DataSketches serializes it."""
    filter_bytes: tuple[int, ...]
    """Bitset bytes of the new filters of all row groups, for each rate."""
    filter_fpp: tuple[float, ...]
    """The sum of their measured false-positive rates, for each rate."""
    highest_fpp: tuple[float, ...]
    """The highest of them."""
    tight_bytes: tuple[int, ...]
    """Their expected bytes with tight sizes, of any number of blocks."""
    row_groups: int
    fixed_filters: bool
    """The size of a filter doesn't depend on its values."""
    seconds: float
    """Time to decode and hash the values, and to build the filters."""
    existing: ExistingSample
    values: tuple[bytes, ...] = ()
    """Different values at random, PLAIN bytes of `typed`."""
    sums: bytes = b""
    """float64s: cells x sums. The sums of the lookups of each cell in this unit; of the unit's own values if it has
    `values`, in two cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRow(FileRow):
    """A file of a run of `advise`, with what it told."""

    extents: FileExtents | None = None
    units: tuple[UnitSample, ...] = ()
