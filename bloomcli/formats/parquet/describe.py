"""The facts of a filter that reports show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli import kernels
from bloomcli.filters import sizing
from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.parquet import bloom_filter, idl, spec, statistics
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import DRAFT_REASON, Filters, LoadedFilter
from bloomcli.formats.parquet.footer import Claim
from bloomcli.model.file import ColumnChunk, FilterFacts

_MOST_BYTES: Final = 1 << 20
"""The largest filter that `usual_facts` measures. Reading a larger one takes most of the time anyway."""


def non_null_values(chunk: ColumnChunk) -> int:
    """The number of non-null leaf values; all values if the statistics have no null count."""
    return max(chunk.num_values - (chunk.null_count or 0), 0)


def ordinal(chunk: ColumnChunk) -> int:
    """The ordinal of a filter's column."""
    return chunk.column.index


def facts(filters: Filters, chunk: ColumnChunk, loaded: LoadedFilter) -> Iterator[FilterFacts]:
    """Yield a filter's facts, measured on its bits."""
    del filters
    bits = loaded.bits
    ndv = bits.ndv_estimate
    yield FilterFacts(
        row_group=chunk.row_group,
        column=chunk.column.path,
        physical=chunk.column.physical,
        logical=chunk.column.logical,
        offset=loaded.offset,
        length=loaded.length,
        header_bytes=loaded.header.header_bytes,
        bitset_bytes=bits.nbytes,
        blocks=bits.blocks,
        algorithm=loaded.header.algorithm,
        hash=loaded.header.hash,
        compression=loaded.header.compression,
        values=non_null_values(chunk),
        ndv_estimate=ndv,
        fill=bits.fill,
        fpp=bits.fpp,
        bits_per_value=bits.nbytes * 8 / ndv if ndv else None,
        variant=loaded.header.variant,
        untrusted=_untrusted(chunk, loaded),
    )


def usual_facts(filters: Filters, claim: Claim) -> FilterFacts | None:
    """A filter's facts, measured by compiled code, because a file may have a million filters.

    None for a filter that is large, damaged, a draft, or encoded unlike usual, and for damaged metadata.
    """
    footer, (key, offset, length, metadata) = filters.footer, claim
    if offset is None or length is None or not len(spec.MAGIC) <= offset <= footer.start - length:
        return None
    if not 0 < length <= _MOST_BYTES or len(footer.columns) != footer.column_count:
        return None
    column = footer.columns[key.column]
    if not metadata.sound(idl.ENUMS["Type"].get(column.physical, -1), parquet_limits.LIST_MAX):
        return None
    nulls, low, high = footer.statistics(key, metadata, column)
    kind, width = footer.trust(column).kind_of_bounds
    exact = metadata.is_min_value_exact, metadata.is_max_value_exact
    certain = [
        bound
        for bound, stated in zip((low, high), exact, strict=True)
        if bound is not None and kernels.is_certain(bound, stated, kind, width)
    ]
    found = kernels.sbbf_examine(filters.source.read_at(offset, length), certain)
    if found is None:
        return None
    header_bytes, bitset_bytes, ndv, fill, fpp, per_value, wrong = found
    return FilterFacts(
        row_group=key.row_group,
        column=column.path,
        physical=column.physical,
        logical=column.logical,
        offset=offset,
        length=length,
        header_bytes=header_bytes,
        bitset_bytes=bitset_bytes,
        blocks=bitset_bytes // sizing.BLOCK_BYTES,
        algorithm="BLOCK",
        hash="XXHASH",
        compression="UNCOMPRESSED",
        values=max((metadata.num_values or 0) - (nulls or 0), 0),
        ndv_estimate=ndv,
        fill=fill,
        fpp=fpp,
        bits_per_value=per_value,
        variant=bloom_filter.CURRENT,
        untrusted=WRONG if wrong else None,
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
        values=non_null_values(chunk),
        problem=problem.reason,
    )
