"""Reads a column chunk's pages in order: parses the header, skips the levels and returns the bytes of the values.

Filters hash values in PLAIN encoding, and a PLAIN page contains exactly these bytes, without nulls. This module
therefore assembles no columns: it decompresses a page (codecs), counts the non-null values by their levels, and
passes the remaining bytes to the kernels. Logical types, nesting and schema hints of engines don't affect the hashes.

Files with small pages have a header for every few hundred values, so compiled code parses headers; if one is invalid,
a walk over all its fields finds the fault.

A writer that copies pages (parquet-java's ParquetRewriter) can write headers that don't match the pages. Two small
reads, of a header and the first bytes of its page, find most such faults before a reader does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, KeyMissing
from bloomcli.formats.parquet import codecs, spec
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.codecs import Body, Buffer, Feed
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.formats.parquet.statistics import width_of
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.words import counted

_HEADS: Final = {
    "DATA_PAGE": ("data_page_header", "DataPageHeader"),
    "DATA_PAGE_V2": ("data_page_header_v2", "DataPageHeaderV2"),
    "DICTIONARY_PAGE": ("dictionary_page_header", "DictionaryPageHeader"),
}
_DICTIONARY_PAGE: Final = spec.ENUMS["PageType"]["DICTIONARY_PAGE"]
_DICTIONARY: Final = ("PLAIN", "PLAIN_DICTIONARY")
"""The encodings of a dictionary's entries: the second is its old name."""


class PageHeader(kernels.PageHeader):
    """A page header. `required` and `required_of_head` read its fields, and reject impossible values."""

    __slots__ = ("location",)

    location: Location
    """The header's location, for errors; set by the caller of `parse`."""

    def required(self, field: str) -> int:
        """Return a required integer field, which must be at least 0. Raises CorruptFile."""
        value: int = getattr(self, field)
        return value if value >= 0 else self._walked().required_int(field)

    def required_of_head(self, field: str) -> int:
        """Return a required integer field of the structure for the page's type, which must exist."""
        value: int = getattr(self, field)
        if value >= 0:
            return value
        name, struct = _HEADS[self.kind]
        head = self._walked().struct(name, struct)
        assert head is not None  # noqa: S101  the caller checks has_head
        return head.required_int(field)

    @property
    def kind(self) -> str:
        """The name of the page's type. Raises CorruptFile if it is missing."""
        return spec.enum_name("PageType", self.required("type"))

    @property
    def is_packed(self) -> bool:
        """Whether the chunk's codec has compressed the page's values.

        Arrow before 3.0 compressed pages of version 2 and wrote `is_compressed` = false (ARROW-10353): their sizes
        contradict the field.
        """
        return self.is_compressed or self.compressed_page_size != self.uncompressed_page_size

    @property
    def head_field(self) -> str | None:
        """The name of the structure for the page's type; None if the IDL has none."""
        head = _HEADS.get(self.kind)
        return None if head is None else head[0]

    def encoding_name(self) -> str:
        """The encoding of the page's values. Raises CorruptFile if it is missing, and UnsupportedError for a
        dictionary whose entries aren't PLAIN, which Arrow refuses too."""
        name = spec.enum_name("Encoding", self.required_of_head("encoding"))
        if self.kind == "DICTIONARY_PAGE" and name not in _DICTIONARY:
            hint = "the header is damaged; get the file from its source again"
            raise self.location.unsupported(f"a dictionary in the encoding {name}", hint)
        return name

    def head(self) -> Struct | None:
        """The structure for the page's type, walked; None if the header or the IDL has none."""
        head = _HEADS.get(self.kind)
        return None if head is None or not self.has_head else self._walked().struct(*head)

    def _walked(self) -> Struct:
        return Struct("PageHeader", self.data[self.start : self.end], 0, self.location)


def parse(data: bytes, start: int, end: int) -> PageHeader:
    """Parse the header at `start` of bytes that end at `end`. Raises CompactError."""
    return PageHeader(data, start, end, parquet_limits.THRIFT_MAX_DEPTH)


_HINT: Final = "the column's pages are damaged; get the file from its source again"
WINDOW: Final = 1 << 20
HEADER_WINDOW: Final = 512

