"""Encodes page indexes: the bounds of pages, their order, and the pages' places.

A column index has bounds for pages with values, and "null page" for pages with nulls only.

Source: the Apache Parquet format, PageIndex.md, and parquet.thrift, ColumnIndex and OffsetIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bloomcli.formats.parquet.compact import binary, i32, listed, struct
from bloomcli.formats.parquet.spec import BINARY, BOOLEAN_FALSE, BOOLEAN_TRUE, I32, I64, STRUCT, zigzag

UNORDERED: Final = 0
ASCENDING: Final = 1
_DESCENDING: Final = 2
_PLACE: Final = bytes([1 << 4 | I64]) + b"%b" + bytes([1 << 4 | I32]) + b"%b" + bytes([1 << 4 | I64]) + b"%b\0"
"""A PageLocation: an i64, an i32 and an i64 with the ids 1 to 3."""


class IndexedPage(NamedTuple):
    """A page's facts in the column index."""

    low: bytes | None
    """None, like `high`, for a page with nulls only."""
    high: bytes | None
    nulls: int | None = None
    nans: int | None = None


def column_index(pages: Sequence[IndexedPage], order: int) -> bytes:
    """Encode a ColumnIndex. Null and NaN counts are left out unless they are known for all pages.

    Args:
        pages: the data pages, in order.
        order: the boundary order.
    """
    fields = {
        1: listed(BOOLEAN_TRUE, [bytes([BOOLEAN_TRUE if page.low is None else BOOLEAN_FALSE]) for page in pages]),
        2: listed(BINARY, [binary(page.low or b"")[1] for page in pages]),
        3: listed(BINARY, [binary(page.high or b"")[1] for page in pages]),
        4: i32(order),
    }
    for number, counts in ((5, [page.nulls for page in pages]), (8, [page.nans for page in pages])):
        known = [zigzag(count) for count in counts if count is not None]
        if len(known) == len(pages):
            fields[number] = listed(I64, known)
    return struct(fields)


def offset_index(places: Iterable[tuple[int, int, int]]) -> bytes:
    """Encode an OffsetIndex of the data pages' (offset, size with the header, first row)."""
    pages = [_PLACE % (zigzag(offset), zigzag(size), zigzag(first)) for offset, size, first in places]
    return struct({1: listed(STRUCT, pages)})


def boundary_order(pages: Sequence[IndexedPage], key: Callable[[bytes], Any]) -> int:
    """The order of the pages' bounds; pages with nulls only don't count.

    Args:
        pages: the data pages.
        key: a bound's key that compares in the column's order.
    """
    bounds = [(key(page.low), key(page.high)) for page in pages if page.low is not None and page.high is not None]
    steps = list(pairwise(bounds))
    if all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in steps):
        return ASCENDING
    if all(low >= next_low and high >= next_high for (low, high), (next_low, next_high) in steps):
        return _DESCENDING
    return UNORDERED
