"""Repairs a Parquet file: wrong statistics and page indexes are mended, or missing ones are added.

    original:     body                                   | footer  | length | PAR1
    with repair:  body | column indexes | offset indexes | footer' | length | PAR1

They are made from a chunk's measured values or, of an offset index, from the page headers and in repeated columns the
repetition levels. What has no right value isn't made, with the reason: the format has no bounds for a page with NaN
alone, and no offset index for pages that begin within a row. Readers skip pages only where all columns that they read
have an offset index, so every column gets one.

To mend, the columns are read when the change is planned, because only their values show what is wrong. To add, they
are read while the body is copied, unless nothing but structures without a right value may be missing: then only the
values show whether there is anything to write.

Source: the Apache Parquet format, PageIndex.md; parquet.thrift, Statistics, ColumnIndex and ColumnOrder.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import MeasuredColumn, Repair, Tick, of_columns
from bloomcli.formats.filters_in_flight import BuildQueue, Job
from bloomcli.formats.parquet import page_index, splice
from bloomcli.formats.parquet.bloom_filter import Filters, unreadable
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX, Footer, extension_remarks
from bloomcli.formats.parquet.measured import Measure, MeasuredPage, lookup_bytes, measured, order_of
from bloomcli.formats.parquet.page_index import IndexedPage, boundary_order
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, chunk_range, data_pages
from bloomcli.formats.parquet.plan import Change, decoding_bytes, key_missing, refuse_signed, slices
from bloomcli.formats.parquet.proof import (
    ENCODINGS,
    ROWS,
    SIZES,
    SORTING,
    STATISTICS,
    TOTAL_ORDER,
    faults,
    key_of,
    measure_of,
    names_only_dictionaries,
    sorting_columns,
)
from bloomcli.formats.parquet.spec import ENUMS, PLAIN_DICTIONARY, Struct, encodings_in
from bloomcli.formats.parquet.splice import COLUMN_ORDERS, Part, Value
from bloomcli.formats.parquet.statistics import GEOSPATIAL, geospatial_claims, has_floats, width_of
from bloomcli.kernels import ChunkMetadata
from bloomcli.model.change import PAGE_INDEX, StructureChange
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.storage.base import Pieces
from bloomcli.values.literals import kind_of
from bloomcli.values.short_bounds import BOUND_BYTES, cut_high, cut_low
from bloomcli.words import counted

STRUCTURES: Final = (STATISTICS, GEOSPATIAL, OFFSET_INDEX, COLUMN_INDEX, ENCODINGS, SIZES, SORTING, ROWS)
"""In the order in which they are made: the counts of a column index agree with those of the statistics, and its pages
with those of the offset index."""
_UNMENDED: Final = "the pages don't prove the right number, so that the file has to be written again"
_TYPE_ORDER: Final = "TYPE_ORDER"
_ZEROS: Final = {2: b"\0\0", 4: bytes(4), 8: bytes(8)}
_SIGN: Final = 0x80


class Orders:
    """The orders of the columns' bounds, which the footer states. If it states none, bounds have the type's order:
    readers ignore them, or assume this order.

    Attributes:
        added: the footer states none, and has no bounds that depend on them: then new bounds come with the orders.
    """

    def __init__(self, footer: Footer, *, adds: bool) -> None:
        self._footer = footer
        self._absent = footer.top.span("column_orders") is None
        self.added = adds and self._absent and not any(map(_depends, _chunks(footer)))

    def of(self, column: Column) -> str | None:
        """The name of the order of a column; None if it isn't defined."""
        return _TYPE_ORDER if self._absent else self._footer.order(column)

    def why_none(self, column: Column) -> str | None:
        """Why a column has no bounds; None if it can have some."""
        order = self.of(column)
        if column.physical == "INT96" or order_of(column, order) == kernels.NO_ORDER:
            return "its type has no defined order"
        if order not in {_TYPE_ORDER, TOTAL_ORDER}:
            return "the footer states an order of its values that isn't known here"
        return None

    def is_total(self, column: Column) -> bool:
        """Whether the column has IEEE 754's total order."""
        return self.of(column) == TOTAL_ORDER

    @property
    def type_orders(self) -> Value:
        """The type's order for each column."""
        return [{_TYPE_ORDER: {}}] * len(self._footer.columns)


def _chunks(footer: Footer) -> Iterator[ChunkMetadata]:
    return map(footer.metadata, footer.chunk_keys())


