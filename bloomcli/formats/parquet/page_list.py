"""Lists the page headers of a column."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.answer import ENCRYPTED
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import page_index, spec
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, PageHeader
from bloomcli.model.file import ColumnChunk, PageFacts
from bloomcli.words import plural


def pages(filters: Filters, column: int) -> Iterator[PageFacts]:
    """Yield the headers of the column's pages, row group by row group. No page is read or decompressed.

    A header that can't be read is reported as a row with a problem, and ends its row group.
    """
    listed = 0
    filters.source.will_read(_header_ranges(filters, column))
    for chunk in filters.chunks_of(column):
        if chunk.encrypted:
            yield _damaged(chunk, chunk.data_offset, ENCRYPTED)
            continue
        for page in _pages_of(filters, chunk):
            if listed == parquet_limits.PAGES_LISTED_MAX:
                yield _damaged(chunk, page.offset, f"not listed: pages after the first {listed:,}")
                return
            listed += 1
            yield page


def _header_ranges(filters: Filters, column: int) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each range that `pages` reads: the page headers, if the offset index has their
    locations, else whole chunks."""
    source, footer = filters.source, filters.footer
    keys = list(footer.chunk_keys({column}))
    source.will_read(extent for key in keys for extent in page_index.ranges(footer, key, page_index.OFFSET_INDEX))
    for key in keys:
        chunk = footer.chunk(key)
        if chunk.encrypted:
            continue
        try:
            index = page_index.offset_index(source, footer, key)
        except (CorruptFile, UnsupportedError):  # listing the index reports it
            index = None
        if index is not None and index.page_locations:
            yield chunk.data_offset, HEADER_WINDOW  # a dictionary page isn't in the index
            yield from ((offset, HEADER_WINDOW) for offset, _, _ in index.page_locations)
        else:
            yield chunk.data_offset, chunk.compressed_bytes


def _damaged(chunk: ColumnChunk, offset: int, reason: str) -> PageFacts:
    return PageFacts(row_group=chunk.row_group, kind="?", offset=offset, problem=reason)


def _pages_of(filters: Filters, chunk: ColumnChunk) -> Iterator[PageFacts]:
    try:
        reader = ChunkReader(filters.source, chunk, filters.footer.start, HEADER_WINDOW)
    except CorruptFile as error:
        yield _damaged(chunk, chunk.data_offset, error.reason)
        return
    end = min(chunk.data_offset + chunk.compressed_bytes, filters.footer.start)
    seen = 0
    while reader.position < end or seen < chunk.num_values:
        at = reader.position
        try:
            header = reader.header()
            page = _facts(chunk, header, at)
            packed = header.required("compressed_page_size")
            reader.position = at + header.size
            reader.room(packed)
        except CorruptFile as error:
            yield _damaged(chunk, at, error.reason)
            return
        reader.position += packed
        if page.kind.startswith("DATA_PAGE"):
            seen += max(page.values or 0, 0)
        yield page
    if seen != chunk.num_values:
        yield _damaged(
            chunk, reader.position, f"the pages have {plural(seen, 'value')}, the metadata {chunk.num_values:,}"
        )


def _facts(chunk: ColumnChunk, header: PageHeader, at: int) -> PageFacts:
    head = header.head()
    return PageFacts(
        row_group=chunk.row_group,
        kind=header.kind,
        offset=at,
        header_bytes=header.size,
        compressed_bytes=header.required("compressed_page_size"),
        uncompressed_bytes=header.required("uncompressed_page_size"),
        encoding=spec.enum_name("Encoding", header.required_of_head("encoding")) if head is not None else None,
        values=header.required_of_head("num_values") if head is not None else None,
        nulls=head.integer("num_nulls") if head is not None and header.kind == "DATA_PAGE_V2" else None,
        rows=head.integer("num_rows") if head is not None and header.kind == "DATA_PAGE_V2" else None,
        crc=None if header.crc is None else f"{header.crc & 0xFFFFFFFF:08x}",
    )