_MOST_GROWTH: Final = 1100
"""GZIP expands a byte to at most 1032 bytes, SNAPPY to 22, LZ4 to 255. ZSTD and BROTLI can exceed this, but such a
page is decompressed only if it has a usual size, or the chunk's metadata allow its size."""
_USUAL_PAGE_BYTES: Final = 1 << 20
"""The usual size of a page. parquetjs writes totals of uncompressed bytes that are smaller than one."""


def can_become(packed: int, size: int, chunk: ColumnChunk) -> bool:
    """Whether `packed` compressed bytes of a chunk's page may become `size` decompressed ones."""
    return size <= max(packed * _MOST_GROWTH, chunk.uncompressed_bytes, _USUAL_PAGE_BYTES)


BAD_CHECKSUM: Final = "the page's bytes don't match the checksum in its header: they changed after they were written"


class BadChecksum(CorruptFile):
    """A page doesn't match the checksum in its header. The offset is that of the header."""


class Levels(NamedTuple):
    """Definition or repetition levels of a page: RLE/bit-packed hybrid runs."""

    body: Body
    start: int
    end: int
    highest: int
    """The highest level of the column."""

    def number(
        self,
        values: int,
        location: Location,
        counted: int = -1,
        marks: bytearray | None = None,
        feed: Feed | None = None,
    ) -> int:
        """How many levels of the first `values` ones are `counted`, by default the highest. These are marked. `feed`:
        the body from the levels on, if it is open already. Raises CorruptFile."""
        feed = feed or self.body.open(self.start)
        levels = kernels.Levels(values, self.highest, counted, marks)
        try:
            while True:
                size = min(feed.left, self.end - feed.at)
                last = size == self.end - feed.at or feed.final
                feed.position = levels.feed(feed.data, feed.position, feed.position + size, last)
                if last or levels.left == 0:
                    return levels.hits
                feed.more()
        except kernels.PageError as error:
            raise location.fault(str(error), 0) from None


class Page(NamedTuple):
    """A data or dictionary page, ready for its values to be hashed."""

    dictionary: bool
    encoding: str
    num_values: int
    """Number of values, including nulls."""
    non_null: int
    """Values that are not null."""
    body: Body | None
    """The uncompressed value section starts at `start`; None for a page that was skipped."""
    start: int
    location: Location
    """The page, for errors; its base is the file offset of the page's header."""
    end: int
    """The file offset after the page."""
    levels: Levels | None = None
    """The definition levels of a data page of a column that may have nulls."""
    repetition: Levels | None = None
    """The repetition levels of a data page of a repeated column, unless they have a deprecated encoding."""

    def histogram(self, column: Column, *, repetition: bool) -> tuple[int, ...] | None:
        """How many values of a data page have each repetition level, or each definition level; None if the levels
        have a deprecated encoding. Raises CorruptFile."""
        levels = self.repetition if repetition else self.levels
        highest = column.max_repetition_level if repetition else column.max_definition_level
        if not highest or (levels is None and not repetition):
            return (*(0,) * highest, self.num_values)
        if not repetition and highest == 1:
            return self.num_values - self.non_null, self.non_null
        if levels is None:
            return None
        counts = [levels.number(self.num_values, self.location, counted=level) for level in range(highest)]
        return (*counts, self.num_values - sum(counts))

    def defined(self) -> bytearray:
        """Of a data page of a column without lists: a 1 for each row that has a value. Raises CorruptFile."""
        marks = bytearray(self.num_values)
        if self.non_null and self.levels is not None:
            self.levels.number(self.num_values, self.location, marks=marks)
        return marks

    def begins_row(self, column: Column) -> bool:
        """Whether a data page begins with a row; False if its repetition levels aren't there. Raises CorruptFile."""
        if not column.max_repetition_level:
            return True
        return self.repetition is not None and bool(self.repetition.number(1, self.location, counted=0))

    def rows(self, column: Column) -> int | None:
        """The number of rows of a data page; None for a page of a repeated column that doesn't begin with a row, or
        whose repetition levels aren't there. Raises CorruptFile."""
        histogram = self.histogram(column, repetition=True)
        return histogram[0] if histogram is not None and self.begins_row(column) else None


def chunk_range(chunk: ColumnChunk) -> tuple[int, int]:
    """The range that a `ChunkReader` reads. The window of the last page's header may extend beyond the chunk."""
    return chunk.data_offset, chunk.compressed_bytes + HEADER_WINDOW if chunk.num_values else 0