def _depends(metadata: ChunkMetadata) -> bool:
    """Whether a chunk has bounds whose meaning depends on the column's order, or may have some that are encrypted."""
    return metadata.encrypted or bool(metadata.column_index_offset) or metadata.bounds(True, False) != (None, None)


def stored(metadata: ChunkMetadata) -> set[str]:
    """The page indexes that a chunk has."""
    offsets = {COLUMN_INDEX: metadata.column_index_offset, OFFSET_INDEX: metadata.offset_index_offset}
    return {kind for kind, offset in offsets.items() if offset}


def lacks_statistics(metadata: ChunkMetadata, *, bounds: bool) -> bool:
    """Whether a chunk has no null count or, if it can have `bounds`, no minimum or maximum."""
    if metadata.null_count is None:
        return True
    return bounds and metadata.null_count != metadata.num_values and None in metadata.bounds(True, False)


def rows_change(row_group: int | None, stated: int, rows: int | None) -> StructureChange:
    """The change of a number of rows, of the file if `row_group` is None. `rows`: the right one; None if it isn't
    known."""
    whose = "the footer's num_rows" if row_group is None else "num_rows"
    proven = "the pages have others" if rows is None else f"the pages have {counted(rows, 'row')}"
    return StructureChange(
        row_group=row_group,
        column=None,
        structure=ROWS,
        action="keep" if rows is None else "replace",
        problems=(f"{whose} is {stated}, and {proven}",),
        reason=_UNMENDED if rows is None else None,
    )


def change(
    chunk: ColumnChunk, structure: str, action: str, problems: tuple[str, ...] = (), **facts: Any
) -> StructureChange:
    """The change of one structure of a chunk, for reports."""
    return StructureChange(
        row_group=chunk.row_group,
        column=chunk.column.path,
        structure=structure,
        action=action,
        problems=problems,
        **facts,
    )


class _NoRightValue(Exception):
    """A structure can't be made. The text is the reason."""


_TOO_LONG: Final = "a value is too long to be compared"
_NO_NUMBER: Final = "its least or greatest value is a decimal without bytes, which readers refuse or take for 0"


