"""The facts about one filter, as in reports. Sizes and offsets are bytes, rates are probabilities in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFacts:
    """One filter on disk, or why it can't be read (``problem``)."""

    row_group: int
    column: str
    physical: str
    logical: str | None
    offset: int
    length: int | None
    """Bytes of header and bitset; from the metadata, else from the header."""
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    blocks: int | None = None
    algorithm: str | None = None
    hash: str | None = None
    compression: str | None = None
    values: int | None = None
    """Non-null leaf values in the chunk; all leaf values if the null count is unknown."""
    ndv_estimate: float | None = None
    """Distinct values, estimated from the set bits."""
    fill: float | None = None
    """Share of bits set."""
    fpp: float | None = None
    """Measured false-positive probability of a random absent value, exact for the filter's bits."""
    bits_per_value: float | None = None
    """Bits of the bitset per distinct value, by `ndv_estimate`."""
    problem: str | None = None
    stripe: int | None = None
    """ORC: the stripe, counted from 0; ``row_group`` then counts within it."""
    hash_functions: int | None = None
    """ORC: k, the number of bits that a value sets."""
    encoding: str | None = None
    """ORC: the stream's kind, ``BLOOM_FILTER_UTF8`` or ``BLOOM_FILTER``."""
    asked_fpp: float | None = None
    """ORC: the rate that the writer was configured with, estimated from the filter's size and the row index
    stride."""
    untrusted: str | None = None
    """Why readers must not use the filter; None if they may use it."""
    variant: str | None = None
    """Parquet: ``parquet``, or the 2018 draft that the filter's header follows."""