class ChunkReader:
    """Reads one column chunk sequentially, in windows; never past the end of the file's data."""

    def __init__(
        self,
        source: Source,
        chunk: ColumnChunk,
        window: int = WINDOW,
        stop: Stop | None = None,
        *,
        checked: bool = False,
    ) -> None:
        """`checked`: compare pages with the checksums in their headers, unless the first page has none."""
        self.source = source
        self.checked = checked
        self.stop = stop or Stop()
        self.chunk = chunk
        self.window = window
        self.position = chunk.data_offset
        self.end = chunk.data_end
        self.field = chunk.key.field
        self._window = b""
        self._base = self.position
        size = chunk.compressed_bytes
        if chunk.num_values and not (
            len(spec.MAGIC) <= self.position < self.end and 0 <= size <= self.end - self.position
        ):
            raise CorruptFile(
                f"the column chunk lies at {self.position} with {counted(size, 'byte')}, outside the file's data",
                path=source.path,
                offset=self.position,
                field=self.field + ".meta_data",
                hint="the footer is damaged; get the file from its source again",
            )

    def fault(self, reason: str, at: int | None = None) -> CorruptFile:
        """Return an error about this chunk's bytes."""
        return CorruptFile(
            reason, path=self.source.path, offset=self.position if at is None else at, field=self.field, hint=_HINT
        )

    def bytes_at(self, at: int, size: int) -> memoryview:
        """Return bytes, all of which are in the file's data."""
        skip = self._load(at, size)
        return memoryview(self._window)[skip : skip + size]

    def _load(self, at: int, size: int) -> int:
        """Load at least `size` bytes from an offset on, and return its index in the window."""
        skip = at - self._base
        if skip < 0 or len(self._window) - skip < size:
            remaining = self.chunk.data_offset + self.chunk.compressed_bytes - at
            self._window = self.source.read_at(at, max(size, min(self.window, remaining, self.end - at)))
            self._base = at
            skip = 0
        return skip

    def page(self) -> StoredPage:
        """Read the header of the page at the position, and advance past the page. Raises CorruptFile."""
        at, header = self.position, self.header()
        packed, size = header.required("compressed_page_size"), header.required("uncompressed_page_size")
        self.position += header.size
        if packed > self.end - self.position:
            raise self.fault(f"a page of {counted(packed, 'byte')} runs past the file's data")
        self.position += packed
        return StoredPage(self, header, at, at + header.size, packed, size)

    def header(self) -> PageHeader:
        """Return the page header at the position. Retries with larger windows: statistics can make it long.

        Raises CorruptFile: also for a header without the structure for its type.
        """
        location = Location(self.source.path, self.position, self.field)
        rest = self._base + len(self._window) - self.position
        size = min(rest, HEADER_WINDOW) if self._base <= self.position and rest > 0 else HEADER_WINDOW
        while True:
            room = min(size, self.end - self.position)
            skip = self._load(self.position, room)
            try:
                header = parse(self._window, skip, skip + room)
            except kernels.CompactError as error:
                if size >= HEADER_WINDOW and (room < size or size >= parquet_limits.PAGE_HEADER_MAX_BYTES):
                    raise location.fault(error.reason, error.offset - skip) from None
                size = HEADER_WINDOW if size < HEADER_WINDOW else size * 16
            else:
                header.location = location
                if header.head_field is not None and not header.has_head:
                    raise self.fault(f"the page header has no {header.head_field}")
                return header


