"""Plans the repair of a Parquet file: wrong statistics and page indexes are mended, or missing ones are added.

    original:     body                                   | footer  | length | PAR1
    with repair:  body | column indexes | offset indexes | footer' | length | PAR1

A column index needs the column's values. An offset index needs page headers alone, and in repeated columns the
repetition levels. Readers skip pages only where all columns that they read have an offset index, so every column gets
one.

To mend, the columns are read when the change is planned, because only their values show what is wrong. To add, they
are read while the body is copied, unless nothing but structures without a right value may be missing: then only the
values show whether there is anything to write.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Final, TypeVar

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import Repair, Tick, of_columns
from bloomcli.formats.filters_in_flight import BuildQueue, Job
from bloomcli.formats.parquet import mended, sealing
from bloomcli.formats.parquet.bloom_filter import Filters, unreadable
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX, Footer, extension_remarks
from bloomcli.formats.parquet.mended import STRUCTURES, Maker, Orders
from bloomcli.formats.parquet.page_index import pages_in
from bloomcli.formats.parquet.pages import chunk_range
from bloomcli.formats.parquet.plan import Change, decoding_bytes, key_missing, refuse_signed, slices
from bloomcli.formats.parquet.proof import ENCODINGS, ROWS, SORTING, STATISTICS
from bloomcli.formats.parquet.spec import FOOTER_TAIL_BYTES, Struct
from bloomcli.formats.parquet.splice import COLUMN_ORDERS, Part
from bloomcli.kernels import ChunkMetadata
from bloomcli.model.change import PAGE_INDEX, StructureChange
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Pieces
from bloomcli.values.short_bounds import BOUND_BYTES

T = TypeVar("T")

_INDEXES: Final = (COLUMN_INDEX, OFFSET_INDEX)
"""In the order in which they are written."""
_ENTRY_BYTES: Final = 32
"""The maximum bytes of a page in both indexes, without its bounds."""
_ORDER_BYTES: Final = 8
"""The maximum bytes of a column's order in the footer."""
_PAGE_VALUES: Final = 1000
_PAGE_BYTES: Final = 8 << 10
"""Values and bytes of the smallest pages that writers usually make."""
_CHUNK_BYTES: Final = 256
"""The maximum bytes of a chunk's new fields in the footer, and of its indexes without pages."""


