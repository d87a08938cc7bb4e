"""The facts of a filter that reports show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from bloomcli import kernels
from bloomcli.filters import sizing
from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.parquet import idl, spec, statistics
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import DRAFT_REASON, FilterHeader, Filters, LoadedFilter
from bloomcli.formats.parquet.footer import Claim
from bloomcli.model.file import Column, ColumnChunk, FilterFacts

_MOST_BYTES: Final = 1 << 20
"""The largest filter that `facts_of_claim` measures. Reading a larger one takes most of the time anyway."""


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


def facts_of_claim(filters: Filters, claim: Claim) -> FilterFacts | None:
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
    certain = []
    if low is not None and kernels.is_certain(low, metadata.is_min_value_exact, kind, width):
        certain.append(low)
    if high is not None and kernels.is_certain(high, metadata.is_max_value_exact, kind, width):
        certain.append(high)
    found = kernels.sbbf_examine(filters.source.read_at(offset, length), certain)
    if found is None:
        return None
    header_bytes, bitset_bytes, figures, wrong = found
    values = max((metadata.num_values or 0) - (nulls or 0), 0)
    header = _usual_header(bitset_bytes, header_bytes)
    return _facts(column, key.row_group, values, offset, header, figures, WRONG if wrong else None)


@lru_cache(maxsize=64)
def _usual_header(num_bytes: int, header_bytes: int) -> FilterHeader:
    return FilterHeader(num_bytes, header_bytes, "BLOCK", "XXHASH", "UNCOMPRESSED")


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
