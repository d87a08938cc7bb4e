"""A column chunk's pages, one after the other: header, levels skipped, the values' bytes.

Filters hash values in PLAIN encoding, and a PLAIN page holds just that, nulls left out. So no column
is assembled here: a page is decompressed (codecs), its levels are counted to know how many
values are not null, and what is left goes to the kernels. Logical types, nesting and the engine's own
schema hints can't come between the file's bytes and the hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import codecs, spec
from bloomcli.formats.parquet.spec import Place, Struct
from bloomcli.model import ColumnChunk
from bloomcli.source import Source

_WINDOW: Final = 1 << 20
_HEADER_WINDOW: Final = 512

_DATA_PAGES: Final = {
    "DATA_PAGE": ("data_page_header", "DataPageHeader"),
    "DATA_PAGE_V2": ("data_page_header_v2", "DataPageHeaderV2"),
}

_MOST_GROWTH: Final = 1100
"""GZIP makes 1032 bytes of one at most, SNAPPY 22, LZ4 255. ZSTD and BROTLI can do more, but a page that
claims it has to fit in what the chunk's metadata says: only then is room made for it."""


class Page(NamedTuple):
    """A data or dictionary page, ready for its values to be hashed."""

    dictionary: bool
    encoding: str
    num_values: int
    """Values the page stands for, nulls included."""
    present: int
    """Values that are there: nulls left out."""
    body: Any
    """Buffer with the uncompressed value section from `start` on; None for a page that was passed over."""
    start: int
    place: Place
    """Names the page; its base is the file offset of the page's header."""
    end: int
    """File offset behind the page."""


class ChunkReader:
    """Sequential, windowed reads within one column chunk: never past the data's end, never all at once."""

    def __init__(self, source: Source, chunk: ColumnChunk, data_end: int, window: int = _WINDOW) -> None:
        self.source = source
        self.chunk = chunk
        self.window = window
        self.position = chunk.data_offset
        self.end = data_end
        self.field = f"row_groups[{chunk.row_group}].columns[{chunk.column.index}]"
        self._window = b""
        self._base = self.position
        size = chunk.compressed_bytes
        if chunk.num_values and not (
            len(spec.MAGIC) <= self.position < data_end and 0 <= size <= data_end - self.position
        ):
            raise CorruptFile(
                f"the column chunk lies at {self.position} with {size} bytes, outside the file's data",
                path=source.path,
                offset=self.position,
                field=self.field + ".meta_data",
            )

    def fault(self, reason: str, at: int | None = None) -> CorruptFile:
        """An error about this chunk's bytes."""
        return CorruptFile(
            reason,
            path=self.source.path,
            offset=self.position if at is None else at,
            field=self.field,
            hint="the column's pages are damaged; get the file from its source again",
        )

    def peek(self, size: int) -> memoryview:
        """Up to `size` bytes from the position on; fewer at the data's end."""
        size = min(size, self.end - self.position)
        skip = self.position - self._base
        if skip < 0 or len(self._window) - skip < size:
            remaining = self.chunk.data_offset + self.chunk.compressed_bytes - self.position
            ahead = max(size, min(self.window, remaining, self.end - self.position))
            self._window = self.source.read_at(self.position, ahead)
            self._base = self.position
            skip = 0
        return memoryview(self._window)[skip : skip + size]

    def header(self) -> Struct:
        """The page header at the position; larger windows are tried where statistics make it long."""
        window = _HEADER_WINDOW
        while True:
            data = bytes(self.peek(window))
            try:
                return Struct("PageHeader", data, 0, Place(self.source.path, self.position, self.field))
            except CorruptFile:
                if len(data) < window or window >= limits.PAGE_HEADER_MAX_BYTES:
                    raise
                window *= 16

    def take(self, size: int) -> memoryview:
        """Exactly `size` bytes, and on past them."""
        if size > self.end - self.position:
            raise self.fault(f"a page of {size} bytes runs past the file's data")
        data = self.peek(size)
        self.position += size
        return data


def read_pages(
    source: Source, chunk: ColumnChunk, data_end: int, passed: Callable[[str], bool] = lambda _: False
) -> Iterator[Page]:
    """The chunk's dictionary page, if any, and data pages, until all its values were seen.

    Data pages whose encoding is `passed` come without their values, and aren't decompressed.
    """
    if chunk.encrypted:
        raise UnsupportedError(
            f"column {chunk.column.path} is encrypted",
            path=source.path,
            field=f"row_groups[{chunk.row_group}].columns[{chunk.column.index}]",
            hint="bloom has no keys; decrypt the file with the engine that wrote it",
        )
    reader = ChunkReader(source, chunk, data_end)
    seen = 0
    while seen < chunk.num_values:
        page = _read_page(reader, chunk, passed)
        if page is None:
            continue
        if not page.dictionary:
            if page.num_values <= 0:
                if page.num_values < 0:
                    raise reader.fault("a page with a negative number of values")
                continue
            seen += page.num_values
            if seen > chunk.num_values:
                raise reader.fault(f"the pages hold {seen} values or more, the metadata says {chunk.num_values}")
        yield page


def read_dictionary(source: Source, chunk: ColumnChunk, data_end: int) -> Page | None:
    """The dictionary page alone; None where the chunk doesn't start with one."""
    window = chunk.dictionary_bytes if chunk.dictionary_bytes is not None else _HEADER_WINDOW
    page = _read_page(ChunkReader(source, chunk, data_end, window), chunk, lambda _: True)
    return page if page is not None and page.dictionary else None


