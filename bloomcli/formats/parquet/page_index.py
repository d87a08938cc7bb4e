"""The pages of column chunks: the page indexes, which of them are believed, and the pages that can hold a value.
New page indexes are encoded here, too.

    ColumnIndex    each page's minimum, maximum and null count
    OffsetIndex    each page's offset, length and first row

A page is left out if its bounds exclude every value, or, where the column isn't repeated, if it has only nulls;
readers do the same. Indexes that
contradict each other, themselves or the row group aren't used: all pages are read.

Source: the Apache Parquet format, PageIndex.md; parquet.thrift, ColumnIndex and OffsetIndex.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.answer import ENCRYPTED
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX, Footer
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, StoredPage, data_pages, read_page
from bloomcli.formats.parquet.spec import I32, I64, encoded, zigzag
from bloomcli.formats.parquet.statistics import has_nan, upper_bound, width_of
from bloomcli.kernels import ColumnIndex, OffsetIndex
from bloomcli.model.file import ChunkKey, Column, ColumnChunk, IndexEntry, PageFacts
from bloomcli.storage.base import Source
from bloomcli.values.literals import bound_text, decode_bound
from bloomcli.words import plural

UNORDERED: Final = 0
ASCENDING: Final = 1
_DESCENDING: Final = 2
_PLACE: Final = bytes([1 << 4 | I64]) + b"%b" + bytes([1 << 4 | I32]) + b"%b" + bytes([1 << 4 | I64]) + b"%b\0"
"""A PageLocation: an i64, an i32 and an i64 with the ids 1 to 3."""
_Index = TypeVar("_Index", ColumnIndex, OffsetIndex)
_Value = TypeVar("_Value")


def column_index(source: Source, footer: Footer, key: ChunkKey) -> ColumnIndex | None:
    """Decode a chunk's column index, which has null_pages; None if there is none, or the chunk is encrypted.

    Raises:
        CorruptFile: it can't be read, or lies outside of the data.
        UnsupportedError: it has more bytes or elements than are read.
    """
    return _read(source, footer, key, COLUMN_INDEX, ColumnIndex, "null_pages")


def offset_index(source: Source, footer: Footer, key: ChunkKey) -> OffsetIndex | None:
    """Decode a chunk's offset index, which has page_locations; None if there is none, or the chunk is encrypted.

    Raises: as `column_index`.
    """
    return _read(source, footer, key, OFFSET_INDEX, OffsetIndex, "page_locations")


def _read(
    source: Source, footer: Footer, key: ChunkKey, name: str, kind: type[_Index], required: str
) -> _Index | None:
    extent = _extents(footer, key).get(name)
    if extent is None:
        return None
    offset, length = extent
    words = name.replace("_", " ")
    location = spec.Location(source.path, offset, f"{key.field}.{name}")
    if length > parquet_limits.INDEX_MAX_BYTES:
        most = parquet_limits.INDEX_MAX_BYTES
        raise location.unsupported(f"the {words} has {plural(length, 'byte')}; at most {most:,} are read")
    most = parquet_limits.INDEX_MAX_ELEMENTS
    try:
        index = kind(source.read_at(offset, length), parquet_limits.THRIFT_MAX_DEPTH, most)
    except kernels.CompactLimit:
        reason = f"the {words} has more than {plural(most, 'element')}; at most {most:,} are read"
        raise location.unsupported(reason) from None
    except kernels.CompactError as error:
        raise location.fault(f"the {words} can't be read: {error.reason}", error.offset, error.field) from None
    if getattr(index, required) is None:
        raise location.fault(f"the {words} can't be read: it has no {required}", 0, required)
    return index


def _extents(footer: Footer, key: ChunkKey) -> dict[str, tuple[int, int]]:
    """The offset and length of a chunk's indexes, by name; none if it is encrypted. Raises CorruptFile."""
    metadata = footer.metadata(key)
    extents = [] if metadata.encrypted else footer.index_extents(key, metadata)
    return {kind: (offset, length) for kind, offset, length in extents}


def ranges(footer: Footer, key: ChunkKey, *names: str) -> list[tuple[int, int]]:
    """The ranges of these indexes of a chunk that are read; none if its metadata are damaged: reading an index
    reports it."""
    try:
        extents = _extents(footer, key)
    except CorruptFile:
        return []
    pairs = (extents[name] for name in names if name in extents)
    return [(offset, length) for offset, length in pairs if length <= parquet_limits.INDEX_MAX_BYTES]


