"""The stored parts of one column, and the index entries about them. Offsets are bytes from the file's start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """One part of a column as stored: a page in Parquet, a stream in ORC, a bucket in Mosaic."""

    row_group: int
    """In ORC always 0: a stream has the values of a whole stripe."""
    stripe: int | None = None
    kind: str
    """Parquet: ``DATA_PAGE``, ``DICTIONARY_PAGE``, ... ORC: ``PRESENT``, ``DATA``, ``ROW_INDEX``, ...
    Mosaic: the bucket's layout, ``monolithic``, ``paged`` or ``empty``."""
    offset: int
    header_bytes: int | None = None
    compressed_bytes: int | None = None
    """Bytes in the file, without the header."""
    uncompressed_bytes: int | None = None
    encoding: str | None = None
    """ORC: the encoding of the column in the stripe."""
    values: int | None = None
    """Values, nulls included; for a dictionary, its entries."""
    nulls: int | None = None
    """From the header; None if it doesn't say."""
    rows: int | None = None
    crc: str | None = None
    """The checksum in the header, 8 hex digits; None without one."""
    bucket: int | None = None
    """Mosaic: the bucket's number."""
    problem: str | None = None
    """Why this part, or the parts after it, can't be read or aren't listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The index entry of some rows of a column: a page in Parquet, a row group in ORC and Mosaic."""

    row_group: int
    stripe: int | None = None
    page: int | None = None
    """Parquet: the data page, counted from 0 in its row group."""
    offset: int | None = None
    """Parquet, offset index: the offset of the page's header."""
    compressed_bytes: int | None = None
    """Parquet, offset index: bytes of the page, its header included."""
    first_row: int | None = None
    """Parquet, offset index: the page's first row, counted in its row group."""
    values: int | None = None
    """ORC: values that aren't null. Mosaic: rows."""
    nulls: int | None = None
    has_nulls: bool | None = None
    only_nulls: bool | None = None
    min: str | None = None
    max: str | None = None
    """Bounds, as `probe` takes values; writers may shorten them."""
    boundary_order: str | None = None
    """Parquet, column index: the order of the pages' bounds."""
    positions: tuple[int, ...] = ()
    """ORC: where the row group starts in each of the column's streams."""
    problem: str | None = None
    """Why the entry, or its bounds, aren't shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFilter:
    """The union of a column's filters in an ORC stripe, by which a reader can skip the whole stripe."""

    stripe: int
    encoding: str
    filters: int
    hash_functions: int | None = None
    bits: int | None = None
    set_bits: int | None = None
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """False-positive rate of the joined filter."""
    problem: str | None = None