class StoredPage(NamedTuple):
    """A page as it is stored in the file."""

    reader: ChunkReader
    header: PageHeader
    at: int
    """The file offset of the header."""
    offset: int
    """The file offset after the header."""
    packed: int
    """The bytes after the header."""
    size: int
    """The same bytes, decompressed."""
    data: memoryview | None = None
    """The bytes after the header, if they are in memory."""
    beyond: bool = False
    """The pages before it have all values that the metadata say."""

    @property
    def end(self) -> int:
        """The file offset after the page."""
        return self.offset + self.packed

    @property
    def is_dictionary(self) -> bool:
        """Whether it is a dictionary page."""
        return self.header.type == _DICTIONARY_PAGE

    @property
    def is_data(self) -> bool:
        """Whether it is a data page: not a dictionary, an index page or of an unknown type."""
        return self.header.head_field is not None and not self.is_dictionary

    def check(self) -> None:
        """Raise BadChecksum if the page doesn't match the checksum in its header. Reads it if it isn't in memory."""
        reader, header = self.reader, self.header
        if header.crc is None:
            reader.checked = reader.checked and self.at != reader.chunk.data_offset
        if header.crc is None or not reader.checked:
            return
        crc = 0
        for part in self._stored():
            reader.stop.check()
            crc = zlib.crc32(part, crc)
        if crc != header.crc & 0xFFFFFFFF:
            raise BadChecksum(BAD_CHECKSUM, path=reader.source.path, offset=self.at, field=reader.field, hint=_HINT)

    def body(self, skip: int = 0, *, compressed: bool = True) -> Body:
        """Return the decompressed bytes after the first `skip`."""
        data = None if self.data is None else self.data[skip:]
        rest = self._replace(offset=self.offset + skip, packed=self.packed - skip, size=self.size - skip, data=data)
        codec = self.reader.chunk.codec if compressed and rest.packed else "UNCOMPRESSED"
        location, stop = self.header.location, self.reader.stop
        if codec != "UNCOMPRESSED":
            rest._possible(codec)
        elif self.packed != self.size:
            raise location.fault(f"{counted(self.packed, 'byte')} that aren't compressed can't become {self.size}", 0)
        if data is None and codecs.streams(codec):
            return Body(partial(rest._decompressed, codec), rest.size, location, stop)
        (whole,) = rest._decompressed(codec)
        return Body(whole, rest.size, location, stop)

    def _stored(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes after the header as they are stored."""
        if self.data is not None:
            yield self.data
            return
        for at in range(self.offset, self.end, codecs.WINDOW):
            yield self.reader.source.read_at(at, min(codecs.WINDOW, self.end - at))

    def _decompressed(self, codec: str) -> Iterator[Buffer]:
        """Yield the decompressed bytes: in windows, if they aren't in memory and `codecs.streams` says so, else at
        once. Raises CorruptFile, UnsupportedError."""
        location, came = self.header.location, 0
        try:
            for window in self._windows(codec):
                came += len(window)
                if came > self.size:
                    break
                yield window
        except codecs.CodecError as error:
            raise location.fault(f"the page can't be decompressed ({error})", 0) from None
        if came != self.size:
            came_out = f"{counted(came, 'byte')} {'or more ' if came > self.size else ''}came out"
            raise location.fault(f"the page can't be decompressed ({came_out}, {self.size} were announced)", 0)

    def _windows(self, codec: str) -> Iterator[Buffer]:
        most = parquet_limits.PAGE_WHOLE_MAX_BYTES
        if codec == "UNCOMPRESSED":
            yield from self._stored()
        elif self.data is not None:
            yield codecs.decompress(codec, self.data, self.size)
        elif codecs.streams(codec):
            yield from codecs.streamed(self.reader.source, self.offset, self.packed, codec)
        elif max(self.packed, self.size) > most:
            raise self.header.location.unsupported(
                f"a page of {counted(self.size, 'byte')} ({self.packed} in the file); with {codec} at most {most} are"
                " read",
                "rewrite the file with smaller pages, or with ZSTD",
            )
        else:
            yield codecs.decompress(codec, memoryview(b"".join(self._stored())), self.size)

    def _possible(self, codec: str) -> None:
        location = self.header.location
        if not codecs.supported(codec):
            raise location.at("meta_data.codec").unsupported(
                f"the codec {codec}", "rewrite the file with another codec"
            )
        if not can_become(self.packed, self.size, self.reader.chunk):
            raise location.fault(
                f"a page of {counted(self.size, 'byte')} can't be in {self.packed} compressed ones", 0
            )

    def head(self, size: int) -> Body:
        """Return the first bytes, which aren't compressed."""
        data = None if self.data is None else self.data[:size]
        return self._replace(packed=size, size=size, data=data).body(compressed=False)


def refuse_encrypted(source: Source, chunk: ColumnChunk) -> None:
    """Raise KeyMissing for a chunk that is encrypted and whose key isn't given."""
    if chunk.encrypted:
        raise KeyMissing(
            f"column {chunk.column.path} is encrypted, and its key isn't given",
            path=source.path,
            field=chunk.key.field,
            hint=chunk.key_hint,
        )


def stored_pages(reader: ChunkReader, *, whole: bool = False, counted_here: bool = False) -> Iterator[StoredPage]:
    """Yield the chunk's pages, of all types, up to the number of values that the metadata say. The reader is after
    the page; the pages aren't read.

    Args:
        reader: the reader of the chunk.
        whole: yield the pages in the chunk after these values, too.
        counted_here: yield the pages up to the chunk's end, whatever number of values they have.

    Raises:
        CorruptFile: a header can't be read, a page runs past the file's data, the pages have other numbers of values
            than the metadata say, or there are several dictionaries: readers disagree about which one applies.
    """
    chunk, value_count, dictionaries = reader.chunk, 0, 0
    end = chunk.data_offset + chunk.compressed_bytes
    while True:
        at, complete = reader.position, value_count >= chunk.num_values and not counted_here
        to_the_end = counted_here or (whole and complete)
        if at >= end if to_the_end else complete:
            return
        reader.stop.check()
        try:
            page = reader.page()
            value_count += page.header.required_of_head("num_values") if page.is_data else 0
        except CorruptFile:
            if complete:  # the bytes after the last page aren't a page
                return
            if at >= end:  # old writers' sizes leave a dictionary's header out
                raise _other_count(reader, value_count, at) from None
            raise
        dictionaries += page.is_dictionary
        if dictionaries > 1:
            raise reader.fault("a second dictionary page", at)
        if value_count > chunk.num_values and not (complete or counted_here):
            raise _other_count(reader, value_count, at)
        yield page._replace(beyond=True) if complete else page


def _other_count(reader: ChunkReader, value_count: int, at: int) -> CorruptFile:
    return reader.fault(f"the pages have {counted(value_count, 'value')}, the metadata {reader.chunk.num_values}", at)


def read_pages(
    source: Source,
    chunk: ColumnChunk,
    skip: Callable[[str], bool] = lambda _: False,
    *,
    stop: Stop | None = None,
    window: int = WINDOW,
    checked: bool = False,
    whole: bool = False,
) -> Iterator[Page]:
    """Yield the chunk's dictionary page, if any, and its data pages.

    Only the headers of data pages whose encoding `skip` accepts are read; these pages have no values. The first read
    has `window` bytes. `checked`: compare pages with their checksums, for which skipped pages are read too. `whole`:
    yield pages without values, too, and pages in the chunk after the number of values that its metadata say.
    """
    refuse_encrypted(source, chunk)
    reader = ChunkReader(source, chunk, window, stop, checked=checked)
    for stored in stored_pages(reader, whole=whole):
        try:
            page = read_page(stored, skip)
        except CorruptFile:
            if stored.beyond:  # it isn't a page
                return
            raise
        if page is None:
            continue
        reader.window = HEADER_WINDOW if page.body is None else WINDOW
        if page.dictionary or page.num_values or whole:
            yield page


def data_pages(reader: ChunkReader, *, counted_here: bool = False) -> Iterator[StoredPage]:
    """Yield the data pages of `stored_pages`, which have to lie in the chunk, after its dictionary."""
    chunk = reader.chunk
    for page in stored_pages(reader, counted_here=counted_here):
        if page.is_dictionary and page.at > chunk.data_offset:
            raise reader.fault("a dictionary page after other pages", page.at)
        if page.end > chunk.data_offset + chunk.compressed_bytes:
            raise reader.fault("a page runs past the column chunk", page.at)
        if page.is_data:
            yield page


def read_page(stored: StoredPage, skip: Callable[[str], bool] = lambda _: False) -> Page | None:
    """Read a page, without the values of a data page whose encoding `skip` accepts; None if it is neither a data page
    nor a dictionary."""
    header, dictionary = stored.header, stored.is_dictionary
    if header.head_field is None:
        stored.check()
        return None  # index pages and unknown types: skipped, as the specification requires
    encoding = header.encoding_name()
    count = header.required_of_head("num_values")
    skipped = not dictionary and skip(encoding)
    if not skipped and max(stored.packed, stored.size) <= parquet_limits.PAGE_AT_ONCE_BYTES:  # else in windows
        stored = stored._replace(data=stored.reader.bytes_at(stored.offset, stored.packed))
    stored.check()
    page = Page(dictionary, encoding, count, 0, None, 0, header.location, stored.end)
    if skipped:
        return page
    if dictionary:
        return page._replace(body=stored.body(), non_null=count)
    return _data_page_v1(page, stored) if header.kind == "DATA_PAGE" else _data_page_v2(page, stored)


def _data_page_v1(page: Page, stored: StoredPage) -> Page:
    """The page with its values and levels. The body has repetition levels and definition levels, each after its
    length, and the values."""
    header, location, count = stored.header, page.location, page.num_values
    column, body = stored.reader.chunk.column, stored.body()
    position = 0
    non_null, definition, repetition = count, None, None
    for highest, field in (
        (column.max_repetition_level, "repetition_level_encoding"),
        (column.max_definition_level, "definition_level_encoding"),
    ):
        if highest == 0:
            continue
        counted = field.startswith("def")
        if spec.enum_name("Encoding", header.required_of_head(field)) == "BIT_PACKED":
            if counted:
                reason = "definition levels in the deprecated BIT_PACKED encoding"
                raise location.unsupported(reason, "rewrite the file with a current engine")
            position += (count * highest.bit_length() + 7) // 8
            continue
        if body.size - position < 4:
            raise location.fault("the page ends within its levels", 0)
        feed = body.open(position)
        if feed.left < 4:
            feed.more(4 - feed.left)
        length = int.from_bytes(memoryview(feed.data)[feed.position : feed.position + 4], "little")
        position += 4
        if length > body.size - position:
            raise location.fault("the page's levels run past its end", 0)
        levels = Levels(body, position, position + length, highest)
        if counted:
            feed.position += 4
            non_null, definition = levels.number(count, location, feed=feed), levels
        else:
            repetition = levels
        position += length
    if position > body.size:
        raise location.fault("the page's levels run past its end", 0)
    return page._replace(body=body, start=position, non_null=non_null, levels=definition, repetition=repetition)


def _data_page_v2(page: Page, stored: StoredPage) -> Page:
    """The page with its values and levels. Uncompressed levels precede the values; the header has their lengths."""
    header = stored.header
    repeated = header.required_of_head("repetition_levels_byte_length")
    definition = header.required_of_head("definition_levels_byte_length")
    size = repeated + definition
    if size > stored.packed or size > stored.size:
        raise page.location.fault("the page's levels run past its end", 0)
    column = stored.reader.chunk.column
    non_null, levels, repetition = page.num_values, None, None
    if column.max_definition_level and definition:
        levels = Levels(stored.head(size), repeated, size, column.max_definition_level)
        non_null = levels.number(page.num_values, page.location)
    if column.max_repetition_level and repeated:
        repetition = Levels(stored.head(size), 0, repeated, column.max_repetition_level)
    body = stored.body(size, compressed=header.is_packed)
    return page._replace(body=body, non_null=non_null, levels=levels, repetition=repetition)


_ZSTD_SKIPPED: Final = tuple(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))
_STARTS: Final = {"GZIP": (b"\x1f\x8b",), "ZSTD": (b"\x28\xb5\x2f\xfd", *_ZSTD_SKIPPED)}
"""The first bytes of compressed data. ZSTD: a frame or a skippable frame (RFC 8878)."""
_SNAPPY_LENGTH: Final = 5
"""Maximum length of a 32-bit varint."""


