"""A loaded filter as the facts that people and scripts read."""

from __future__ import annotations

from bloomcli.formats.deep_check import WRONG
from bloomcli.formats.parquet import bounds
from bloomcli.formats.parquet.filter_header import DRAFT_REASON, FilterProblem, LoadedFilter
from bloomcli.model.file import ColumnChunk, FilterFacts


def present_values(chunk: ColumnChunk) -> int:
    """Leaf values that are not null; all of them where the statistics don't count nulls."""
    return max(chunk.num_values - (chunk.null_count or 0), 0)


def facts(chunk: ColumnChunk, loaded: LoadedFilter) -> FilterFacts:
    """A filter's facts: measured on its bits, nothing assumed."""
    bits = loaded.bits
    ndv = bits.ndv_estimate
    return FilterFacts(
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
        values=present_values(chunk),
        ndv_estimate=ndv,
        fill=bits.fill,
        fpp=bits.fpp,
        bits_per_value=bits.nbytes * 8 / ndv if ndv else None,
        variant=loaded.header.variant,
        untrusted=_untrusted(chunk, loaded),
    )


def _untrusted(chunk: ColumnChunk, loaded: LoadedFilter) -> str | None:
    if loaded.header.draft:
        return DRAFT_REASON
    return WRONG if loaded.bits.set_bits and any(bounds.lost(chunk, loaded.bits)) else None


def problem_facts(chunk: ColumnChunk, problem: FilterProblem) -> FilterFacts:
    """A filter that can't be used, as a row that says why."""
    assert chunk.bloom_filter_offset is not None  # noqa: S101  a problem is about a filter that is named
    return FilterFacts(
        row_group=chunk.row_group,
        column=chunk.column.path,
        physical=chunk.column.physical,
        logical=chunk.column.logical,
        offset=chunk.bloom_filter_offset,
        length=chunk.bloom_filter_length,
        values=present_values(chunk),
        problem=problem.reason,
    )
