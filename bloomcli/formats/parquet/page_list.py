"""Lists the page headers of a column, and the entries of its column index and offset index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from bloomcli import kernels
from bloomcli.errors import BloomError, CorruptFile
from bloomcli.formats.answer import ENCRYPTED
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, PageHeader
from bloomcli.formats.parquet.statistics import PageBounds
from bloomcli.formats.parquet.thrift_tree import decode
from bloomcli.model.file import Column, ColumnChunk, IndexEntry, PageFacts
from bloomcli.values.literals import decode_bound, render
from bloomcli.words import plural

_STRUCTS: Final = {"column_index": "ColumnIndex", "offset_index": "OffsetIndex"}
_ELEMENTS: Final = {
    "null_pages": bool,
    "page_locations": dict,
    "null_counts": int,
    "min_values": dict,
    "max_values": dict,
}
"""The types of the decoded elements of lists in the two structures."""


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
    filters.source.will_read(_index_ranges(filters, column, ("offset_index",)))
    for key in filters.footer.chunk_keys({column}):
        chunk = filters.footer.chunk(key)
        if chunk.encrypted:
            continue
        try:
            tree, _ = _read(filters, "offset_index", _extents(filters, key), key)
        except CorruptFile:  # listing the index reports it
            tree = {}
        locations = tree.get("page_locations")
        if locations:
            yield chunk.data_offset, HEADER_WINDOW  # a dictionary page isn't in the index
            for location in locations:
                offset = location.get("offset")
                if offset is not None:
                    yield offset, HEADER_WINDOW
        else:
            yield chunk.data_offset, chunk.compressed_bytes


def _index_ranges(filters: Filters, column: int, names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of these indexes of the column's chunks that are read."""
    for key in filters.footer.chunk_keys({column}):
        try:
            found = {} if filters.footer.metadata(key).encrypted else _extents(filters, key)
        except CorruptFile:  # reading the index reports it
            continue
        for name in names:
            offset, length = found.get(name, (0, 0))
            if length <= parquet_limits.INDEX_MAX_BYTES:
                yield offset, length


def _extents(filters: Filters, key: ChunkKey) -> dict[str, tuple[int, int]]:
    """The offset and length of a chunk's indexes, by name. Raises CorruptFile."""
    found = filters.footer.index_extents(key, filters.footer.metadata(key))
    return {field.removesuffix("_offset"): (offset, length) for field, offset, length in found}


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


def index(filters: Filters, column: int) -> Iterator[IndexEntry]:
    """Yield the entries of the column's indexes by row group. A bad index is reported as a row with a problem."""
    footer = filters.footer
    listed = 0
    filters.source.will_read(_index_ranges(filters, column, _STRUCTS))
    for key in footer.chunk_keys({column}):
        try:
            for entry in _entries(filters, key, footer.columns[column]):
                if listed == parquet_limits.PAGES_LISTED_MAX:
                    reason = f"not listed: entries after the first {listed:,}"
                    yield IndexEntry(row_group=key.row_group, problem=reason)
                    return
                listed += 1
                yield entry
        except BloomError as error:
            yield IndexEntry(row_group=key.row_group, problem=error.reason)


def column_tree(filters: Filters, key: ChunkKey) -> dict[str, Any]:
    """A chunk's decoded column index; empty if it has none or it can't be read. Raises CorruptFile."""
    return _read(filters, "column_index", _extents(filters, key), key)[0]


def page_bounds(filters: Filters, chunk: ColumnChunk, rows: Sequence[int], index: dict[str, Any]) -> PageBounds:
    """The facts of a chunk's decoded column index about its pages, which have these numbers of rows."""
    footer = filters.footer
    trust = footer.trust(chunk.column)
    return PageBounds(index, rows, chunk, ordered=trust.ordered and trust.page_bounds)


def page_locations(filters: Filters, key: ChunkKey) -> Sequence[tuple[int, int, int]]:
    """The offset, length and first row of each page in a chunk's offset index, unchecked; empty if it has none or it
    can't be read. Raises CorruptFile."""
    offset, length = _extents(filters, key).get("offset_index", (0, 0))
    if not 0 < length <= parquet_limits.INDEX_MAX_BYTES:
        return ()
    return kernels.page_locations(filters.source.read_at(offset, length), parquet_limits.THRIFT_MAX_DEPTH) or ()