def first_headers(source: Source, chunk: ColumnChunk) -> CorruptFile | None:
    """What is wrong with the header of the chunk's first page or, after a dictionary, of the second: they contradict
    the page or the metadata. None if nothing is."""
    if not chunk.num_values or chunk.encrypted:
        return None
    try:
        reader = ChunkReader(source, chunk, HEADER_WINDOW)
        first = reader.page()
        fault = _contradiction(first)
        if fault is None and first.is_dictionary:
            second = reader.page()
            fault = _contradiction(second)
            if second.is_dictionary:
                fault = reader.fault("a second dictionary page", second.at)
    except CorruptFile as error:
        return error
    return fault


def header_ranges(chunk: ColumnChunk) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each range that `first_headers` reads, as far as the metadata give it."""
    if chunk.num_values and not chunk.encrypted:
        yield chunk.data_offset, 2 * HEADER_WINDOW
        if chunk.dictionary_bytes is not None:
            yield chunk.data_offset + chunk.dictionary_bytes, 2 * HEADER_WINDOW


def dictionary_entries(source: Source, chunk: ColumnChunk) -> int | None:
    """The number of dictionary entries in the header of the chunk's first page; None if that page isn't a dictionary
    or can't be read. Takes one small read."""
    try:
        header = ChunkReader(source, chunk, HEADER_WINDOW).header()
        return header.required_of_head("num_values") if header.kind == "DICTIONARY_PAGE" else None
    except CorruptFile:
        return None


