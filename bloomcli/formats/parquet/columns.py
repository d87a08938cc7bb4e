"""Sums up a column's metadata over all row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.formats.column_facts import NO_BOUNDS, ColumnFacts, merged_bounds
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import ChunkKey, Footer, first_page
from bloomcli.kernels import ChunkMetadata
from bloomcli.model.file import Column
from bloomcli.words import counted

_OTHER: Final = 63
"""The bit for encodings whose number is negative, 63 or more."""


def column_facts(footer: Footer, columns: set[int] | None) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (None: of all), in schema order. Raises CorruptFile."""
    groups = [footer.row_group(index) for index in range(footer.row_group_count)]
    count = len(footer.columns)
    for group in groups:
        if len(group.chunks) != count:
            raise footer.location.fault(
                f"row group {group.ordinal} has {counted(len(group.chunks), 'column chunk')}, the schema"
                f" has {count} leaves",
                footer.group_struct(group.ordinal).start,
                f"row_groups[{group.ordinal}].columns",
            )
    for column in footer.columns:
        if columns is None or column.index in columns:
            keys = [ChunkKey(group.ordinal, column.index, group.chunks[column.index]) for group in groups]
            yield _facts(footer, column, keys)


def _facts(footer: Footer, column: Column, keys: Sequence[ChunkKey]) -> ColumnFacts:
    if not keys:
        return ColumnFacts(column, column, values=0, nulls=0, compressed_bytes=0, uncompressed_bytes=0)
    chunks = list(map(footer.metadata, keys))
    if not all(chunk.has_metadata for chunk in chunks):
        return ColumnFacts(column, column, compression=("encrypted",))
    values = [chunk.num_values for chunk in chunks]
    believed = [footer.statistics(key, chunk, column) for key, chunk in zip(keys, chunks, strict=True)]
    counted = [nulls for nulls, _, _ in believed]
    rows = [
        (low, high, chunk.is_min_value_exact, chunk.is_max_value_exact)
        for chunk, count, (nulls, low, high) in zip(chunks, values, believed, strict=True)
        if count is None or nulls is None or count - nulls > 0
    ]
    bounds = NO_BOUNDS
    if rows:
        lows, highs, exact_lows, exact_highs = zip(*rows, strict=True)
        if any(low is not None for low in lows) or any(high is not None for high in highs):
            bounds = merged_bounds(lows, highs, column, (exact_lows, exact_highs))
    total = _sum(values)
    null_count = _sum(counted)
    if None in values:
        null_count = None
    most = _distinct(values, counted, [chunk.distinct_count for chunk in chunks])
    return ColumnFacts(
        column,
        column,
        encodings=_encodings([chunk.encodings for chunk in chunks]),
        compression=tuple(
            spec.enum_name("CompressionCodec", codec)
            for codec in dict.fromkeys(chunk.codec for chunk in chunks)
            if codec is not None
        ),
        values=total,
        nulls=null_count,
        compressed_bytes=_sum([chunk.total_compressed_size for chunk in chunks]),
        uncompressed_bytes=_sum([chunk.total_uncompressed_size for chunk in chunks]),
        dictionary_bytes=_dictionary_bytes(chunks),
        distinct=most,
        distinct_from=None if most is None else "statistics",
        bounds=bounds,
    )


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(values)  # type: ignore[arg-type]  # none is None


def _encodings(masks: Sequence[int]) -> tuple[str, ...]:
    together = 0
    for mask in masks:
        together |= mask
    found = [
        spec.enum_name("Encoding", bit) for bit in range(min(together.bit_length(), _OTHER)) if together >> bit & 1
    ]
    return (*found, "unknown") if together >> _OTHER else tuple(found)


def _dictionary_bytes(chunks: Sequence[ChunkMetadata]) -> int | None:
    found = (
        first_page(chunk.data_page_offset, chunk.dictionary_page_offset)[1]
        for chunk in chunks
        if chunk.data_page_offset
    )
    sizes = [size for size in found if size is not None]
    return sum(sizes) if sizes else None


def _distinct(
    values: Sequence[int | None], nulls: Sequence[int | None], distinct: Sequence[int | None]
) -> int | None:
    """The largest number of distinct values in a row group; None if a row group has no valid number."""
    for all_values, null, found in zip(values, nulls, distinct, strict=True):
        if all_values is None or found is None or not 0 <= found <= all_values - (null or 0):
            return None
    return max((d for d in distinct if d is not None), default=None)