HasWithin = Callable[[Any, Any], bool]
"""Whether a value lies between two bounds, as `decode_bound` returns them; None for a bound that isn't known."""


class PagePlace(NamedTuple):
    """The location and the rows of a data page in the offset index."""

    offset: int
    length: int
    """The length including the header."""
    first_row: int
    """The position in the row group."""
    rows: int
    before: int
    """The bytes of the chunk before its first data page, which have its dictionary."""


class Selection(NamedTuple):
    """The pages that can hold a value."""

    pages: Sequence[PagePlace]
    left_out: int


def select(source: Source, footer: Footer, chunk: ColumnChunk, has_within: HasWithin | None) -> Selection | None:
    """The pages of a chunk that may have one of some values; None without a usable index. `has_within`: whether one
    of the values lies between a page's bounds; None if every page may have a value."""
    places = pages_of(source, footer, chunk)
    if places is None:
        return None
    try:
        index = column_index(source, footer, chunk.key)
    except (CorruptFile, UnsupportedError):
        index = None
    if index is None:
        return Selection(places, 0)
    pages = PageBounds(index, [place.first_row for place in places], chunk, footer)
    if pages.problem is not None:
        return None
    flat = not chunk.column.max_repetition_level  # arrow-rs compares the nulls of a repeated column with its rows
    kept = [
        place
        for place, null, bounds in zip(places, pages.only_nulls, pages.bounds, strict=True)
        if not ((null and flat) or (has_within is not None and not has_within(*bounds)))
    ]
    return Selection(kept, len(places) - len(kept))


def pages_of(source: Source, footer: Footer, chunk: ColumnChunk) -> Sequence[PagePlace] | None:
    """All pages of a chunk in its offset index; None without a usable one."""
    try:
        return _places(source, footer, chunk)
    except (CorruptFile, UnsupportedError):
        return None


def pages_in(
    source: Source, chunk: ColumnChunk, stop: Stop | None = None, *, empty: bool = False
) -> tuple[Sequence[PagePlace], int | None]:
    """The data pages of a chunk that have values (`empty`: all), by their headers, and the number of their rows; None
    if one begins within a row. Of repeated columns, the repetition levels are read. Raises CorruptFile,
    UnsupportedError."""
    places: list[PagePlace] = []
    first, before = 0, None
    reader = ChunkReader(source, chunk, HEADER_WINDOW, stop)
    for stored in data_pages(reader):
        rows = count = stored.header.num_values
        before = stored.at - chunk.data_offset if before is None else before
        if chunk.column.max_repetition_level and count:
            page = read_page(stored)
            counted_here = None if page is None else page.rows(chunk.column)
            if counted_here is None:
                return places, None
            rows = counted_here
        if count or empty:
            places.append(PagePlace(stored.at, stored.end - stored.at, first, rows, before))
        first += rows
    return places, first


def pages_by_headers(source: Source, chunk: ColumnChunk, rows: int) -> Sequence[PagePlace] | None:
    """All pages of a chunk of a column that isn't repeated, from their headers instead of an offset index; None if
    they contradict the row group."""
    try:
        places, counted_here = pages_in(source, chunk)
    except (CorruptFile, UnsupportedError):
        return None
    end = places[-1].offset + places[-1].length if places else chunk.data_offset
    complete = end == chunk.data_offset + chunk.compressed_bytes
    return places if complete and counted_here == rows == chunk.num_values else None


def dictionary_extent(chunk: ColumnChunk, places: Sequence[PagePlace]) -> tuple[int, int] | None:
    """The offset and length of the page that has to be read before these pages of a chunk: its dictionary; None
    without pages, and if the chunk begins with a data page."""
    return (chunk.data_offset, places[0].before) if places and places[0].before else None


def agree(source: Source, chunk: ColumnChunk, places: Sequence[PagePlace]) -> bool:
    """Whether the pages at these places have the length and the number of rows that the places say."""
    repeated = chunk.column.max_repetition_level > 0
    try:
        reader = ChunkReader(source, chunk)
        for place in places:
            reader.position, reader.window = place.offset, place.length if repeated else HEADER_WINDOW
            page = read_page(reader.page(), lambda _: not repeated)  # levels are needed of repeated columns only
            if page is None or page.dictionary or page.end != place.offset + place.length:
                return False
            if page.rows(chunk.column) != place.rows:
                return False
    except (CorruptFile, UnsupportedError):
        return False
    return True


