"""What reports show: the facts of a filter, and a column's metadata over all row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli import kernels
from bloomcli.filters import sizing
from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.column_facts import NO_BOUNDS, ColumnFacts, merged_bounds
from bloomcli.formats.parquet import spec, statistics
from bloomcli.formats.parquet.bloom_filter import DRAFT_REASON, FilterHeader, Filters, LoadedFilter
from bloomcli.formats.parquet.footer import Footer, first_page
from bloomcli.kernels import ChunkMetadata
from bloomcli.model.file import ChunkKey, Column, ColumnChunk, FilterFacts

_MOST_BYTES: Final = 1 << 20
"""The largest filter that `examined_facts` measures. Reading a larger one takes most of the time anyway."""


def ordinal(chunk: ColumnChunk) -> int:
    """The ordinal of a filter's column."""
    return chunk.column.index


def facts(filters: Filters, chunk: ColumnChunk, loaded: LoadedFilter) -> Iterator[FilterFacts]:
    """Yield a filter's facts, measured on its bits."""
    del filters
    yield of_loaded(
        chunk.column, chunk.row_group, statistics.non_null_values(chunk), loaded, _untrusted(chunk, loaded)
    )


def of_loaded(
    column: Column, row_group: int, values: int | None, loaded: LoadedFilter, untrusted: str | None
) -> FilterFacts:
    """The facts of a filter in memory. `values`: the non-null values that it was made of, if they are known."""
    bits = loaded.bits
    ndv = bits.ndv_estimate
    figures = ndv, bits.fill, bits.fpp, bits.nbytes * 8 / ndv if ndv else None
    return _facts(column, row_group, values, loaded.offset, loaded.header, figures, untrusted)


def examined_facts(filters: Filters, key: ChunkKey, offset: int, metadata: ChunkMetadata) -> FilterFacts | None:
    """A filter's facts, measured by compiled code, because a file may have a million filters.

    None for a filter that is large, damaged, a draft, or encoded unlike usual, and for damaged metadata.
    """
    footer, length = filters.footer, metadata.bloom_filter_length
    if length is None or not len(spec.MAGIC) <= offset <= footer.start - length:
        return None
    if not 0 < length <= _MOST_BYTES or not footer.is_sound(key, metadata):
        return None
    column = footer.columns[key.column]
    nulls, low, high = footer.statistics(key, metadata, column)
    kind, width = footer.trust(column).kind_of_bounds
    ends = (low, metadata.is_min_value_exact), (high, metadata.is_max_value_exact)
    certain = [bound for bound, exact in ends if bound is not None and kernels.is_certain(bound, exact, kind, width)]
    try:
        examination = kernels.sbbf_examine(filters.source.read_at(offset, length), certain)
    except FilterProblem:  # of an encrypted file
        return None
    if examination is None:
        return None
    header_bytes, bitset_bytes, figures, wrong = examination
    values = max((metadata.num_values or 0) - (nulls or 0), 0)
    header = FilterHeader(bitset_bytes, header_bytes, "BLOCK", "XXHASH", "UNCOMPRESSED")
    return _facts(column, key.row_group, values, offset, header, figures, WRONG if wrong else None)


def _facts(
    column: Column,
    row_group: int,
    values: int | None,
    offset: int,
    header: FilterHeader,
    figures: tuple[float | None, float, float, float | None],
    untrusted: str | None,
) -> FilterFacts:
    """The facts of a filter that can be read. `figures`: as in `kernels.sbbf_examine`."""
    num_bytes, header_bytes, algorithm, hash_name, compression, variant = header
    ndv, fill, fpp, bits_per_value = figures
    return FilterFacts(
        row_group=row_group,
        column=column.path,
        physical=column.physical,
        logical=column.logical,
        offset=offset,
        length=header_bytes + num_bytes,
        header_bytes=header_bytes,
        bitset_bytes=num_bytes,
        blocks=num_bytes // sizing.BLOCK_BYTES,
        algorithm=algorithm,
        hash=hash_name,
        compression=compression,
        values=values,
        ndv_estimate=ndv,
        fill=fill,
        fpp=fpp,
        bits_per_value=bits_per_value,
        variant=variant,
        untrusted=untrusted,
    )


def _untrusted(chunk: ColumnChunk, loaded: LoadedFilter) -> str | None:
    if loaded.header.draft:
        return DRAFT_REASON
    return WRONG if loaded.bits.set_bits and any(statistics.lost(chunk, loaded.bits)) else None


def raw(loaded: LoadedFilter, row_group: int) -> tuple[bytes, bytes]:
    """Return a filter's header and bitset, as stored in the file."""
    del row_group
    return loaded.header_raw, bytes(loaded.bits.bitset)


def problem_facts(filters: Filters, chunk: ColumnChunk, problem: FilterProblem) -> FilterFacts:
    """The facts of a filter that can't be used, with the reason."""
    del filters
    assert chunk.bloom_filter_offset is not None  # noqa: S101  problems are about filters that the metadata name
    return FilterFacts(
        row_group=chunk.row_group,
        column=chunk.column.path,
        physical=chunk.column.physical,
        logical=chunk.column.logical,
        offset=chunk.bloom_filter_offset,
        length=chunk.bloom_filter_length,
        values=statistics.non_null_values(chunk),
        problem=problem.reason,
    )


def column_facts(footer: Footer, columns: set[int] | None) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (of all if None), in schema order. Raises CorruptFile."""
    footer.check_groups()
    for column in footer.columns:
        if columns is None or column.index in columns:
            yield _column_facts(footer, column, list(footer.chunk_keys({column.index})))


def _column_facts(footer: Footer, column: Column, keys: Sequence[ChunkKey]) -> ColumnFacts:
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
    names = [spec.enum_name("Encoding", number) for number in spec.encodings_in(together)]
    return (*names, "unknown") if together >> spec.OTHER_ENCODINGS else tuple(names)


def _dictionary_bytes(chunks: Sequence[ChunkMetadata]) -> int | None:
    dictionaries = (
        first_page(chunk.data_page_offset, chunk.dictionary_page_offset)[1]
        for chunk in chunks
        if chunk.data_page_offset
    )
    sizes = [size for size in dictionaries if size is not None]
    return sum(sizes) if sizes else None


def _distinct(
    values: Sequence[int | None], nulls: Sequence[int | None], distinct: Sequence[int | None]
) -> int | None:
    """The largest number of distinct values in a row group; None if a row group has no valid number."""
    for all_values, null, count in zip(values, nulls, distinct, strict=True):
        if all_values is None or count is None or not 0 <= count <= all_values - (null or 0):
            return None
    return max((d for d in distinct if d is not None), default=None)