def _contradiction(page: StoredPage) -> CorruptFile | None:
    """What is wrong with a page's header; None if nothing shows it."""
    reason = _reason(page)
    return None if reason is None else page.reader.fault(reason, page.at)


def _reason(page: StoredPage) -> str | None:
    """Why a page's header is wrong; None if nothing shows it."""
    header, chunk, packed, size = page.header, page.reader.chunk, page.packed, page.size
    if header.head_field is None:
        return None  # index pages and unknown types
    count = header.required_of_head("num_values")
    if not page.is_dictionary and count > chunk.num_values:
        return f"a page of {counted(count, 'value')}, and the column chunk has {chunk.num_values}"
    levels = 0
    compressed = True
    if header.kind == "DATA_PAGE_V2":
        levels = header.required_of_head("repetition_levels_byte_length")
        levels += header.required_of_head("definition_levels_byte_length")
        compressed = header.is_packed
        if levels > min(packed, size):
            return f"levels of {counted(levels, 'byte')} in a page of {min(packed, size)}"
    if chunk.codec == "UNCOMPRESSED" or not compressed:
        return None if packed == size else f"{counted(packed, 'byte')} that aren't compressed can't become {size}"
    if not can_become(packed - levels, size - levels, chunk):
        return f"a page of {counted(size - levels, 'byte')} can't be in {packed - levels} compressed ones"
    start = bytes(page.reader.bytes_at(page.offset, min(packed, HEADER_WINDOW)))
    return _compressed(start[levels:], size - levels, chunk.codec)