def with_rows(pages: Sequence[PagePlace], rows: Sequence[int]) -> list[PagePlace]:
    """The pages with any of these rows, which ascend."""
    places = []
    for page in pages:
        at = bisect_left(rows, page.first_row)
        if at < len(rows) and rows[at] < page.first_row + page.rows:
            places.append(page)
    return places


def with_ranges(pages: Sequence[PagePlace], rows: Sequence[range]) -> list[PagePlace]:
    """The pages with rows of any of these ranges, which ascend and don't overlap."""
    places, at = [], 0
    for page in pages:
        while at < len(rows) and rows[at].stop <= page.first_row:
            at += 1
        if at < len(rows) and rows[at].start < page.first_row + page.rows:
            places.append(page)
    return places


def worth(pages: Sequence[PagePlace], chunk: ColumnChunk) -> bool:
    """Whether reading these pages one by one pays: they have less than half of the chunk's bytes."""
    return 2 * sum(page.length for page in pages) < chunk.compressed_bytes


def _places(source: Source, footer: Footer, chunk: ColumnChunk) -> list[PagePlace] | None:
    """The pages of a chunk's offset index in order; None without an index, or if it contradicts the chunk: pages that
    don't fill the chunk, pages without rows, first rows that don't ascend from 0.

    xitongsys/parquet-go's lengths leave out the page headers. A page's header is compared with the index before the
    page is read (`agree`). In a local file, where that costs no request, the last page's is compared here: first rows
    that don't count all rows of pages (those of nulls, for example) leave it too many.

    Raises: as `offset_index`.
    """
    index = offset_index(source, footer, chunk.key)
    numbers = None if index is None else index.page_locations
    if not numbers:
        return None
    rows, before = footer.row_group(chunk.row_group).rows, numbers[0][0] - chunk.data_offset
    if fault_in_locations(numbers, chunk, rows) is not None or (chunk.dictionary_bytes or before) != before:
        return None
    ends = [first for _, _, first in numbers[1:]] + [rows]
    places = [
        PagePlace(offset, length, first, last - first, before)
        for (offset, length, first), last in zip(numbers, ends, strict=True)
    ]
    empty = any(place.rows <= 0 for place in places)
    if empty or (not source.request_bytes and not agree(source, chunk, places[-1:])):
        return None
    return places


def fault_in_locations(locations: Sequence[tuple[int, int, int]], chunk: ColumnChunk, rows: int) -> str | None:
    """Why the locations of pages contradict each other, the chunk or its row group's rows; None if they don't."""
    firsts = [first for _, _, first in locations]
    if not locations:
        return "it lists no page" if chunk.num_values else None
    if firsts[0] != 0 or firsts != sorted(firsts) or firsts[-1] > rows:
        return f"the pages' first rows don't ascend from 0 to {rows}"
    at = locations[0][0]
    for number, (offset, size, _) in enumerate(locations):
        if offset != at or size <= 0:
            return f"page {number} doesn't begin where the page before it ends"
        at += size
    fills = locations[0][0] >= chunk.data_offset and at == chunk.data_offset + chunk.compressed_bytes
    return None if fills else "the pages don't fill the chunk"


