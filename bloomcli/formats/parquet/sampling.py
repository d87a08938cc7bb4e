"""The metadata and the values of Parquet row groups, for `advise`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bloomcli import kernels
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import values
from bloomcli.formats.parquet.describe import non_null_values
from bloomcli.formats.parquet.filter_header import bitset_bytes_in
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.formats.parquet.values import HashedPage
from bloomcli.formats.sampling import Extent, RowGroupValues, SampleBatch, SplitBlockBuilder, UnitValues
from bloomcli.model.file import Column, ColumnChunk

_CODECS: Final = frozenset({0, 1, 2, 4, 5, 6, 7})
"""The numbers of the supported codecs; 3 is LZO."""
_DICTIONARIES: Final = 1 << 2 | 1 << 8
"""PLAIN_DICTIONARY and RLE_DICTIONARY, as bits."""


def extents(footer: Footer, column: Column) -> Iterator[Extent]:
    """Yield the extent of each chunk of a column, from the footer. Raises CorruptFile."""
    ordered, deprecated = footer.trusted_bounds(column)
    required = column.max_definition_level == 0
    for key in footer.chunk_keys({column.index}):
        group, size = footer.row_group(key.row_group), footer.row_group_bytes(key.row_group)
        try:
            found = kernels.chunk_facts(footer.raw, key.start, parquet_limits.THRIFT_MAX_DEPTH, ordered, deprecated)
        except kernels.CompactError as error:
            raise footer.location.fault(error.reason, error.offset) from None
        if found is None:  # encrypted
            yield Extent(group.rows, size, 0, group.rows, None, doubtful=True)
            continue
        count, nulls = found[0] or 0, 0 if required else found[8]
        nulls, low, high = footer.believed(column, count, nulls, found[10], found[11], found[13])
        has_filter = found[7] is not None and found[7] > 0
        dictionary = bool(found[4] & _DICTIONARIES)
        only, length = footer.dictionary_and_filter(key) if dictionary or has_filter else (False, None)
        yield Extent(
            rows=group.rows,
            row_group_bytes=size,
            chunk_bytes=found[2] or 0,
            values=count - (nulls or 0),
            nulls=nulls,
            low=low,
            high=high,
            empty=not count or nulls == count,
            doubtful=footer.signed or found[3] not in _CODECS,  # signed files have encrypted columns
            only_dictionary=only,
            filter_bytes=None if not has_filter else 0 if length is None else bitset_bytes_in(length),
        )


def unit_values(
    filters: Filters, columns: Sequence[Column], unit: int, rates: Sequence[float], least: int, stop: Stop
) -> Iterator[UnitValues]:
    """Yield the values of columns in a row group. Raises CorruptFile, UnsupportedError."""
    group = filters.footer.row_group(unit)
    chunks = [(c, filters.footer.chunk(ChunkKey(unit, c.index, group.chunks[c.index]))) for c in columns]
    filters.source.will_read((chunk.data_offset, chunk.compressed_bytes) for _, chunk in chunks)
    for column, chunk in chunks:
        yield UnitValues(column, _row_group(filters, chunk, rates, least, stop), _plain)


def _plain(keys: Sequence[object]) -> Sequence[bytes | None]:
    return [key if isinstance(key, bytes) else None for key in keys]


def _row_group(
    filters: Filters, chunk: ColumnChunk, rates: Sequence[float], least: int, stop: Stop
) -> Iterator[RowGroupValues]:
    """The only row group of the unit."""
    if not chunk.encrypted:
        built = SplitBlockBuilder(non_null_values(chunk), rates, least)
        yield RowGroupValues(built, _batches(filters, chunk, stop))


def _batches(filters: Filters, chunk: ColumnChunk, stop: Stop) -> Iterator[SampleBatch]:
    """Yield the values of the chunk, without dictionary entries that no row refers to."""
    zeros = array("Q", values.zero_hashes(chunk.column)).tobytes()
    for page in values.hashed_pages(filters.source, chunk, filters.footer.start, stop=stop):
        yield SampleBatch(page.hashes, page.count, _key(page), zeros if page.has_zero else b"")


def _key(page: HashedPage) -> Callable[[int], object]:
    return page.value
