"""The filters of an open Parquet file: which chunks have one, how large each is, and reading one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Final

from bloomcli import limits
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.filter_header import (
    FilterProblem,
    LoadedFilter,
    ProbedFilter,
    bitset_bytes_in,
    blocks_for,
    load,
    load_for,
    load_header,
    ranges_for,
)
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

_ASSUMED_BYTES: Final = 1 << 20
"""Bytes that are read ahead for a filter of unknown length, at most. A filter of a million values has as many."""


class Filters:
    """The filters that a footer names. Each is read when it is needed.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, source: Source, footer: Footer) -> None:
        self.source = source
        self.footer = footer

    def filter_keys(self, columns: set[int] | None) -> Iterator[ChunkKey]:
        """Yield the keys of the chunks with a filter. None: of all columns."""
        return (claim.key for claim in self.footer.filter_claims(columns) if claim.is_filter)

    def locations(self, columns: set[int] | None, units: Container[int] | None = None) -> Iterator[ColumnChunk]:
        """Each chunk with a filter, in row-group then schema order; of all row groups, or of those in `units`."""
        for claim in self.footer.filter_claims(columns):
            if claim.is_filter and (units is None or claim.key.row_group in units):
                yield self.footer.chunk(claim.key, claim.walked)

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters of these columns (None: of all), to be read ahead.

        A length that isn't written reaches to the next filter, at most; an impossible one to the header's end.
        """
        claims = [c for c in self.footer.filter_claims(columns) if c.is_filter]
        starts = sorted(c.offset for c in claims if c.offset is not None)
        for claim in claims:
            offset = claim.offset or 0
            if claim.length is None:
                following = bisect_right(starts, offset)
                end = starts[following] if following < len(starts) else self.footer.start
                yield offset, min(end - offset, _ASSUMED_BYTES)
            elif 0 < claim.length <= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
                yield offset, claim.length
            else:
                yield offset, parquet_limits.FILTER_HEADER_MAX_BYTES

    def headers(self, columns: set[int] | None, *, unwritten: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of these filters' headers; `unwritten`: where the metadata have no length."""
        for claim in self.footer.filter_claims(columns):
            if claim.is_filter and not (unwritten and claim.length is not None):
                yield claim.offset or 0, parquet_limits.FILTER_HEADER_MAX_BYTES

    def header(self, key: ChunkKey) -> tuple[int, int]:
        """The offset and length of what is read of a filter's header."""
        return self.footer.chunk(key).bloom_filter_offset or 0, parquet_limits.FILTER_HEADER_MAX_BYTES

    def chunks_of(self, column: int) -> Iterator[ColumnChunk]:
        """Every chunk of a column, with a filter or without."""
        return (self.footer.chunk(key) for key in self.footer.chunk_keys({column}))

    def location(self, column: int, row_group: int, stripe: int) -> ColumnChunk | None:
        """A column's chunk in a row group; None where it has no filter."""
        del stripe
        chunk = next(c for c in self.chunks_of(column) if c.row_group == row_group)
        return None if chunk.bloom_filter_offset is None else chunk

    def load(self, chunk: ColumnChunk) -> LoadedFilter:
        """Read a chunk's filter. Raises FilterProblem."""
        return load(self.source, chunk, self.footer.start)

    def load_for(self, chunk: ColumnChunk, hashes: int) -> ProbedFilter:
        """Read as much of a chunk's filter as looking so many hashes up takes. Raises FilterProblem."""
        return load_for(self.source, chunk, self.footer.start, hashes)

    def will_look_up(self, lookups: Callable[[], Iterable[tuple[ColumnChunk, Sequence[int]]]]) -> None:
        """Announce hashes that are about to be looked up, each chunk's with it; with `load_for`."""
        self.source.will_read(
            found
            for chunk, hashes in lookups()
            for found in ranges_for(chunk, hashes, self._assumed_lengths.get(chunk.bloom_filter_offset or 0))
        )
        self.source.will_read(r for chunk, hashes in lookups() for r in self._blocks(chunk, hashes))

    @cached_property
    def _assumed_lengths(self) -> dict[int, int]:
        """The lengths of filters that the metadata leave out, by the filters' offsets, as far as the filters' places
        tell: a bitset of a power of two, as writers of such files make them, and its header end where the next filter
        or the footer begins. What is wrong here is only read in vain."""
        claims = list(self.footer.filter_claims(None))
        starts = sorted({claim.offset for claim in claims if claim.offset is not None})
        lengths = {start: end - start for start, end in pairwise((*starts, self.footer.start))}
        unwritten = (c.offset for c in claims if c.is_filter and c.length is None and c.offset is not None)
        found = ((offset, lengths[offset], bitset_bytes_in(lengths[offset])) for offset in unwritten)
        return {offset: length for offset, length, size in found if size and not size & (size - 1)}

    def _blocks(self, chunk: ColumnChunk, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The blocks of a filter whose length only its header tells."""
        if chunk.bloom_filter_offset is None or chunk.bloom_filter_length is not None:
            return
        with suppress(FilterProblem):  # the look-up raises it
            header = load_header(self.source, chunk, self.footer.start)
            yield from blocks_for(header, chunk.bloom_filter_offset, hashes)

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {key.column for key in self.filter_keys(None)}

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the chunks of these columns (None: of all) with filters, in the row groups `units`."""
        return sum(chunk.compressed_bytes for chunk in self.locations(columns, units))

    @cached_property
    def unwritten_lengths(self) -> dict[ChunkKey, int]:
        """Bytes of the filters whose length the metadata leaves out, from their headers."""
        self.source.will_read(self.headers(None, unwritten=True))
        unwritten = (c.key for c in self.footer.filter_claims(None) if c.is_filter and c.length is None)
        lengths = ((key, self.length(key)) for key in unwritten)
        return {key: length for key, length in lengths if length is not None}

    def length(self, key: ChunkKey) -> int | None:
        """Bytes of a chunk's filter by its header, header included; None where the header can't be read."""
        try:
            header = load_header(self.source, self.footer.chunk(key), self.footer.start)
        except FilterProblem:
            return None
        return header.header_bytes + header.num_bytes

    def bitset_bytes(self, chunk: ColumnChunk) -> int | None:
        """Bytes of a filter's bitset by its header; None where the header can't be read."""
        try:
            return load_header(self.source, chunk, self.footer.start).num_bytes
        except FilterProblem:
            return None
