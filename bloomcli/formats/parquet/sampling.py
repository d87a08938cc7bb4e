"""The metadata and the values of Parquet row groups, for `advise`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from bloomcli.concurrency.threads import Stop
from bloomcli.formats.parquet import codecs, spec, values
from bloomcli.formats.parquet.bloom_filter import Filters, bitset_bytes_in
from bloomcli.formats.parquet.footer import filter_offset
from bloomcli.formats.parquet.statistics import non_null_values
from bloomcli.formats.sampling import Extent, RowGroupValues, SampleBatch, SplitBlockBuilder, UnitValues
from bloomcli.model.file import ChunkKey, Column, ColumnChunk

_DICTIONARIES: Final = spec.PLAIN_DICTIONARY | 1 << 8
"""PLAIN_DICTIONARY and RLE_DICTIONARY, as bits."""


def extents(filters: Filters, column: Column) -> Iterator[Extent]:
    """Yield the extent of each chunk of a column, from the footer. Raises CorruptFile."""
    footer = filters.footer
    for key in footer.chunk_keys({column.index}):
        group, size = footer.row_group(key.row_group), footer.row_group_bytes(key.row_group)
        metadata = footer.metadata(key)
        if not metadata.has_metadata:  # encrypted
            yield Extent(group.rows, size, 0, group.rows, None, doubtful=True)
            continue
        count = metadata.num_values or 0
        nulls, low, high = footer.statistics(key, metadata, column)
        has_filter = filter_offset(metadata) is not None
        length = metadata.bloom_filter_length
        dictionary = bool(metadata.encodings & _DICTIONARIES)
        yield Extent(
            rows=group.rows,
            row_group_bytes=size,
            chunk_bytes=metadata.total_compressed_size or 0,
            values=count - (nulls or 0),
            nulls=nulls,
            low=low,
            high=high,
            empty=not count or nulls == count,
            doubtful=metadata.encrypted or not _readable(metadata.codec),
            only_dictionary=(dictionary or has_filter) and footer.only_dictionary(key, metadata),
            filter_bytes=None if not has_filter else 0 if length is None else bitset_bytes_in(length),
        )


@cache
def _readable(codec: int | None) -> bool:
    """Whether pages with the codec of this number can be read."""
    return codec is not None and codecs.supported(spec.enum_name("CompressionCodec", codec))


def unit_values(
    filters: Filters, columns: Sequence[Column], unit: int, rates: Sequence[float], least: int, stop: Stop
) -> Iterator[UnitValues]:
    """Yield the values of columns in a row group. Raises CorruptFile, UnsupportedError."""
    chunks = [filters.footer.chunk(ChunkKey(unit, column.index)) for column in columns]
    filters.source.will_read((chunk.data_offset, chunk.compressed_bytes) for chunk in chunks)
    for column, chunk in zip(columns, chunks, strict=True):
        yield UnitValues(column, _row_group(filters, chunk, rates, least, stop))


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
    for page in values.hashed_slices(filters.source, chunk, stop=stop):
        yield SampleBatch(page.hashes, page.count, page.value, zeros if values.has_zero(page) else b"")