class PageBounds:
    """The facts of a column index about the pages of a chunk, checked against each other and the row group.

    Args:
        index: the chunk's column index, which has null_pages.
        firsts: the first row of each page, by the offset index.
        chunk: the metadata of the chunk.
        footer: the file's footer, which tells whether the bounds of its writer can be trusted.

    Attributes:
        problem: why the index isn't used; None if nothing contradicts it.
        in_counts: whether the problem is in the numbers of pages or nulls.
        only_nulls: for each page, whether it has only nulls.
        bounds: (minimum, maximum) of each page, as `decode_bound` returns them; None if unknown.
    """

    def __init__(self, index: ColumnIndex, firsts: Sequence[int], chunk: ColumnChunk, footer: Footer) -> None:
        ends = [*firsts, footer.row_group(chunk.row_group).rows]
        rows = [after - first for first, after in pairwise(ends)]
        self.only_nulls: Sequence[bool] = index.null_pages or ()
        self._counts = index.null_counts
        lows, highs = index.min_values or (), index.max_values or ()
        self.bounds: Sequence[tuple[Any, Any]] = ()
        self.in_counts = True
        if not len(rows) == len(self.only_nulls) == len(lows) == len(highs):
            self.problem: str | None = "the column index and the offset index have different numbers of pages"
            return
        stored = list(zip(lows, highs, strict=True))
        counts = self._in_counts(rows, chunk)
        self.in_counts = counts is not None
        self.problem = counts or self._without_bounds(stored, chunk.column)
        self.bounds = [(None, None)] * len(rows)
        trust = footer.trust(chunk.column)
        if self.problem is None and trust.ordered and trust.page_bounds:
            self.bounds = [
                (None, None) if null else _decoded(low, high, chunk.column)
                for null, (low, high) in zip(self.only_nulls, stored, strict=True)
            ]
            self.problem = self._in_bounds(index.boundary_order, stored, chunk)

    def _in_counts(self, rows: Sequence[int], chunk: ColumnChunk) -> str | None:
        flat = chunk.column.max_repetition_level == 0
        if self._counts is None:
            if chunk.null_count == 0 and any(self.only_nulls):
                return "a page has only nulls, and the row group none"
            return None
        if len(self._counts) != len(rows):
            return "the null counts have another number than the pages"
        for null, count, values in zip(self.only_nulls, self._counts, rows, strict=True):
            if count < 0 or (flat and count > values):
                return "a page has more nulls than rows, or fewer than none"
            if null and not count and values:
                return "a page has only nulls, and its null count is 0"
            if flat and values and null != (count == values):
                return "a page has as many nulls as rows if, and only if, it has only nulls"
        if chunk.null_count is not None and sum(self._counts) != chunk.null_count:
            return "the pages have another number of nulls than the row group"
        return None

    def _without_bounds(self, stored: Sequence[tuple[bytes, bytes]], column: Column) -> str | None:
        """A page that doesn't have only nulls must have bounds; in a BYTE_ARRAY they can be the empty text."""
        if column.physical != "BYTE_ARRAY" and not all(
            null or any(bounds) for null, bounds in zip(self.only_nulls, stored, strict=True)
        ):
            return "a page has neither bounds nor only nulls"
        return None

    def _in_bounds(self, order: int | None, stored: Sequence[tuple[bytes, bytes]], chunk: ColumnChunk) -> str | None:
        bounds = [pair for pair, null in zip(self.bounds, self.only_nulls, strict=True) if not null]
        if any(low is not None and high is not None and low > high for low, high in bounds):
            return "a page's minimum is above its maximum"
        if any(out_of_order(ends, order) for ends in zip(*bounds, strict=True)):
            return "the pages' bounds don't have the order that the index states"
        if not bounds or chunk.encrypted:
            return None
        written = [pair for pair, null in zip(stored, self.only_nulls, strict=True) if not null]
        fixed = all(_is_whole(bound, chunk.column) for pair in written for bound in pair)
        low, high = _decoded(chunk.min_value, chunk.max_value, chunk.column)
        lows, highs = ([bound for bound in ends if bound is not None] for ends in zip(*bounds, strict=True))
        if low is not None and len(lows) == len(bounds) and chunk.min_exact is not False:
            least = min(lows)
            if least > low or (fixed and least != low):
                return "the pages' minima don't reach the row group's minimum"
        if high is not None and len(highs) == len(bounds):
            most = max(highs)
            if (chunk.max_exact is not False and most < high) or (fixed and most != high):
                return "the pages' maxima don't reach the row group's maximum"
            if not fixed and most != high and chunk.max_value is not None and _begins(chunk.max_value, most):
                return "the pages' maxima don't reach the row group's maximum"
        return None


def _decoded(low: bytes | None, high: bytes | None, column: Column) -> tuple[Any, Any]:
    """Bounds that compare; (None, None) for NaN."""
    if has_nan(low, high, column):
        return None, None
    high = upper_bound(high, column)
    return (None if low is None else decode_bound(low, column), None if high is None else decode_bound(high, column))


def out_of_order(bounds: Iterable[Any], order: int | None) -> bool:
    """Whether bounds, those that are known, contradict the boundary order of their index."""
    ends = [bound for bound in bounds if bound is not None]
    return order in {ASCENDING, _DESCENDING} and ends != sorted(ends, reverse=order == _DESCENDING)


def _begins(bound: bytes, shorter: Any) -> bool:
    """Whether a bound is a text that begins with a shorter one."""
    return isinstance(shorter, bytes) and len(shorter) < len(bound) and bound.startswith(shorter)


