"""Lists the byte ranges of the file that hold pages, filters and page indexes, according to the footer.

`validate` looks for ranges that overlap or lie outside the file. The splice looks for the part of the file's end that
has only filters and page indexes, because only these can move: their offsets are only in the footer, while a page's
offset is also in the page indexes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import ChunkKey, Footer

PAGES: Final = "pages"
FILTER: Final = "filter"
COLUMN_INDEX: Final = "column index"
OFFSET_INDEX: Final = "offset index"

OFFSET_FIELDS: Final = {COLUMN_INDEX: "column_index_offset", OFFSET_INDEX: "offset_index_offset"}
_REGIONS: Final = {field: kind for kind, field in OFFSET_FIELDS.items()}


class Region(NamedTuple):
    """One claim: bytes [start, end) hold `kind` of the chunk at `key`."""

    start: int
    end: int
    kind: str
    key: ChunkKey


def regions(footer: Footer, unwritten: Callable[[ChunkKey], int | None]) -> list[Region]:
    """All claims, ordered by start. `unwritten` returns a filter's size if the metadata have none.

    A filter whose size isn't known at all is left out.
    """
    found: list[Region] = []
    for key in footer.chunk_keys():
        chunk = footer.metadata(key)
        pages, claim = footer.extents(key, chunk)
        if pages is not None:
            found.append(Region(pages.start, pages.stop, PAGES, key))
        if claim is not None:
            start, length = claim
            size = unwritten(key) if length is None else length
            if size is not None and size > 0:
                found.append(Region(start, start + size, FILTER, key))
        for field, offset, length in footer.index_extents(key, chunk):
            found.append(Region(offset, offset + length, _REGIONS[field], key))
    return sorted(found)


def movable_start(claims: list[Region], end: int) -> int:
    """Return the start of the contiguous filters and page indexes that end at `end`, the footer's start.

    They begin after the last unclaimed bytes, whose content is unknown, so that they must not move.
    """
    start = end
    pages_end = max((r.end for r in claims if r.kind == PAGES), default=len(spec.MAGIC))
    for region in sorted((r for r in claims if r.kind != PAGES), key=lambda r: r.end, reverse=True):
        if region.end == start and region.start >= pages_end:
            start = region.start
        elif region.end > start and region.start < start:
            break  # claims overlap: these bytes can belong to others too
    return start