class Maker:
    """Makes new structures of one chunk: those that it lacks, or those that its values contradict.

    Args:
        filters: the file's filters.
        orders: the orders of its columns.
        chunk: the chunk.
        structures: its structures that are added or judged.
        stop: ends the reading of values.

    Attributes:
        found: the chunk's metadata as they are in the footer.
        decodes: the chunk's values are read, and not only its page headers.
        changes: what was made, and what was left as it is.
        values: new fields of the chunk's metadata; None removes one.
        indexes: new page indexes by kind.
        of_column: the chunk's values, if they were read.
        rows: the rows of the chunk's pages, if they were read to mend it and are counted.
    """

    def __init__(
        self, filters: Filters, orders: Orders, chunk: ColumnChunk, structures: set[str], stop: Stop
    ) -> None:
        self._filters = filters
        self._orders = orders
        self.chunk, self.key = chunk, chunk.key
        self.metadata = filters.footer.metadata(self.key)
        self.structures = structures
        self._stop = stop
        self._column = chunk.column
        self._key_of = key_of(self._column, orders.of(self._column))
        self._lists_all = splice.cipher_of(filters.footer, self.key) is not None
        """Whether indexes have the pages without values, too: readers number a chunk's encrypted pages by them."""
        self.decodes = structures != {OFFSET_INDEX}
        self.changes: list[StructureChange] = []
        self.values: dict[str, Value | None] = {}
        self.indexes: dict[str, bytes] = {}
        self.of_column: MeasuredColumn | None = None
        self.rows: int | None = None
        self._sorted_by = 0
        """The number of sorting columns in whose order the rows are, if they aren't in that of all."""
        self._without: dict[str, str] = {}
        """The page indexes that have no right value, with the reasons."""

    @property
    def held(self) -> int:
        """Bytes of memory of what was made."""
        return sum(map(len, self.indexes.values()))

    @property
    def bytes_to_decode(self) -> int:
        """Compressed bytes of the values that are read."""
        return self.chunk.compressed_bytes if self.decodes else 0

    def doubt(self, structure: str) -> str | None:
        """Where a structure that is added has no right value, which only reading shows; None if it surely has one."""
        if structure == STATISTICS and self.metadata.null_count is None:
            return None  # the null count is added in any case
        if structure != STATISTICS and OFFSET_INDEX in self.structures and self._column.max_repetition_level:
            return "not where a page begins within a row"
        if structure == OFFSET_INDEX:
            return None  # a row begins with each value, and so with each page
        if has_floats(self._column):
            return f"not where {'all values are' if structure == STATISTICS else 'a page has no value but'} NaN"
        without_bytes = self._column.physical == "BYTE_ARRAY" and kind_of(self._column) == "DECIMAL"
        return "not where the least or greatest value has no bytes" if without_bytes else None

    def run(self, *, adds: bool) -> Maker:
        """Make the structures, without keeping what was measured. Raises CorruptFile, UnsupportedError; Stopped soon
        after `stop` is set."""
        if adds:
            for structure in STRUCTURES:
                if structure in self.structures:
                    self._make(structure, "add")
        else:
            self._mend()
        if self.decodes:
            self.of_column = self.measured.of_column()
            del self.measured
        return self

    @cached_property
    def measured(self) -> Measure:
        """The chunk, measured."""
        return self._measured(self.chunk)

    def _measured(self, chunk: ColumnChunk) -> Measure:
        return measured(self._filters, chunk, measure_of(self._filters.footer, chunk), self._stop)

    def _count(self) -> None:
        """Set a wrong `num_values` right. The pages prove the right one if they fill the chunk and have together the
        rows of the row group."""
        chunk = self.chunk
        rows = self._filters.footer.row_group(chunk.row_group).rows
        if chunk.num_values != self.metadata.num_values:  # neither rows nor pages
            self._put_count(chunk.num_values)
            return
        try:
            measure = self.measured
        except CorruptFile:  # perhaps of a page that isn't the chunk's
            counted_here = values_in(self._filters, chunk, self._stop)
            if counted_here in {None, chunk.num_values}:
                raise
        else:
            if measure.values == chunk.num_values and measure.rows in {None, rows}:
                return
            counted_here = values_in(self._filters, chunk, self._stop)
        if counted_here is None or counted_here == chunk.num_values:
            return
        right = replace(chunk, num_values=counted_here)
        measure = self._measured(right)
        if (measure.values, measure.rows) != (counted_here, rows):
            return
        self.chunk = right
        self.measured = measure
        self._put_count(counted_here)

    def _put_count(self, right: int) -> None:
        self.values["num_values"] = right
        problem = f"num_values is {self.metadata.num_values}, and the pages have {counted(right, 'value')}"
        self.changes.append(change(self.chunk, ROWS, "replace", (problem,)))

    def _mend(self) -> None:
        """Make new structures in place of those that the values contradict."""
        self._count()
        self.rows = self.measured.rows
        wrong: dict[str, list[str]] = {}
        for fault in faults(self._filters, self.chunk, self.measured, self._stop):
            if fault.is_open:
                continue
            wrong.setdefault(fault.structure, []).append(fault.message)
            self._sorted_by = max(self._sorted_by, fault.proven)
        if OFFSET_INDEX in wrong and COLUMN_INDEX in stored(self.metadata):
            wrong.setdefault(COLUMN_INDEX, ["its pages are those of the offset index"])
        if self.measured.values == self.chunk.num_values:
            wrong.pop(ROWS, None)  # the numbers of rows of all columns decide
        for structure in STRUCTURES:
            if structure in wrong:
                self._make(structure, "replace", tuple(wrong[structure]))

    def _make(self, structure: str, action: str, problems: tuple[str, ...] = ()) -> None:
        """Make a structure. What has no right value isn't added, or is taken out if it is wrong (has `problems`)."""
        if structure not in {COLUMN_INDEX, OFFSET_INDEX}:
            self._make_fields(structure, action, problems)
            return
        try:
            data, sizes, read = self._offset_index() if structure == OFFSET_INDEX else self._column_index()
        except _NoRightValue as why:
            action = "remove" if problems else "keep"
            self._without[structure] = str(why)
            self.changes.append(change(self.chunk, structure, action, problems, reason=str(why)))
            return
        self.indexes[structure] = data
        facts = {"bytes": len(data), "pages": len(sizes), "page_bytes": sum(sizes), "lookup_bytes": read}
        self.changes.append(change(self.chunk, structure, action, problems, **facts))

    def _make_fields(self, structure: str, action: str, problems: tuple[str, ...]) -> None:
        reason: str | None = None
        if structure == STATISTICS:
            reason = self._put_statistics(mends=bool(problems))
            action = action if self.values else "keep"
            reason = f"no bounds: {reason}" if reason is not None and action != "keep" else reason
        elif structure == GEOSPATIAL:
            claimed = geospatial_claims(self._filters.footer.meta_struct(self.key), self._column)
            if claimed is not None and self.measured.shapes is not None:
                self.values[GEOSPATIAL], reason = claimed.mended(self.measured.shapes)
            action = "remove" if self.values[GEOSPATIAL] is None else action
        elif structure == ENCODINGS:  # readers that find none look at all encodings of the chunk
            encodings = {page.encoding for page in self.measured.pages}
            bits = self.metadata.encodings
            bits |= sum(1 << number for name, number in ENUMS["Encoding"].items() if name in encodings)
            if names_only_dictionaries(bits):
                bits ^= PLAIN_DICTIONARY
            self.values |= {ENCODINGS: None, "encodings": encodings_in(bits)}
        elif structure == ROWS:
            action, reason = "keep", _UNMENDED
        elif structure == SORTING and self._sorted_by:
            by = sorting_columns(self._filters.footer, self.key.row_group)[: self._sorted_by]
            self.values[SORTING] = [sorting.encoded for sorting in by]
        else:
            action, self.values[structure] = "remove", None
        self.changes.append(change(self.chunk, structure, action, problems, reason=reason))

    def _put_statistics(self, *, mends: bool) -> str | None:
        """Set the fields of the statistics that are missing, or all of them if this `mends` the statistics. Returns
        why there are no bounds; None if there are some."""
        measure, metadata, column = self.measured, self.metadata, self._column
        fields: dict[str, Value | None] = {}
        if mends or metadata.null_count is None:
            fields["null_count"] = measure.nulls
        reason = self._why_no_bounds([measure], "its values are all NaN")
        if mends or (reason is None and None in metadata.bounds(True, False)):
            for name, bound, cut in (("min", measure.low, cut_low), ("max", measure.high, cut_high)):
                whole = None if reason is not None else bound
                short = None if whole is None else self._shown(whole, cut)
                fields[f"{name}_value"] = short
                fields[f"is_{name}_value_exact"] = None if short is None else short == whole
        if has_floats(column) and (mends or (fields and self._orders.is_total(column))):
            fields["nan_count"] = measure.nans
        if mends:  # the old bounds have another order for some types, and readers don't need them
            fields |= {"min": None, "max": None, "distinct_count": measure.distinct}
        self.values |= {f"{STATISTICS}.{name}": value for name, value in fields.items()}
        return reason

    def _offset_index(self) -> tuple[bytes, Sequence[int], None]:
        """The offset index, the sizes of its pages, and None. Raises _NoRightValue."""
        if self.decodes:
            rows = self.measured.rows if all(page.begins for page in self.measured.pages) else None
            pages = [*map(_place, self._full())]
        else:
            try:
                places, rows = page_index.pages_in(
                    self._filters.source, self.chunk, self._stop, empty=self._lists_all
                )
                pages = [(page.offset, page.length, page.first_row) for page in places]
            except (CorruptFile, UnsupportedError) as error:
                raise _NoRightValue(error.reason) from None
        if rows is None:
            raise _NoRightValue("a page begins within a row, and the format has no offset index for such pages")
        wanted = self._filters.footer.row_group(self.chunk.row_group).rows
        if rows != wanted:
            raise _NoRightValue(f"its pages have {counted(rows, 'row')}, and the row group {wanted}")
        return page_index.encoded_offset_index(pages), [size for _, size, _ in pages], None

    def _column_index(self) -> tuple[bytes, Sequence[int], int]:
        """The column index, the sizes of its pages, and the mean bytes of those that a lookup reads. Raises
        _NoRightValue."""
        only_nan = "a page has no value but NaN, for which the format has no bounds"
        reason = self._why_no_bounds(self.measured.pages, only_nan)
        if reason is not None:
            raise _NoRightValue(reason)
        pages = self._listed()
        indexed = self._indexed(pages)
        data = page_index.encoded_column_index(indexed, boundary_order(indexed, self._key_of))
        return (
            data,
            [page.size for page in pages],
            lookup_bytes(
                (self._key_of(page.low), self._key_of(page.high), place.size)
                for page, place in zip(indexed, pages, strict=True)
                if page.low is not None and page.high is not None
            ),
        )

    def _why_no_bounds(self, parts: Sequence[Measure | MeasuredPage], only_nan: str) -> str | None:
        """Why some of these parts of the chunk can't have bounds; None if all can. `only_nan`: the reason if one has
        no other values than NaN."""
        reason = self._orders.why_none(self._column) or (_TOO_LONG if self.measured.unknown else None)
        if reason is None and any(part.low is None and part.nulls < part.values for part in parts):
            reason = only_nan
        bounds = (bound for part in parts for bound in (part.low, part.high))
        if reason is None and any(bound is not None and self._key_of(bound) is None for bound in bounds):
            reason = _NO_NUMBER  # a bound isn't a value of the column's type
        return reason

    def _full(self) -> Sequence[MeasuredPage]:
        """The pages that a new offset index has."""
        return [page for page in self.measured.pages if page.values or self._lists_all]

    def _listed(self) -> Sequence[MeasuredPage]:
        """The pages that the offset index has, the new one or the stored one. Raises _NoRightValue."""
        full = self._full()
        if OFFSET_INDEX in self.indexes:
            return full
        if OFFSET_INDEX in self._without:
            raise _NoRightValue(self._without[OFFSET_INDEX])
        index = page_index.offset_index(self._filters.source, self._filters.footer, self.key)
        listed = [] if index is None else index.page_locations
        for pages in (full, self.measured.pages):
            if list(map(_place, pages)) == listed:
                return pages
        raise _NoRightValue("the offset index has other pages")

    def _indexed(self, pages: Sequence[MeasuredPage]) -> Sequence[IndexedPage]:
        """The pages' facts as the column index has them."""
        total = self._orders.is_total(self._column) and has_floats(self._column)
        # writers count the entries of empty lists as nulls or don't: two counts that differ contradict each other
        agree = self.metadata.null_count in {None, self.measured.nulls} or f"{STATISTICS}.null_count" in self.values
        return [
            IndexedPage(
                None if page.low is None else self._shown(page.low, cut_low),
                None if page.high is None else self._shown(page.high, cut_high),
                nulls=page.nulls if agree else None,
                nans=page.nans if total else None,
            )
            for page in pages
        ]

    def _shown(self, bound: bytes, cut: Callable[[bytes], bytes]) -> bytes:
        """A bound as it is written: a long one is cut, and a zero has the sign that leaves no zero out."""
        column = self._column
        if has_floats(column):
            zero = _ZEROS[len(bound)]
            negative = zero[:-1] + bytes([_SIGN])
            if bound in {zero, negative}:
                return negative if cut is cut_low else zero
        return cut(bound) if column.physical == "BYTE_ARRAY" and kind_of(column) != "DECIMAL" else bound


