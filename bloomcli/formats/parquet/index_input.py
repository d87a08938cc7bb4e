"""The bits of a column's row groups for an index: of the file's filters, or of filters built from the values."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.concurrency.cancellation import Stop
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.index_input import BitsSource, RowGroupBits
from bloomcli.formats.parquet import bounds, codecs, sampling, values
from bloomcli.formats.parquet.describe import non_null_values
from bloomcli.formats.parquet.filterable import unfilterable
from bloomcli.formats.parquet.filters import Filters
from bloomcli.model.file import Column, ColumnChunk


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
        CorruptFile, UnsupportedError: the column's pages can't be read.
        Stopped: soon after `stop` is set.
    """
    footer = filters.footer
    filters.source.will_read(filters.ranges({column.index}))
    for key in footer.chunk_keys({column.index}):
        stop.check()
        chunk = footer.chunk(key)
        yield _row_group(filters, chunk, footer.row_group(key.row_group).rows, fpp, stop)


def sources(filters: Filters, column: Column) -> Iterator[BitsSource]:
    """Yield what `row_groups` would read, from the footer. Whether a filter can be used isn't known yet."""
    for extent in sampling.extents(filters.footer, column):
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
    found, wrong = _usable(filters, chunk)
    only_nulls = chunk.null_count is not None and chunk.null_count >= chunk.num_values
    if found is not None:
        return none._replace(bits=found.folded_to(fpp).bitset, contradicted=only_nulls and any(found.bitset))
    none = none._replace(contradicted=wrong)
    if only_nulls:
        return none
    if chunk.encrypted or not (chunk.codec == "UNCOMPRESSED" or codecs.supported(chunk.codec)):
        return none._replace(possible=True)
    made, decoded = _made(filters, chunk, fpp, stop)
    lost = any(bounds.lost(chunk, made))
    return none._replace(bits=made.folded_to(fpp).bitset, decoded=decoded, contradicted=wrong or lost)


def _usable(filters: Filters, chunk: ColumnChunk) -> tuple[SplitBlockFilter | None, bool]:
    """The chunk's filter if it can be used (see `bloomcli.formats.answer`), and whether statistics contradict it."""
    if chunk.bloom_filter_offset is None:
        return None, False
    try:
        found = filters.load(chunk)
    except FilterProblem:
        return None, False
    if found.header.draft:
        return None, False
    wrong = any(bounds.lost(chunk, found.bits))
    return None if wrong else found.bits, wrong


def _made(filters: Filters, chunk: ColumnChunk, fpp: float, stop: Stop) -> tuple[SplitBlockFilter, int]:
    """Make a filter built from the values. Also returns the number of compressed bytes that were decoded."""
    bits = SplitBlockFilter.empty(sizing.upper_bound_bytes(non_null_values(chunk), fpp))
    zero, end = False, chunk.data_offset
    filters.source.will_read([(chunk.data_offset, chunk.compressed_bytes)])
    for page in values.hashed_pages(filters.source, chunk, filters.footer.start, stop=stop):
        bits.insert_hashes(page.hashes, page.count)
        zero, end = zero or page.has_zero, max(end, page.end)
    if zero:
        for value in values.zero_hashes(chunk.column):
            bits.insert(value)
    return bits, end - chunk.data_offset
