"""Plans the reads of a row group in a store, where each read is a request.

A request takes as long as the transfer of `Source.request_bytes`. Chunks with at most that many bytes in total are
read whole, in one request, without their page indexes. For larger chunks, the page indexes determine the pages that
are
read: those of the searched column and, with them, the pages of the selected columns with the same rows. If the latter
have more bytes than a request costs, they are read when the matching rows are known. If an index has the file's end,
they are read in one request, with the gaps between them, if that costs less than consecutive requests for each and
has at most `Source.part_bytes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from bloomcli.formats.column_search import Candidates
from bloomcli.formats.parquet import page_index
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.page_index import HasWithin, PagePlace, Selection
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Range, united


class RequestPlan:
    """The reads of an open file's row groups. For files that aren't read by requests it announces nothing.

    Args:
        filters: the filters of the file.

    Attributes:
        sparing: an index has the file's end. Before rows are found, only the searched column is requested, unless
        more
            takes no further request; the record is requested at once. A filter's false positive then takes one
            request, and a hit takes two.
    """

    sparing = False

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self._source = filters.source
        self._whole: set[int] = set()
        self._selected: tuple[ChunkKey, Selection | None] | None = None
        """The last chunk, and its pages that may have a value."""

    def whole(self, row_group: int) -> bool:
        """Whether the row group's chunks are read whole, without their page indexes."""
        return row_group in self._whole

    def select(self, key: ChunkKey, chunk: ColumnChunk, has_within: HasWithin | None) -> Selection | None:
        """`page_index.select` for the searched column. The result is kept, because pages are first announced and
        then read."""
        if self.whole(key.row_group):
            return None
        if self._selected is None or self._selected[0] != key:
            self._selected = key, page_index.select(self._source, self._filters.footer, key, chunk, has_within)
        return self._selected[1]

    def prepare(
        self,
        column: int,
        candidates: Candidates,
        has_within: HasWithin | None,
        chosen: set[int],
        paged: Collection[int],
    ) -> None:
        """Announce the reads of a row group.

        Args:
            column: the searched column.
            candidates: the values that the row group may have.
            has_within: as for `page_index.select`.
            chosen: the columns of the records.
            paged: the columns of which only some pages are read.
        """
        if not self._source.request_bytes:
            return
        found = {
            key.column: (key, self._filters.footer.chunk(key))
            for key in self._filters.footer.chunk_keys_in(candidates.row_group, chosen | {column})
        }
        every = [_extent(chunk) for _, chunk in found.values()]
        indexes = [
            extent
            for ordinal, (key, _) in found.items()
            for extent in page_index.ranges(
                self._filters.footer,
                key,
                page_index.OFFSET_INDEX,
                *((page_index.COLUMN_INDEX,) if ordinal == column else ()),
            )
        ]
        there = not self._source.estimate(indexes).requests
        if not indexes or (not there and self._bytes(every) <= self._source.request_bytes):
            self._whole.add(candidates.row_group)
            own = [_extent(found[column][1])]
            self._source.will_read(every if self._worth(every, own) else own)
            return
        self._source.will_read(indexes)
        own, rows = self._own(*found[column], candidates, has_within)
        others = [
            extent
            for ordinal, (key, chunk) in found.items()
            if ordinal in chosen
            for extent in self._with_rows(key, chunk, rows if ordinal in paged else None)
        ]
        together = [*own, *others]
        self._source.will_read(together if self._worth(together, own) else own)

    def will_read(
        self, whole: Iterable[ColumnChunk], paged: Iterable[tuple[ColumnChunk, Sequence[PagePlace]]]
    ) -> None:
        """Announce the reads of a row group's records: whole chunks, and pages of other chunks."""
        if self._source.request_bytes:
            ranges = [_extent(chunk) for chunk in whole]
            ranges += (extent for chunk, pages in paged for extent in _pages(chunk, pages))
            self._source.will_read(self._in_one(ranges) if self.sparing else ranges)

    def _in_one(self, ranges: Iterable[Range]) -> list[Range]:
        """Join ranges if that costs less than a request for each: the transfer of the gaps against the latencies of
        the other requests."""
        spans = united(ranges)
        whole = sum(spans[-1]) - spans[0][0] if spans else 0
        gaps = whole - sum(length for _, length in spans)
        if whole > self._source.part_bytes or gaps > (len(spans) - 1) * self._source.request_bytes:
            return spans
        return [(spans[0][0], whole)] if spans else []

    @property
    def _most(self) -> int:
        """The maximum number of bytes that are read needlessly to save a request."""
        return self._source.request_bytes

    def _worth(self, together: Sequence[Range], own: Sequence[Range]) -> bool:
        """Whether to request the record with the searched column, before it is known whether rows match."""
        if self.sparing and self._source.estimate(together).requests > max(self._source.estimate(own).requests, 1):
            return False
        return self._bytes(together) - self._bytes(own) <= self._most

    def _bytes(self, ranges: Sequence[Range]) -> int:
        return self._source.estimate(ranges).bytes_downloaded

    def _own(
        self,
        key: ChunkKey,
        chunk: ColumnChunk,
        candidates: Candidates,
        has_within: HasWithin | None,
    ) -> tuple[list[Range], list[range] | None]:
        """The ranges of the searched column that are read, and the rows that may match; None for all rows."""
        selected = self.select(key, chunk, has_within) if candidates.trusted else None
        if selected is None:
            return [_extent(chunk)], None
        rows = [range(page.first_row, page.first_row + page.rows) for page in selected.pages]
        return list(_pages(chunk, selected.pages)), rows

    def _with_rows(self, key: ChunkKey, chunk: ColumnChunk, rows: list[range] | None) -> Iterable[Range]:
        """The ranges of a selected column's chunk that are read for rows (None: the whole chunk)."""
        pages = None if rows is None else page_index.pages_of(self._source, self._filters.footer, key, chunk)
        if pages is None or rows is None:
            return [_extent(chunk)]
        some = page_index.with_ranges(pages, rows)
        return _pages(chunk, some) if page_index.worth(some, chunk) else [_extent(chunk)]


def _extent(chunk: ColumnChunk) -> Range:
    return chunk.data_offset, chunk.compressed_bytes


def _pages(chunk: ColumnChunk, pages: Sequence[PagePlace]) -> Iterator[Range]:
    """Yield the dictionary page and the data pages; nothing without data pages."""
    if (extent := page_index.dictionary_extent(chunk, pages)) is not None:
        yield extent
    for page in pages:
        yield page.offset, page.length