def _place(page: MeasuredPage) -> tuple[int, int, int]:
    """A page as an offset index has it: its offset, its bytes with the header, and its first row."""
    return page.offset, page.size, page.first_row or 0


def page_reads(filters: Filters, column: Column, row_group: int, stop: Stop) -> tuple[int, int] | None:
    """The bytes of a column's pages in a row group, which a lookup reads today, and the mean bytes of those that it
    would read with the page index that is added. None where there is a column index, or none can be made."""
    key, orders = ChunkKey(row_group, column.index), Orders(filters.footer, adds=False)
    chunk = filters.footer.chunk(key)
    missing = {OFFSET_INDEX, COLUMN_INDEX} - stored(filters.footer.metadata(key))
    if chunk.encrypted or COLUMN_INDEX not in missing or orders.why_none(column) is not None:
        return None
    made = Maker(filters, orders, chunk, missing, stop).run(adds=True).changes
    bytes_of = ((index.page_bytes, index.lookup_bytes) for index in made if index.structure == COLUMN_INDEX)
    return next(((whole, looked_up) for whole, looked_up in bytes_of if whole and looked_up), None)


def values_in(filters: Filters, chunk: ColumnChunk, stop: Stop) -> int | None:
    """The number of values of the pages that fill a chunk, by their headers; None if they don't fill it."""
    try:
        some = replace(chunk, num_values=max(chunk.num_values, 1))  # where the chunk lies is checked only then
        reader = ChunkReader(filters.source, some, HEADER_WINDOW, stop)
        return sum(page.header.num_values for page in data_pages(reader, counted_here=True))
    except CorruptFile:
        return None


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
        self._planned = not repair.add or all(all(map(maker.doubt, maker.structures)) for maker in self._work)
        """Whether the structures are made already."""
        if self._planned:
            filters.source.will_read(map(chunk_range, (maker.chunk for maker in self._work)))
            deque(self._make_all(repair.threads, lambda _: None, ()), 0)
            self.measured = of_columns(maker.of_column for maker in self._work if maker.of_column is not None)
            if not repair.add:
                self._mend_rows()
        changes = [(maker.key, structure_change) for maker in self._work for structure_change in maker.changes]
        gone = {
            Part(structure_change.structure, key)
            for key, structure_change in changes
            if structure_change.structure in _INDEXES and structure_change.problems
        }
        super().__init__(filters, set(), puts=bool(self._work), appends=appends, indexes=gone)
        if self._work:
            self.remarks = extension_remarks(filters.footer, "page indexes")
        self.planned = ()
        self.bytes_to_decode = sum(maker.bytes_to_decode for maker in self._work)  # to mend, they were read already

    def _choose(self) -> Iterator[Maker]:
        """Yield the chunks in which something is added or judged. Raises CorruptFile, UnsupportedError."""
        footer = self.filters.footer
        for key in footer.chunk_keys():
            metadata = footer.metadata(key)
            chunk = footer.chunk(key, metadata)
            empty = not footer.row_group(key.row_group).rows or not (chunk.num_values or chunk.encrypted)
            if self._add and empty:
                continue
            chosen = self._columns is None or key.column in self._columns
            structures = set(STRUCTURES) if chosen else set()
            if self._add:
                structures = self._missing(chunk, metadata, chosen=chosen)
            structures = self._readable(chunk, metadata, structures)
            if structures:
                yield Maker(self.filters, self._orders, chunk, structures, self._stop)

    def _mend_rows(self) -> None:
        """Set the numbers of rows right that the pages prove: of a row group, those of all its columns; of the file,
        those of all row groups."""
        footer = self.filters.footer
        by_group: dict[int, list[Maker]] = {}
        for maker in self._work:
            by_group.setdefault(maker.key.row_group, []).append(maker)
        total: int | None = 0
        for group in range(footer.row_group_count):
            stated, parts = footer.row_group(group).rows, by_group.get(group, [])
            rows = self._rows_of(group, stated, parts)
            if rows != stated and any(maker.rows not in {None, stated} for maker in parts):
                parts[0].changes.append(rows_change(group, stated, rows))
                if rows is not None:  # next to the other field of the row group
                    to = next((maker for maker in parts if SORTING in maker.values), parts[0])
                    to.values[ROWS] = rows
            total = None if total is None or rows is None else total + rows
        stated = sum(footer.row_group(group).rows for group in range(footer.row_group_count))
        if footer.rows != (stated if total is None else total):
            self._rows = total
            self._left.append(rows_change(None, footer.rows, total))

    def _rows_of(self, group: int, stated: int, parts: list[Maker]) -> int | None:
        """The rows of a row group, if the pages of columns prove them: of the columns that were read, if the metadata
        agree, else of all columns."""
        counts = {maker.rows for maker in parts}
        if counts == {stated}:
            return stated
        if len(counts) != 1 or None in counts:
            return None
        keys = {maker.key for maker in parts}
        footer = self.filters.footer
        for chunk in footer.chunks(None, group):
            if chunk.key in keys:
                continue
            if chunk.encrypted:
                return None
            try:
                counts.add(page_index.pages_in(self.filters.source, chunk, self._stop)[1])
            except (CorruptFile, UnsupportedError):
                return None
        return counts.pop() if len(counts) == 1 else None

    def _missing(self, chunk: ColumnChunk, metadata: ChunkMetadata, *, chosen: bool) -> set[str]:
        """The structures that are added. `chosen`: the user has chosen the column."""
        column = chunk.column
        wanted: set[str] = set()
        if PAGE_INDEX in self._add:
            wanted = {OFFSET_INDEX, COLUMN_INDEX} if chosen else {OFFSET_INDEX}
            wanted -= stored(metadata)
        without_bounds = self._orders.why_none(column)
        if COLUMN_INDEX in wanted and without_bounds is not None:
            wanted.remove(COLUMN_INDEX)
            self._leave(chunk, {COLUMN_INDEX}, without_bounds)
        if chosen and STATISTICS in self._add:
            lacking = lacks_statistics(metadata, bounds=without_bounds is None)
            wanted |= {STATISTICS} if lacking else set()
        return wanted

    def _readable(self, chunk: ColumnChunk, metadata: ChunkMetadata, structures: set[str]) -> set[str]:
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
            needing if self._add else {STATISTICS, *stored(metadata)},
            reason,
        )
        return structures - needing

    def _leave(self, chunk: ColumnChunk, structures: Iterable[str], reason: str) -> None:
        self._left += [change(chunk, structure, "keep", reason=reason) for structure in sorted(structures)]

    @cached_property
    def structures(self) -> tuple[StructureChange, ...]:  # type: ignore[override]
        """The planned changes, and what is left as it is."""
        if self._planned:
            return (*(structure_change for maker in self._work for structure_change in maker.changes), *self._left)
        planned = (
            change(maker.chunk, structure, "add", reason=maker.doubt(structure))
            for maker in self._work
            for structure in STRUCTURES
            if structure in maker.structures
        )
        return (*planned, *self._left)

    @property
    def new_bytes_bound(self) -> int:  # type: ignore[override]
        """The upper bound of the new file's bytes that aren't copied, if pages have a usual size where the footer
        doesn't count them. Nothing is read for it."""
        footer = self.filters.footer
        orders = _ORDER_BYTES * len(footer.columns) if self._orders.added else 0
        fixed = self.footer_bound(len(self._work)) + orders
        if not self._planned:
            return fixed + sum(_CHUNK_BYTES + _index_bound(footer, maker) for maker in self._work)
        rows = 0 if self._rows is None else _CHUNK_BYTES
        return fixed + rows + sum(_CHUNK_BYTES + maker.held for maker in self._work if maker.changes)

    def reads(self) -> Iterator[tuple[int, int]]:
        """The chunks that are decoded, or whose page headers are read; none once they were."""
        return iter(()) if self._planned else (chunk_range(maker.chunk) for maker in self._work)

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The body, and then the page indexes; to add them, they are made while the body is copied."""
        makers = self._work
        kept = itertools.chain.from_iterable(map(slices, self.kept()))
        if self._planned:
            tick(self.bytes_to_decode)
            yield from kept
        else:
            self.filters.source.will_read(self.reads())
            yield from self._make_all(threads, tick, kept)
        for structure in _INDEXES:
            for maker in makers:
                if structure in maker.indexes:
                    yield from self.put(Part(structure, maker.key), [maker.indexes[structure]])
        self.values |= {maker.key: maker.values for maker in makers if maker.values}
        if self._orders.added and any(maker.values or COLUMN_INDEX in maker.indexes for maker in makers):
            self.values[None] = {COLUMN_ORDERS: self._orders.type_orders}
        if self._rows is not None:
            self.values[None] = {ROWS: self._rows}
        changes = (*(change for maker in makers for change in maker.changes), *self._left)
        remarks = () if self._queue is None else self._queue.remarks
        yield from self.finish((), sum(maker.bytes_to_decode for maker in makers), remarks, changes)

    def _make_all(self, threads: int, tick: Tick, pieces: Iterable[T]) -> Iterator[T]:
        """Yield some pieces while `threads` threads make the new structures."""
        jobs = (Job(decoding_bytes(maker.chunk), partial(self._make_one, maker, tick)) for maker in self._work)
        with BuildQueue(jobs, threads, lambda maker: maker.held, self._stop) as queue:
            self._queue = queue
            queue.start_jobs()
            for piece in pieces:
                yield piece
                queue.start_jobs()
            while queue:
                queue.take()
                queue.start_jobs()

    def _make_one(self, maker: Maker, tick: Tick) -> Maker:
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
    if not chunk.encrypted and maker.metadata.has_encoding_stats:
        meta = footer.meta_struct(maker.key)
        some = (Struct("PageEncodingStats", footer.raw, at, meta.location) for at in meta.list_starts(ENCODINGS)[:-1])
        pages = max(pages, min(sum(max(stats.integer("count") or 0, 0) for stats in some), chunk.num_values))
    bounds = (
        2 * (min(width_of(chunk.column) or BOUND_BYTES, BOUND_BYTES) + 2) if COLUMN_INDEX in maker.structures else 0
    )
    return pages * (_ENTRY_BYTES + bounds)
