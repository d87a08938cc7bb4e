"""Checks the whole footer before filters are added to a file: metadata of other columns can conflict with them.

New filters are written where the footer was. If a chunk or a filter of another column claims bytes there, a reader
would read the new filters in its place. `validate` also refuses files with unreadable metadata. Filters are therefore
added only if `validate` can read the metadata of every column chunk and nothing claims bytes after the data. Faults
within the data (overlapping pages, a damaged page, a filter that lacks values) don't prevent adding: they remain.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from bloomcli import limits
from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.formats.parquet.spec import Location
from bloomcli.formats.parquet.variants import parse_header
from bloomcli.hints import removing
from bloomcli.storage.base import Source
from bloomcli.words import counted

_HINT: Final = "the file is damaged; get it from its source again"


def refuse_damaged_footer(source: Source, footer: Footer, removed: AbstractSet[ChunkKey]) -> None:
    """Raise CorruptFile if filters can't be added to the file.

    Raises UnsupportedError for a chunk whose data is in another file. The change removes the filters of the chunks
    in `removed`.
    """
    for index in range(footer.row_group_count):
        chunks = footer.row_group(index).chunks
        if len(chunks) != len(footer.columns):
            raise footer.location.fault(
                f"row group {index} has {counted(len(chunks), 'column chunk')}, the schema has "
                f"{len(footer.columns)} leaves",
                0,
                f"row_groups[{index}].columns",
            )
        for ordinal, start in enumerate(chunks):
            _look_at(source, footer, ChunkKey(index, ordinal, start), removed)


def _look_at(source: Source, footer: Footer, key: ChunkKey, removed: AbstractSet[ChunkKey]) -> None:
    found = footer.metadata(key)
    pages, claim = footer.extents(key, found)
    footer.index_extents(key, found)
    if pages is not None and pages.stop > footer.start:
        meta = footer.meta_struct(key)
        raise CorruptFile(
            f"the metadata locate the pages of column {footer.columns[key.column].path} in row group {key.row_group} "
            f"at {pages.start} to {pages.stop}, outside the file's data, which end at {footer.start}, where new "
            "filters go",
            path=footer.path,
            offset=meta.location.base + meta.start,
            field=f"{meta.location.field}.total_compressed_size",
            hint=_HINT,
        )
    if found.bloom_filter_offset is not None or found.bloom_filter_length is not None:
        footer.chunk(key, found)  # raises the errors that `validate` reports
    if claim is not None and key not in removed:
        _refuse_filter(source, footer, key, *claim)


def _refuse_filter(source: Source, footer: Footer, key: ChunkKey, offset: int, length: int | None) -> None:
    """Raise CorruptFile if a filter that stays in the file claims bytes after the data."""
    size = _size(source, footer, offset) if length is None else length
    if offset < footer.start and size <= footer.start - offset:
        return
    name = footer.columns[key.column].path
    to = f" to {offset + size}" if size else ""
    raise CorruptFile(
        f"the metadata locate a filter of column {name} in row group {key.row_group} at {offset}{to}, outside the "
        f"file's data, which end at {footer.start}, where new filters go: readers would take these for its bits",
        path=footer.path,
        offset=offset,
        field=f"row_groups[{key.row_group}].columns[{key.column}].meta_data.bloom_filter_offset",
        hint=f"{removing(name)} takes it out",
    )


def _size(source: Source, footer: Footer, offset: int) -> int:
    """The length of a filter, from its header; 0 if it can't extend beyond the data."""
    room = footer.start - offset
    if room <= 0 or room >= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
        return 0  # no filter is so large
    data = source.read_at(offset, min(parquet_limits.FILTER_HEADER_MAX_BYTES, room))
    try:
        header = parse_header(data, Location(footer.path, offset, ""))
    except CorruptFile:
        # a header that the footer cuts off would continue in the new filters
        return 0 if len(data) == parquet_limits.FILTER_HEADER_MAX_BYTES else room + 1
    return header.header_bytes + max(header.num_bytes, 0)
