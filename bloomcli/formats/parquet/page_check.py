"""Checks pages for `validate`: the first headers of each chunk.

A writer that copies pages (parquet-java's ParquetRewriter) can write headers that don't match the pages. Two small
reads, of a header and the first bytes of its page, find most such faults before a reader does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet.page_header import PageHeader
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, can_become
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import counted

_ZSTD_SKIPPED: Final = tuple(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))
_STARTS: Final = {"GZIP": (b"\x1f\x8b",), "ZSTD": (b"\x28\xb5\x2f\xfd", *_ZSTD_SKIPPED)}
"""The first bytes of compressed data. ZSTD: a frame or a skippable frame (RFC 8878)."""
_SNAPPY_LENGTH: Final = 5
"""Maximum length of a 32-bit varint."""


class HeaderFault(NamedTuple):
    """A statement in a page's header that contradicts the page or the metadata."""

    reason: str
    offset: int


def first_headers(source: Source, chunk: ColumnChunk, data_end: int) -> HeaderFault | None:
    """Check the header of the chunk's first page and, after a dictionary, of the second; None if both are right."""
    if not chunk.num_values or chunk.encrypted:
        return None
    try:
        reader = ChunkReader(source, chunk, data_end, HEADER_WINDOW)
        fault, kind = _header(reader, chunk)
        if fault is None and kind == "DICTIONARY_PAGE":
            fault, kind = _header(reader, chunk)
            if fault is None and kind == "DICTIONARY_PAGE":
                return HeaderFault("a second dictionary page", reader.position)
    except CorruptFile as error:
        return HeaderFault(error.reason, chunk.data_offset if error.offset is None else error.offset)
    return fault


def header_ranges(chunk: ColumnChunk) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each range that `first_headers` reads, as far as the metadata give it."""
    if chunk.num_values and not chunk.encrypted:
        yield chunk.data_offset, 2 * HEADER_WINDOW
        if chunk.dictionary_bytes is not None:
            yield chunk.data_offset + chunk.dictionary_bytes, 2 * HEADER_WINDOW


def dictionary_entries(source: Source, chunk: ColumnChunk, data_end: int) -> int | None:
    """The number of dictionary entries in the header of the chunk's first page; None if that page isn't a dictionary
    or can't be read. Takes one small read."""
    try:
        header = ChunkReader(source, chunk, data_end, HEADER_WINDOW).header()
        if header.kind != "DICTIONARY_PAGE" or not header.has_head:
            return None
        return header.required_of_head("num_values")
    except CorruptFile:
        return None


def _header(reader: ChunkReader, chunk: ColumnChunk) -> tuple[HeaderFault | None, str]:
    """Check a page's header, and advance past the page. Return the fault, if any, and the page's type."""
    at = reader.position
    header = reader.header()
    kind = header.kind
    packed, size = header.required("compressed_page_size"), header.required("uncompressed_page_size")
    reader.position += header.size
    reader.room(packed)
    reason = _page(reader, header, kind, packed, size, chunk)
    reader.position += packed
    return None if reason is None else HeaderFault(reason, at), kind


def _page(
    reader: ChunkReader, header: PageHeader, kind: str, packed: int, size: int, chunk: ColumnChunk
) -> str | None:
    field = header.head_field
    if field is None:
        return None  # index pages and unknown types
    if not header.has_head:
        return f"the page header has no {field}"
    count = header.required_of_head("num_values")
    if kind != "DICTIONARY_PAGE" and count > chunk.num_values:
        return f"a page of {counted(count, 'value')}, and the column chunk has {chunk.num_values}"
    levels = 0
    compressed = True
    if kind == "DATA_PAGE_V2":
        levels = header.required_of_head("repetition_levels_byte_length")
        levels += header.required_of_head("definition_levels_byte_length")
        compressed = header.is_packed
        if levels > min(packed, size):
            return f"levels of {counted(levels, 'byte')} in a page of {min(packed, size)}"
    if chunk.codec == "UNCOMPRESSED" or not compressed:
        return None if packed == size else f"{counted(packed, 'byte')} that aren't compressed can't become {size}"
    if not can_become(packed - levels, size - levels, chunk):
        return f"a page of {counted(size - levels, 'byte')} can't be in {packed - levels} compressed ones"
    return _compressed(bytes(reader.peek(min(packed, HEADER_WINDOW)))[levels:], size - levels, chunk.codec)


def _compressed(start: bytes, size: int, codec: str) -> str | None:
    """Return why the first bytes can't be the codec's output; None if they can."""
    if len(start) < _SNAPPY_LENGTH or not size:
        return None
    if codec == "SNAPPY":
        announced = shift = 0
        for byte in start[:_SNAPPY_LENGTH]:
            announced |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return None if announced == size else f"{counted(size, 'byte')} are announced, and SNAPPY says {announced}"
    if codec in _STARTS and not start.startswith(_STARTS[codec]):
        return f"the bytes after the header aren't {codec}"
    return None


def refuse_damaged_pages(source: Source, chunk: ColumnChunk, data_end: int) -> None:
    """Raise CorruptFile if `validate` would report the chunk's first headers; such a chunk gets no filter."""
    fault = first_headers(source, chunk, data_end)
    if fault is not None:
        raise ChunkReader(source, chunk, data_end).fault(fault.reason, fault.offset)
