"""Selects the end of a Parquet file in a store that an index keeps, to save the request for it.

Without it, a hit in a file with small row groups takes two requests: the file's tail, and the row group. With it, the
first request is that for the column. The ends of such files also take a larger part of the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from bloomcli.errors import BloomError
from bloomcli.formats.parquet.footer import Footer
from bloomcli.limits import INDEX_END_MAX_BYTES
from bloomcli.storage.base import Range, Source, united

_RANGES_MOST: Final = 256
"""The maximum number of ranges. Writers store the indexes of a row group or of the file together."""


def end_ranges(source: Source, footer: Footer, columns: Collection[int]) -> Sequence[Range]:
    """The ranges of an open file that an index of these columns (ordinals) keeps, in order, up to the file's end.

    They are the footer, the offset indexes of all columns, and the column indexes of these columns. There are none if
    the file isn't read by requests, if its row groups are small and its footer fits into the tail that opening it
    reads, or if the footer has more than `INDEX_END_MAX_BYTES`.
    """
    end = footer.start, source.size - footer.start
    if not source.request_bytes or end[1] > INDEX_END_MAX_BYTES:
        return ()
    if end[1] <= source.tail_bytes and not _has_large_row_group(source, footer):
        return ()
    found = united([*_index_ranges(footer, columns), end])
    few = len(found) <= _RANGES_MOST and sum(length for _, length in found) <= INDEX_END_MAX_BYTES
    return found if few and sum(found[-1]) == source.size else (end,)


def _has_large_row_group(source: Source, footer: Footer) -> bool:
    """Whether a row group has more bytes than a request costs; False if the metadata are damaged."""
    most = source.request_bytes
    try:
        return any(footer.row_group_bytes(at) > most for at in range(footer.row_group_count))
    except BloomError:
        return False


def _index_ranges(footer: Footer, columns: Collection[int]) -> Iterable[Range]:
    """The ranges of the page indexes; none if the metadata are damaged."""
    found = []
    try:
        for key in footer.chunk_keys():
            for field, offset, length in footer.index_extents(key, footer.metadata(key)):
                if field == "offset_index_offset" or key.column in columns:
                    found.append((offset, length))
    except BloomError:
        return []
    return found