def _read_page(reader: ChunkReader, chunk: ColumnChunk, passed: Callable[[str], bool]) -> Page | None:
    at = reader.position
    header = reader.header()
    kind = spec.enum_name("PageType", header.required_int("type"))
    packed_size = header.required_int("compressed_page_size")
    size = header.required_int("uncompressed_page_size")
    reader.position += header.end
    if size > limits.PAGE_MAX_BYTES:
        raise UnsupportedError(
            f"a page of {size} bytes, more than the {limits.PAGE_MAX_BYTES} that are read",
            path=reader.source.path,
            offset=at,
            field=reader.field,
        )
    packed = reader.take(packed_size)
    place = Place(reader.source.path, at, reader.field)
    if kind == "DICTIONARY_PAGE":
        head = _sub(header, "dictionary_page_header", "DictionaryPageHeader", reader, at)
        count = head.required_int("num_values")
        return Page(
            dictionary=True,
            encoding=spec.enum_name("Encoding", head.required_int("encoding")),
            num_values=count,
            present=count,
            body=_decompress(packed, chunk.codec, size, reader, at),
            start=0,
            place=place,
            end=reader.position,
        )
    if kind not in _DATA_PAGES:
        return None  # index pages and whatever comes: skipped, as the specification asks
    head = _sub(header, *_DATA_PAGES[kind], reader, at)
    encoding = spec.enum_name("Encoding", head.required_int("encoding"))
    if passed(encoding):
        return Page(
            dictionary=False,
            encoding=encoding,
            num_values=head.required_int("num_values"),
            present=0,
            body=None,
            start=0,
            place=place,
            end=reader.position,
        )
    if kind == "DATA_PAGE":
        body = _decompress(packed, chunk.codec, size, reader, at)
        return _data_page_v1(head, encoding, body, chunk, place, reader.position)
    return _data_page_v2(head, encoding, packed, size, chunk, reader, place)


def _sub(header: Struct, field: str, name: str, reader: ChunkReader, at: int) -> Struct:
    found = header.struct(field, name)
    if found is None:
        raise reader.fault(f"the page header has no {field}", at)
    return found


def _data_page_v1(head: Struct, encoding: str, body: Any, chunk: ColumnChunk, place: Place, end: int) -> Page:
    """Repetition levels, definition levels (each with its length in front), values."""
    count = head.required_int("num_values")
    column = chunk.column
    position = 0
    present = count
    for levels, field, target in (
        (column.max_repetition_level, "repetition_level_encoding", None),
        (column.max_definition_level, "definition_level_encoding", column.max_definition_level),
    ):
        if levels == 0:
            continue
        width = levels.bit_length()
        if spec.enum_name("Encoding", head.required_int(field)) == "BIT_PACKED":
            if target is not None:
                raise UnsupportedError(
                    "definition levels in the deprecated BIT_PACKED encoding",
                    path=place.path,
                    offset=place.base,
                    field=place.field,
                    hint="rewrite the file with a current engine",
                )
            position += (count * width + 7) // 8
            continue
        if len(body) - position < 4:
            raise place.fault("the page ends within its levels", 0)
        length = int.from_bytes(memoryview(body)[position : position + 4], "little")
        position += 4
        if length > len(body) - position:
            raise place.fault("the page's levels run past its end", 0)
        if target is not None:
            present = _count(body, position, position + length, width, count, target, place)
        position += length
    if position > len(body):
        raise place.fault("the page's levels run past its end", 0)
    return Page(
        dictionary=False,
        encoding=encoding,
        num_values=count,
        present=present,
        body=body,
        start=position,
        place=place,
        end=end,
    )


def _data_page_v2(
    head: Struct, encoding: str, packed: memoryview, size: int, chunk: ColumnChunk, reader: ChunkReader, place: Place
) -> Page:
    """Levels lie uncompressed in front of the values, their lengths are in the header."""
    count = head.required_int("num_values")
    repetition = head.required_int("repetition_levels_byte_length")
    definition = head.required_int("definition_levels_byte_length")
    levels = repetition + definition
    if levels > len(packed) or levels > size:
        raise place.fault("the page's levels run past its end", 0)
    column = chunk.column
    present = count
    if column.max_definition_level and definition:
        width = column.max_definition_level.bit_length()
        present = _count(packed, repetition, levels, width, count, column.max_definition_level, place)
    compressed = head.span("is_compressed")
    values: Any = packed[levels:]
    if (compressed is None or compressed.kind == spec.BOOLEAN_TRUE) and len(values):
        values = _decompress(values, chunk.codec, size - levels, reader, place.base)
    return Page(
        dictionary=False,
        encoding=encoding,
        num_values=count,
        present=present,
        body=values,
        start=0,
        place=place,
        end=reader.position,
    )


def _count(data: Any, start: int, end: int, width: int, count: int, target: int, place: Place) -> int:
    try:
        return kernels.count_levels(data, start, end, width, count, target)
    except kernels.PageError as error:
        raise place.fault(str(error), 0) from None


def _decompress(packed: memoryview, codec: str, size: int, reader: ChunkReader, at: int) -> Any:
    if codec == "UNCOMPRESSED":
        return packed
    if not codecs.supported(codec):
        raise UnsupportedError(
            f"the codec {codec}",
            path=reader.source.path,
            offset=at,
            field=reader.field + ".meta_data.codec",
            hint="rewrite the file with another codec",
        )
    if size > max(len(packed) * _MOST_GROWTH, reader.chunk.uncompressed_bytes):
        raise reader.fault(f"a page of {size} bytes can't be in {len(packed)} compressed ones", at)
    try:
        return codecs.decompress(codec, packed, size)
    except codecs.CodecError as error:
        raise reader.fault(f"the page can't be decompressed ({error})", at) from None
