"""The filters of an open Parquet file: which chunks have one, how large each is, and reading one."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cached_property

from bloomcli.formats.parquet.filter_header import FilterProblem, LoadedFilter, load, load_header
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source


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

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {key.column for key in self.filter_keys(None)}

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the chunks of these columns (None: of all) with filters, in the row groups `units`."""
        return sum(chunk.compressed_bytes for chunk in self.locations(columns, units))

    @cached_property
    def unwritten_lengths(self) -> dict[ChunkKey, int]:
        """Bytes of the filters whose length the metadata leaves out, from their headers."""
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