class RepairPlan(Change):
    """The plan that mends or adds statistics and page indexes."""

    def __init__(self, filters: Filters, columns: set[int] | None, repair: Repair, *, appends: bool = False) -> None:
        refuse_signed(filters.footer)
        self._stop = Stop()
        self._add = repair.add
        self._columns = columns
        self._left: list[StructureChange] = []
        """The structures that stay as they are, with reasons, and the change of the file's number of rows."""
        self._rows: int | None = None
        """The file's number of rows, if the footer's is wrong."""
        self.filters = filters
        self._orders = Orders(filters.footer, adds=bool(repair.add))
        self._work = list(self._choose())
        self._planned = not repair.add or all(maker.may_lack for maker in self._work)
        """Whether the structures are made already."""
        if self._planned:
            filters.source.will_read(map(chunk_range, (maker.chunk for maker in self._work)))
            deque(self._made(repair.threads, lambda _: None, ()), 0)
            self.measured = of_columns(made.of_column for made in self._work if made.of_column is not None)
            if not repair.add:
                self._mend_rows()
        changes = [(made.key, one) for made in self._work for one in made.changes]
        gone = {Part(one.structure, key) for key, one in changes if one.structure in _INDEXES and one.problems}
        super().__init__(filters, set(), puts=bool(self._work), appends=appends, indexes=gone)
        if self._work:
            self.remarks = extension_remarks(filters.footer, "page indexes")
        self._estimated = ()
        self.bytes_to_decode = sum(one.bytes_to_decode for one in self._work)  # to mend, they were read already

    def _choose(self) -> Iterator[Maker]:
        """Yield the chunks in which something is added or judged. Raises CorruptFile, UnsupportedError."""
        footer = self.filters.footer
        for key in footer.chunk_keys():
            found = footer.metadata(key)
            chunk = footer.chunk(key, found)
            empty = not footer.row_group(key.row_group).rows or not (chunk.num_values or chunk.encrypted)
            if self._add and empty:
                continue
            chosen = self._columns is None or key.column in self._columns
            structures = set(STRUCTURES) if chosen else set()
            if self._add:
                structures = self._missing(chunk, found, chosen=chosen)
            structures = self._readable(chunk, found, structures)
            if structures:
                yield Maker(self.filters, self._orders, chunk, structures, self._stop)

    def _mend_rows(self) -> None:
        """Set the numbers of rows right that the pages prove: of a row group, those of all its columns; of the file,
        those of all row groups."""
        footer = self.filters.footer
        by_group: dict[int, list[Maker]] = {}
        for made in self._work:
            by_group.setdefault(made.key.row_group, []).append(made)
        total: int | None = 0
        for group in range(footer.row_group_count):
            stated, parts = footer.row_group(group).rows, by_group.get(group, [])
            rows = self._rows_of(group, stated, parts)
            if rows != stated and any(made.rows not in {None, stated} for made in parts):
                parts[0].changes.append(mended.rows_change(group, stated, rows))
                if rows is not None:  # next to the other field of the row group
                    to = next((made for made in parts if SORTING in made.values), parts[0])
                    to.values[ROWS] = rows
            total = None if total is None or rows is None else total + rows
        stated = sum(footer.row_group(group).rows for group in range(footer.row_group_count))
        if footer.rows != (stated if total is None else total):
            self._rows = total
            self._left.append(mended.rows_change(None, footer.rows, total))

    def _rows_of(self, group: int, stated: int, parts: list[Maker]) -> int | None:
        """The rows of a row group, if the pages of columns prove them: of the columns that were read, if the metadata
        agree, else of all columns."""
        found = {made.rows for made in parts}
        if found == {stated}:
            return stated
        if len(found) != 1 or None in found:
            return None
        known = {made.key for made in parts}
        footer = self.filters.footer
        for key in footer.chunk_keys(None, group):
            if key in known:
                continue
            chunk = footer.chunk(key)
            if chunk.encrypted:
                return None
            try:
                found.add(pages_in(self.filters.source, chunk, footer.start, self._stop)[1])
            except (CorruptFile, UnsupportedError):
                return None
        return found.pop() if len(found) == 1 else None

    def _missing(self, chunk: ColumnChunk, found: ChunkMetadata, *, chosen: bool) -> set[str]:
        """The structures that are added. `chosen`: the user has chosen the column."""
        column = chunk.column
        wanted: set[str] = set()
        if PAGE_INDEX in self._add:
            wanted = {OFFSET_INDEX, COLUMN_INDEX} if chosen else {OFFSET_INDEX}
            wanted -= mended.stored(found)
        without_bounds = self._orders.why_none(column)
        if COLUMN_INDEX in wanted and without_bounds is not None:
            wanted.remove(COLUMN_INDEX)
            self._leave(chunk, {COLUMN_INDEX}, without_bounds)
        if chosen and STATISTICS in self._add:
            lacking = mended.lacks_statistics(found, bounds=without_bounds is None)
            wanted |= {STATISTICS} if lacking else set()
        return wanted

    def _readable(self, chunk: ColumnChunk, found: ChunkMetadata, structures: set[str]) -> set[str]:
        """The structures without those that need values that can't be read. Raises UnsupportedError for values of a
        column that was chosen by name and is encrypted."""
        column = chunk.column
        named = self._columns is not None and column.index in self._columns
        if chunk.encrypted and structures and named:
            raise key_missing(self.filters.footer, chunk)
        needing = structures - {OFFSET_INDEX} if self._add and not chunk.encrypted else structures
        reason = unreadable(self.filters.footer, column) if needing and not named else None
        if reason is None:
            return structures
        self._leave(
            chunk,
            needing if self._add else {STATISTICS, *mended.stored(found)},
            reason,
        )
        return structures - needing

    def _leave(self, chunk: ColumnChunk, structures: Iterable[str], reason: str) -> None:
        self._left += [mended.change(chunk, one, "keep", reason=reason) for one in sorted(structures)]

    @cached_property
    def structures(self) -> tuple[StructureChange, ...]:  # type: ignore[override]
        """The planned changes, and what is left as it is."""
        if self._planned:
            return (*(one for made in self._work for one in made.changes), *self._left)
        planned = ((maker.chunk, one) for maker in self._work for one in STRUCTURES if one in maker.structures)
        return (*(mended.change(chunk, one, "add") for chunk, one in planned), *self._left)

    @property
    def new_bytes_bound(self) -> int:  # type: ignore[override]
        """The upper bound of the new file's bytes that aren't copied, if pages have a usual size where the footer
        doesn't count them. Nothing is read for it."""
        footer = self.filters.footer
        fixed = (
            len(footer.raw)
            + FOOTER_TAIL_BYTES
            + (_ORDER_BYTES * footer.column_count if self._orders.added else 0)
            + sealing.overhead(footer, len(self._work))
        )
        if not self._planned:
            return fixed + sum(_CHUNK_BYTES + _index_bound(footer, maker) for maker in self._work)
        rows = 0 if self._rows is None else _CHUNK_BYTES
        return fixed + rows + sum(_CHUNK_BYTES + made.held for made in self._work if made.changes)

    def reads(self) -> Iterator[tuple[int, int]]:
        """The chunks that are decoded, or whose page headers are read; none once they were."""
        return iter(()) if self._planned else (chunk_range(maker.chunk) for maker in self._work)

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The body, and then the page indexes; to add them, they are made while the body is copied."""
        made = self._work
        kept = itertools.chain.from_iterable(map(slices, self.kept()))
        if self._planned:
            tick(self.bytes_to_decode)
            yield from kept
        else:
            self.filters.source.will_read(self.reads())
            yield from self._made(threads, tick, kept)
        for structure in _INDEXES:
            for one in made:
                if structure in one.indexes:
                    yield from self.put_index(Part(structure, one.key), one.indexes[structure])
        self.values |= {one.key: one.values for one in made if one.values}
        if self._orders.added and any(one.values or COLUMN_INDEX in one.indexes for one in made):
            self.values[None] = {COLUMN_ORDERS: self._orders.type_orders}
        if self._rows is not None:
            self.values[None] = {ROWS: self._rows}
        changes = (*(change for one in made for change in one.changes), *self._left)
        remarks = () if self._queue is None else self._queue.remarks
        yield from self.finish((), sum(one.bytes_to_decode for one in made), remarks, changes)

    def _made(self, threads: int, tick: Tick, pieces: Iterable[T]) -> Iterator[T]:
        """Yield some pieces while `threads` threads make the new structures."""
        jobs = (Job(decoding_bytes(maker.chunk), partial(self._one, maker, tick)) for maker in self._work)
        with BuildQueue(jobs, threads, lambda made: made.held, self._stop) as queue:
            self._queue = queue
            queue.start_jobs()
            for piece in pieces:
                yield piece
                queue.start_jobs()
            while queue:
                queue.take()
                queue.start_jobs()

    def _one(self, maker: Maker, tick: Tick) -> Maker:
        """Make the structures of one chunk."""
        maker.run(adds=bool(self._add))
        tick(maker.bytes_to_decode)
        return maker


def _index_bound(footer: Footer, maker: Maker) -> int:
    """The upper bound of the bytes of a chunk's new page indexes, if its pages are as many as the footer counts or as
    large as usual."""
    chunk = maker.chunk
    if not maker.structures.intersection(_INDEXES):
        return 0
    pages = 1 + max(chunk.num_values // _PAGE_VALUES, chunk.uncompressed_bytes // _PAGE_BYTES)
    if not chunk.encrypted and maker.found.has_encoding_stats:
        meta = footer.meta_struct(maker.key)
        some = (Struct("PageEncodingStats", footer.raw, at, meta.location) for at in meta.list_starts(ENCODINGS)[:-1])
        pages = max(pages, min(sum(max(one.integer("count") or 0, 0) for one in some), chunk.num_values))
    bounds = (
        2 * (min(width_of(chunk.column) or BOUND_BYTES, BOUND_BYTES) + 2) if COLUMN_INDEX in maker.structures else 0
    )
    return pages * (_ENTRY_BYTES + bounds)
