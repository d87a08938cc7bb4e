"""What an index takes from a Parquet file: the bits of a column's row groups, and the file's end.

The bits are those of the file's filters, or of filters built from the values. The end of a file in a store is kept to
save the request for it. Without it, a hit in a file with small row groups takes two requests: the file's tail, and
the row group. With it, the first request is that for the column. The ends of such files also take a larger part of
the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import BitsSource, RowGroupBits
from bloomcli.formats.parquet import codecs, sampling, statistics, values
from bloomcli.formats.parquet.bloom_filter import Filters, unfilterable
from bloomcli.formats.parquet.footer import OFFSET_INDEX, Footer
from bloomcli.formats.parquet.statistics import non_null_values
from bloomcli.limits import INDEX_END_MAX_BYTES
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.storage.base import Range, Source, united


def row_groups(filters: Filters, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
    """Yield the bits of each row group of a file, in order.

    If a filter can't be used (it is damaged, a draft, or doesn't contain the row group's own minimum or maximum), the
    values are read. If they can't be read either, the row group may have any value.

    Args:
        filters: the filters of the file.
        column: one of its leaf columns.
        fpp: the false-positive rate; filters are folded to the smallest size that has this rate, or built for it.
        stop: ends the reading.

    Raises:
        CorruptFile, UnsupportedError: the column's pages can't be read.
        Stopped: soon after `stop` is set.
    """
    footer = filters.footer
    filters.source.will_read(filters.ranges({column.index}))
    for chunk in footer.chunks({column.index}):
        stop.check()
        yield _row_group(filters, chunk, footer.row_group(chunk.row_group).rows, fpp, stop)


def sources(filters: Filters, column: Column) -> Iterator[BitsSource]:
    """Yield what `row_groups` would read, from the footer. Whether a filter can be used isn't known yet."""
    for extent in sampling.extents(filters, column):
        if extent.filter_bytes is not None:
            yield BitsSource(filter=True)
        elif extent.empty or unfilterable(column) is not None:
            yield BitsSource()
        else:
            yield BitsSource(reads=extent.chunk_bytes)


def _row_group(filters: Filters, chunk: ColumnChunk, rows: int, fpp: float, stop: Stop) -> RowGroupBits:
    none = RowGroupBits(chunk.row_group, rows)
    if unfilterable(chunk.column) is not None or (chunk.encrypted and not chunk.num_values):
        return none._replace(possible=True)
    if not chunk.num_values:
        return none
    usable, problem = filters.usable(chunk, filters.load)
    filter_ = None if usable is None or usable.header.draft else usable.bits
    wrong = problem == WRONG
    only_nulls = chunk.null_count is not None and chunk.null_count >= chunk.num_values
    if filter_ is not None:
        return none._replace(bits=filter_.folded_to(fpp).bitset, contradicted=only_nulls and any(filter_.bitset))
    none = none._replace(contradicted=wrong)
    if only_nulls:
        return none
    if chunk.encrypted or not codecs.supported(chunk.codec):
        return none._replace(possible=True)
    new_filter, decoded = _build(filters, chunk, fpp, stop)
    lost = any(statistics.lost(chunk, new_filter))
    return none._replace(bits=new_filter.folded_to(fpp).bitset, decoded=decoded, contradicted=wrong or lost)


def _build(filters: Filters, chunk: ColumnChunk, fpp: float, stop: Stop) -> tuple[SplitBlockFilter, int]:
    """Make a filter built from the values. Also returns the number of compressed bytes that were decoded."""
    bits = SplitBlockFilter.empty(sizing.upper_bound_bytes(non_null_values(chunk), fpp))
    zero, end = False, chunk.data_offset
    filters.source.will_read([(chunk.data_offset, chunk.compressed_bytes)])
    for page in values.hashed_slices(filters.source, chunk, stop=stop):
        bits.insert_hashes(page.hashes, page.count)
        zero, end = zero or values.has_zero(page), max(end, page.end)
    if zero:
        for value in values.zero_hashes(chunk.column):
            bits.insert(value)
    return bits, end - chunk.data_offset


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
    ranges = united([*_index_ranges(footer, columns), end])
    few = len(ranges) <= _RANGES_MOST and sum(length for _, length in ranges) <= INDEX_END_MAX_BYTES
    return ranges if few and sum(ranges[-1]) == source.size else (end,)


def _has_large_row_group(source: Source, footer: Footer) -> bool:
    """Whether a row group has more bytes than a request costs; False if the metadata are damaged."""
    most = source.request_bytes
    try:
        return any(footer.row_group_bytes(at) > most for at in range(footer.row_group_count))
    except BloomError:
        return False


def _index_ranges(footer: Footer, columns: Collection[int]) -> Iterable[Range]:
    """The ranges of the page indexes; none if the metadata are damaged."""
    ranges = []
    try:
        for key in footer.chunk_keys():
            for kind, offset, length in footer.index_extents(key, footer.metadata(key)):
                if kind == OFFSET_INDEX or key.column in columns:
                    ranges.append((offset, length))
    except BloomError:
        return []
    return ranges
