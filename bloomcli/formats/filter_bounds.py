"""The bounds of the values in one filter, by the metadata."""

from __future__ import annotations

from typing import NamedTuple


class FilterBounds(NamedTuple):
    """The bounds of the values in one filter."""

    row_group: int
    stripe: int | None
    low: bytes | None
    """Lower bound, PLAIN bytes of `literal_column`; None if unknown."""
    high: bytes | None
    only_dictionary: bool = False
    """Every data page is dictionary-encoded, and the metadata say so."""