def _is_whole(bound: bytes, column: Column) -> bool:
    """Whether the bound of a page has the width of its type: then it isn't shortened."""
    return len(bound) == width_of(column)


def entries(source: Source, footer: Footer, column: int) -> Iterator[IndexEntry]:
    """Yield the entries of the column's indexes by row group. A bad index is reported as a row with a problem."""
    listed = 0
    keys = list(footer.chunk_keys({column}))
    source.will_read(extent for key in keys for extent in ranges(footer, key, COLUMN_INDEX, OFFSET_INDEX))
    for key in keys:
        try:
            for entry in _entries(source, footer, key):
                if listed == parquet_limits.PAGES_LISTED_MAX:
                    reason = f"not listed: entries after the first {listed:,}"
                    yield IndexEntry(row_group=key.row_group, problem=reason)
                    return
                listed += 1
                yield entry
        except BloomError as error:
            yield IndexEntry(row_group=key.row_group, problem=error.reason)


def _entries(source: Source, footer: Footer, key: ChunkKey) -> Iterator[IndexEntry]:
    if footer.metadata(key).encrypted:
        yield IndexEntry(row_group=key.row_group, problem=ENCRYPTED)
        return
    column = footer.columns[key.column]
    pages: ColumnIndex | None = None
    offsets: OffsetIndex | None = None
    try:
        pages = column_index(source, footer, key)
    except (CorruptFile, UnsupportedError) as error:
        yield IndexEntry(row_group=key.row_group, problem=error.reason)
    try:
        offsets = offset_index(source, footer, key)
    except (CorruptFile, UnsupportedError) as error:
        yield IndexEntry(row_group=key.row_group, problem=error.reason)
    nulls = [] if pages is None else pages.null_pages or []
    locations = [] if offsets is None else offsets.page_locations or []
    if pages is not None and offsets is not None:
        if len(locations) != len(nulls):
            reason = f"the column index has {plural(len(nulls), 'page')}, the offset index {len(locations):,}"
            yield IndexEntry(row_group=key.row_group, problem=reason)
            return
        problem = PageBounds(pages, [first for _, _, first in locations], footer.chunk(key), footer).problem
        if problem is not None:
            yield IndexEntry(row_group=key.row_group, problem=f"the column index isn't used: {problem}")
    order = None if pages is None else pages.boundary_order
    used = pages if pages is not None and footer.trust(column).ordered else None
    lows, highs = (None, None) if used is None else (used.min_values, used.max_values)
    for page in range(max(len(locations), len(nulls))):
        offset, size, first = locations[page] if page < len(locations) else (None, None, None)
        null = _at(nulls, page)
        yield IndexEntry(
            row_group=key.row_group,
            page=page,
            offset=offset,
            compressed_bytes=size,
            first_row=first,
            nulls=None if pages is None else _at(pages.null_counts, page),
            only_nulls=null,
            min=None if null else bound_text(_at(lows, page), column),
            max=None if null else bound_text(_at(highs, page), column),
            boundary_order=None if order is None else spec.enum_name("BoundaryOrder", order),
        )


def _at(values: Sequence[_Value] | None, page: int) -> _Value | None:
    return values[page] if values is not None and page < len(values) else None


def headers(source: Source, footer: Footer, column: int) -> Iterator[PageFacts]:
    """Yield the headers of the column's pages, row group by row group. No page is read or decompressed.

    A header that can't be read is reported as a row with a problem, and ends its row group.
    """
    listed = 0
    source.will_read(_header_ranges(source, footer, column))
    for chunk in footer.chunks({column}):
        if chunk.encrypted:
            yield _damaged(chunk, chunk.data_offset, ENCRYPTED)
            continue
        for page in _headers_of(source, chunk):
            if listed == parquet_limits.PAGES_LISTED_MAX:
                yield _damaged(chunk, page.offset, f"not listed: pages after the first {listed:,}")
                return
            listed += 1
            yield page