def _compressed(start: bytes, size: int, codec: str) -> str | None:
    """Return why the first bytes can't be the codec's output; None if they can."""
    if len(start) < _SNAPPY_LENGTH or not size:
        return None
    if codec == "SNAPPY":
        try:
            announced, _ = kernels.varint(start[:_SNAPPY_LENGTH], 0)
        except kernels.CompactError:
            return "the bytes after the header aren't SNAPPY"
        return None if announced == size else f"{counted(size, 'byte')} are announced, and SNAPPY says {announced}"
    if codec in _STARTS and not start.startswith(_STARTS[codec]):
        return f"the bytes after the header aren't {codec}"
    return None


def refuse_damaged_pages(source: Source, chunk: ColumnChunk) -> None:
    """Raise CorruptFile if `validate` would report the chunk's first headers; such a chunk gets no filter."""
    fault = first_headers(source, chunk)
    if fault is not None:
        raise ChunkReader(source, chunk).fault(fault.reason, fault.offset)


def longest(stored: StoredPage) -> int:
    """The size of the longest value of a page whose values can share bytes: a dictionary, or one in DELTA_BYTE_ARRAY.

    0 for other pages, whose values aren't larger than the page. For types other than BYTE_ARRAY it is their width.

    Raises:
        CorruptFile, UnsupportedError: the page can't be read.
    """
    reader, column = stored.reader, stored.reader.chunk.column
    if column.physical != "BYTE_ARRAY":
        return width_of(column) or 0
    encoding = stored.header.encoding_name()
    if not stored.is_dictionary and encoding != "DELTA_BYTE_ARRAY":
        return 0
    try:
        page = read_page(stored)
        if page is None or page.body is None:
            return 0
        size, together = _longest(page)
    except kernels.PageError as error:
        raise reader.fault(str(error), stored.at) from None
    most = parquet_limits.PAGE_SHARED_MAX_BYTES
    if together > most:
        reason = f"a page whose values have {together:.0f} bytes; at most {most} are decoded"
        raise stored.header.location.unsupported(reason, "rewrite the file with smaller pages")
    return size


def _longest(page: Page) -> tuple[int, float]:
    """(size of the longest value, size of all values if they share bytes with the previous one, else 0)."""
    assert page.body is not None  # noqa: S101  none was skipped
    data = page.body.whole()
    if page.dictionary:
        return kernels.longest_plain(data, page.start, page.num_values), 0
    if not page.non_null:
        return 0, 0
    prefixes, suffixes, skipped = kernels.Deltas(), kernels.Deltas(), kernels.Deltas()
    skipped.feed(data, page.start, True)
    if skipped.skip() != kernels.ALL_DONE:
        raise kernels.PageError("a delta block runs past the page's end")
    prefixes.feed(data, page.start, True)
    suffixes.feed(data, skipped.position, True)
    return kernels.longest_delta_byte_array(prefixes, suffixes)
