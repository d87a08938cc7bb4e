"""The facts of a filter that reports show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bloomcli.formats.answer import WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.parquet import bounds
from bloomcli.formats.parquet.filter_header import DRAFT_REASON, LoadedFilter
from bloomcli.formats.parquet.filters import Filters
from bloomcli.model.file import ColumnChunk

if TYPE_CHECKING:
    from bloomcli.model.file import FilterFacts


def non_null_values(chunk: ColumnChunk) -> int:
    """The number of non-null leaf values; all values if the statistics have no null count."""
    return max(chunk.num_values - (chunk.null_count or 0), 0)


def ordinal(chunk: ColumnChunk) -> int:
    """The ordinal of a filter's column."""
    return chunk.column.index


def facts(filters: Filters, chunk: ColumnChunk, loaded: LoadedFilter) -> Iterator[FilterFacts]:
    """Yield a filter's facts, measured on its bits."""
    from bloomcli.model.file import FilterFacts

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


def _untrusted(chunk: ColumnChunk, loaded: LoadedFilter) -> str | None:
    if loaded.header.draft:
        return DRAFT_REASON
    return WRONG if loaded.bits.set_bits and any(bounds.lost(chunk, loaded.bits)) else None


def raw(loaded: LoadedFilter, row_group: int) -> tuple[bytes, bytes]:
    """Return a filter's header and bitset, as stored in the file."""
    del row_group
    return loaded.header_raw, bytes(loaded.bits.bitset)


def problem_facts(filters: Filters, chunk: ColumnChunk, problem: FilterProblem) -> FilterFacts:
    """The facts of a filter that can't be used, with the reason."""
    from bloomcli.model.file import FilterFacts

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