def index_extents(filters: Filters, key: ChunkKey, *, bounds: bool) -> list[tuple[int, int]]:
    """The ranges of a chunk's indexes that are read: the offset index and, with `bounds`, the column index; none if
    the metadata are damaged."""
    try:
        extents = _extents(filters, key)
    except BloomError:
        return []
    found = (extent for name, extent in extents.items() if bounds or name == "offset_index")
    return [(offset, length) for offset, length in found if length <= parquet_limits.INDEX_MAX_BYTES]


def _entries(filters: Filters, key: ChunkKey, column: Column) -> Iterator[IndexEntry]:
    footer = filters.footer
    metadata = footer.metadata(key)
    if metadata.encrypted:
        yield IndexEntry(row_group=key.row_group, problem=ENCRYPTED)
        return
    found = _extents(filters, key)
    columns, column_fault = _read(filters, "column_index", found, key)
    offsets, offset_fault = _read(filters, "offset_index", found, key)
    for problem in filter(None, (column_fault, offset_fault)):
        yield IndexEntry(row_group=key.row_group, problem=problem)
    locations = offsets.get("page_locations", [])
    nulls = columns.get("null_pages", [])
    if columns and offsets and len(locations) != len(nulls):
        reason = f"the column index has {plural(len(nulls), 'page')}, the offset index {len(locations):,}"
        yield IndexEntry(row_group=key.row_group, problem=reason)
        return
    unused = _contradiction(filters, footer.chunk(key, metadata), locations, columns) if columns and offsets else None
    if unused is not None:
        yield IndexEntry(row_group=key.row_group, problem=f"the column index isn't used: {unused}")
    ordered = footer.trust(column).ordered
    for page in range(max(len(locations), len(nulls))):
        location = locations[page] if page < len(locations) else {}
        yield IndexEntry(
            row_group=key.row_group,
            page=page,
            offset=location.get("offset"),
            compressed_bytes=location.get("compressed_page_size"),
            first_row=location.get("first_row_index"),
            nulls=_at(columns.get("null_counts"), page),
            only_nulls=_at(nulls, page),
            min=_bound(columns.get("min_values"), page, nulls, column) if ordered else None,
            max=_bound(columns.get("max_values"), page, nulls, column) if ordered else None,
            boundary_order=columns.get("boundary_order"),
        )


def _contradiction(
    filters: Filters, chunk: ColumnChunk, locations: Sequence[dict[str, Any]], index: dict[str, Any]
) -> str | None:
    """Why a column index isn't used; None if it is, or if the offset index has no rows."""
    firsts = [first for location in locations if isinstance(first := location.get("first_row_index"), int)]
    if len(firsts) < len(locations):
        return None
    ends = [*firsts[1:], filters.footer.row_group(chunk.row_group).rows]
    rows = [end - first for first, end in zip(firsts, ends, strict=True)]
    return page_bounds(filters, chunk, rows, index).problem


def _read(
    filters: Filters, name: str, found: dict[str, tuple[int, int]], key: ChunkKey
) -> tuple[dict[str, Any], str | None]:
    """(decoded index, None), empty without an index; or ({}, why it can't be read)."""
    extent = found.get(name)
    if extent is None:
        return {}, None

    offset, length = extent
    words = name.replace("_", " ")
    if length > parquet_limits.INDEX_MAX_BYTES:
        return {}, f"the {words} has {plural(length, 'byte')}; at most {parquet_limits.INDEX_MAX_BYTES:,} are read"
    location = spec.Location(filters.source.path, offset, f"row_groups[{key.row_group}].columns[{key.column}].{name}")
    try:
        tree: dict[str, Any] = decode(_STRUCTS[name], filters.source.read_at(offset, length), location)
    except BloomError as error:
        return {}, f"the {words} can't be read: {error.reason}"
    wanted = "null_pages" if name == "column_index" else "page_locations"
    if not isinstance(tree.get(wanted), list):
        return {}, f"the {words} can't be read: it has no {wanted}"
    for field, kind in _ELEMENTS.items():
        if not all(type(element) is kind for element in tree.get(field, ())):
            return {}, f"the {words} can't be read: {field} has elements of another type"
    return tree, None


def _at(values: Any, page: int) -> Any:
    return values[page] if isinstance(values, list) and page < len(values) else None


def _bound(values: Any, page: int, nulls: list[Any], column: Column) -> str | None:
    """A page's bound as text; None for pages of nulls, and for bytes that can't be compared."""
    found = _at(values, page)
    if found is None or "hex" not in found or _at(nulls, page) is True:
        return None
    encoded = bytes.fromhex(found["hex"])
    return None if decode_bound(encoded, column) is None else render(encoded, column)