def _header_ranges(source: Source, footer: Footer, column: int) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each range that `pages` reads: the page headers, if the offset index has their
    locations, else whole chunks."""
    keys = footer.chunk_keys({column})
    source.will_read(extent for key in keys for extent in ranges(footer, key, OFFSET_INDEX))
    for chunk in footer.chunks({column}):
        if chunk.encrypted:
            continue
        try:
            index = offset_index(source, footer, chunk.key)
        except (CorruptFile, UnsupportedError):  # listing the index reports it
            index = None
        if index is not None and index.page_locations:
            yield chunk.data_offset, HEADER_WINDOW  # a dictionary page isn't in the index
            yield from ((offset, HEADER_WINDOW) for offset, _, _ in index.page_locations)
        else:
            yield chunk.data_offset, chunk.compressed_bytes


def _damaged(chunk: ColumnChunk, offset: int, reason: str) -> PageFacts:
    return PageFacts(row_group=chunk.row_group, kind="?", offset=offset, problem=reason)


def _headers_of(source: Source, chunk: ColumnChunk) -> Iterator[PageFacts]:
    if not chunk.num_values and chunk.data_offset <= 0:  # Arrow's offset of a chunk without a data page
        return
    try:
        reader = ChunkReader(source, chunk, HEADER_WINDOW)
    except CorruptFile as error:
        yield _damaged(chunk, chunk.data_offset, error.reason)
        return
    end = min(chunk.data_offset + chunk.compressed_bytes, chunk.data_end)
    value_count = 0
    while reader.position < end or value_count < chunk.num_values:
        at = reader.position
        try:
            page = _page_facts(reader.page())
        except CorruptFile as error:
            yield _damaged(chunk, at, error.reason)
            return
        if page.kind.startswith("DATA_PAGE"):
            value_count += max(page.values or 0, 0)
        yield page
    if value_count != chunk.num_values:
        yield _damaged(
            chunk,
            reader.position,
            f"the pages have {plural(value_count, 'value')}, the metadata {chunk.num_values:,}",
        )


def _page_facts(page: StoredPage) -> PageFacts:
    header = page.header
    head = header.head()
    return PageFacts(
        row_group=page.reader.chunk.row_group,
        kind=header.kind,
        offset=page.at,
        header_bytes=header.size,
        compressed_bytes=page.packed,
        uncompressed_bytes=page.size,
        encoding=spec.enum_name("Encoding", header.required_of_head("encoding")) if head is not None else None,
        values=header.required_of_head("num_values") if head is not None else None,
        nulls=head.integer("num_nulls") if head is not None and header.kind == "DATA_PAGE_V2" else None,
        rows=head.integer("num_rows") if head is not None and header.kind == "DATA_PAGE_V2" else None,
        crc=None if header.crc is None else f"{header.crc & 0xFFFFFFFF:08x}",
    )


class IndexedPage(NamedTuple):
    """A page's facts in the column index."""

    low: bytes | None
    """None, like `high`, for a page with nulls only."""
    high: bytes | None
    nulls: int | None = None
    nans: int | None = None


def encoded_column_index(pages: Sequence[IndexedPage], order: int) -> bytes:
    """Encode a ColumnIndex: bounds for pages with values, and "null page" for pages with nulls only. Null and NaN
    counts are left out unless they are known for all pages.

    Args:
        pages: the data pages, in order.
        order: the boundary order.
    """
    nulls, nans = [page.nulls for page in pages], [page.nans for page in pages]
    fields = {
        "null_pages": [page.low is None for page in pages],
        "min_values": [page.low or b"" for page in pages],
        "max_values": [page.high or b"" for page in pages],
        "boundary_order": order,
        "null_counts": None if None in nulls else nulls,
        "nan_counts": None if None in nans else nans,
    }
    return encoded("ColumnIndex", fields)


def encoded_offset_index(places: Iterable[tuple[int, int, int]]) -> bytes:
    """Encode an OffsetIndex of the data pages' (offset, size with the header, first row)."""
    pages = [_PLACE % (zigzag(offset), zigzag(size), zigzag(first)) for offset, size, first in places]
    return encoded("OffsetIndex", {"page_locations": pages})


def boundary_order(pages: Sequence[IndexedPage], key: Callable[[bytes], Any]) -> int:
    """The order of the pages' bounds; pages with nulls only don't count.

    Args:
        pages: the data pages.
        key: a bound's key that compares in the column's order.
    """
    bounds = [(key(page.low), key(page.high)) for page in pages if page.low is not None and page.high is not None]
    steps = list(pairwise(bounds))
    if all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in steps):
        return ASCENDING
    if all(low >= next_low and high >= next_high for (low, high), (next_low, next_high) in steps):
        return _DESCENDING
    return UNORDERED
