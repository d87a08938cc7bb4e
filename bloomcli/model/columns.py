"""The summary of one column of a file: type, encodings, sizes, bounds, and its filters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """One column over all row groups, from the metadata and the filters; no values are read."""

    column: str
    physical: str
    logical: str | None
    encodings: tuple[str, ...] = ()
    """Every encoding that the metadata name, also those of levels; empty if the format doesn't record any."""
    compression: tuple[str, ...] = ()
    """The codecs of the column's chunks."""
    values: int | None = None
    """Leaf values, nulls included; None if unknown."""
    nulls: int | None = None
    """From the statistics; None if a row group has none, or has wrong ones."""
    compressed_bytes: int | None = None
    """Bytes of the column's data in the file; None if they can't be separated from the data of other columns."""
    uncompressed_bytes: int | None = None
    dictionary_bytes: int | None = None
    """Parquet: bytes of all dictionary pages; None without dictionaries."""
    distinct: float | None = None
    """Distinct values in the row group (or, from an ORC dictionary, the stripe) with most of them."""
    distinct_from: str | None = None
    """The source of `distinct`: ``statistics``, ``dictionary``, or ``filter``, which is an estimate from set bits."""
    min: str | None = None
    max: str | None = None
    """Bounds of all values, as `probe` takes them; None if the statistics have none that can be trusted."""
    min_exact: bool | None = None
    max_exact: bool | None = None
    """False if the writer shortened the bound, so that it need not be a value; None if the file doesn't say."""
    no_bounds: str | None = None
    """Why the statistics' bounds aren't shown; None if they are, or if there are none."""
    bucket: int | None = None
    """Mosaic: the number of the column's bucket; the columns of a bucket are stored together."""
    row_groups_with_filter: int = 0
    """Row groups with at least one filter of the column, readable or not."""
    row_groups_without_filter: int = 0
    filters: int = 0
    """Filters that can be read."""
    unreadable: int = 0
    bitset_bytes: int = 0
    """Bytes of all bitsets together, without headers."""
    max_fpp: float | None = None
    """The highest measured false-positive rate."""
    untrusted: str | None = None
    """Why readers must not use a filter of the column, for the first such filter."""
