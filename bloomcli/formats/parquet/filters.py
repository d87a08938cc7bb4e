"""The filters of an open Parquet file: which chunks have one, their sizes, and how to read one."""

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
"""The maximum number of bytes that are read ahead for a filter of unknown length: a filter of a million values."""


class Filters:
    """The filters that a footer names. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, source: Source, footer: Footer) -> None:
        self.source = source
        self.footer = footer

    def filter_keys(self, columns: set[int] | None) -> Iterator[ChunkKey]:
        """Yield the keys of the chunks with a filter in these columns (None: all)."""
        return (claim.key for claim in self.footer.filter_claims(columns) if claim.is_filter)

    def locations(self, columns: set[int] | None, units: Container[int] | None = None) -> Iterator[ColumnChunk]:
        """Yield the chunks with a filter, in row-group then schema order; of all row groups or of `units`."""
        for claim in self.footer.filter_claims(columns):
            if claim.is_filter and (units is None or claim.key.row_group in units):
                yield self.footer.chunk(claim.key, claim.metadata)

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters of these columns (None: all), to read them ahead.

        If the length isn't written, the range ends at the next filter at the latest; if it is impossible, after the
        header.
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
        """Yield the ranges of these filters' headers; with `unwritten`, only if the metadata have no length."""
        for claim in self.footer.filter_claims(columns):
            if claim.is_filter and not (unwritten and claim.length is not None):
                yield claim.offset or 0, parquet_limits.FILTER_HEADER_MAX_BYTES

    def header(self, key: ChunkKey) -> tuple[int, int]:
        """The range that is read for a filter's header."""
        return self.footer.chunk(key).bloom_filter_offset or 0, parquet_limits.FILTER_HEADER_MAX_BYTES

    def chunks_of(self, column: int) -> Iterator[ColumnChunk]:
        """Yield every chunk of a column, with or without a filter."""
        return (self.footer.chunk(key) for key in self.footer.chunk_keys({column}))

    def location(self, column: int, row_group: int, stripe: int) -> ColumnChunk | None:
        """A column's chunk in a row group; None if it has no filter."""
        del stripe
        chunk = next(c for c in self.chunks_of(column) if c.row_group == row_group)
        return None if chunk.bloom_filter_offset is None else chunk

    def load(self, chunk: ColumnChunk) -> LoadedFilter:
        """Read a chunk's filter. Raises FilterProblem."""
        return load(self.source, chunk, self.footer.start)

    def load_for(self, chunk: ColumnChunk, hashes: int) -> ProbedFilter:
        """Read as much of a chunk's filter as a lookup of `hashes` hashes needs. Raises FilterProblem."""
        return load_for(self.source, chunk, self.footer.start, hashes)

    def will_look_up(self, lookups: Callable[[], Iterable[tuple[ColumnChunk, Sequence[int]]]]) -> None:
        """Announce the lookups that follow, with `load_for`: each chunk with its hashes."""
        self.source.will_read(
            found
            for chunk, hashes in lookups()
            for found in ranges_for(chunk, hashes, self._assumed_lengths.get(chunk.bloom_filter_offset or 0))
        )
        self.source.will_read(r for chunk, hashes in lookups() for r in self._blocks(chunk, hashes))

    @cached_property
    def _assumed_lengths(self) -> dict[int, int]:
        """The lengths of filters for which the metadata have none, by the filters' offsets, as far as they can be
        inferred: writers of such files store bitsets whose size is a power of two, so that filter and header end
        where the next filter or the footer begins. A wrong length only causes a needless read."""
        claims = list(self.footer.filter_claims(None))
        starts = sorted({claim.offset for claim in claims if claim.offset is not None})
        lengths = {start: end - start for start, end in pairwise((*starts, self.footer.start))}
        unwritten = (c.offset for c in claims if c.is_filter and c.length is None and c.offset is not None)
        found = ((offset, lengths[offset], bitset_bytes_in(lengths[offset])) for offset in unwritten)
        return {offset: length for offset, length, size in found if size and not size & (size - 1)}

    def _blocks(self, chunk: ColumnChunk, hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the blocks of a filter whose length is only in its header."""
        if chunk.bloom_filter_offset is None or chunk.bloom_filter_length is not None:
            return
        with suppress(FilterProblem):  # the lookup raises it
            header = load_header(self.source, chunk, self.footer.start)
            yield from blocks_for(header, chunk.bloom_filter_offset, hashes)

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {key.column for key in self.filter_keys(None)}

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the chunks with filters of these columns (None: all), in the row groups `units`."""
        return sum(chunk.compressed_bytes for chunk in self.locations(columns, units))

    @cached_property
    def unwritten_lengths(self) -> dict[ChunkKey, int]:
        """The lengths of the filters for which the metadata have none, from their headers."""
        self.source.will_read(self.headers(None, unwritten=True))
        unwritten = (c.key for c in self.footer.filter_claims(None) if c.is_filter and c.length is None)
        lengths = ((key, self.length(key)) for key in unwritten)
        return {key: length for key, length in lengths if length is not None}

    def length(self, key: ChunkKey) -> int | None:
        """The length of a chunk's filter including its header, from the header; None if it can't be read."""
        try:
            header = load_header(self.source, self.footer.chunk(key), self.footer.start)
        except FilterProblem:
            return None
        return header.header_bytes + header.num_bytes

    def bitset_bytes(self, chunk: ColumnChunk) -> int | None:
        """The size of a filter's bitset, from the header; None if it can't be read."""
        try:
            return load_header(self.source, chunk, self.footer.start).num_bytes
        except FilterProblem:
            return None
