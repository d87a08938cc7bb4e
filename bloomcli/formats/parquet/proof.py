"""Compares what a column chunk's metadata say about its values with the values themselves, or with each other.

Readers skip row groups and pages by minima and maxima, null counts, the offset index, encodings and the order of
rows. A bound that is too wide loses no row, so only those that leave a value out are faults. Nothing stored is used
to skip work here.

The order of rows is lexicographic: a sorting column counts only between rows that are equal in all columns before it.
Zeros of both signs are equal, and NaN has no place in the order. Each row is compared with the one before it while a
column is measured, so that no column is decoded twice.

Source: the Apache Parquet format, parquet.thrift, PageIndex.md; parquet-java, DictionaryFilter (encodings).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import page_index, statistics
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX, Footer
from bloomcli.formats.parquet.measured import Measure, MeasuredPage, measured, order_of
from bloomcli.formats.parquet.page_index import PageBounds
from bloomcli.formats.parquet.pages import chunk_range
from bloomcli.formats.parquet.spec import I64, PLAIN_DICTIONARY, Struct, enum_name
from bloomcli.formats.parquet.statistics import GEOSPATIAL
from bloomcli.hints import MENDS, repairing
from bloomcli.kernels import Bounds, ColumnIndex, OffsetIndex
from bloomcli.model.file import ChunkKey, Column, ColumnChunk, Severity
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES
from bloomcli.storage.base import Source
from bloomcli.values.literals import decode_bound, render
from bloomcli.words import are, counted

_Index = TypeVar("_Index")

STATISTICS: Final = "statistics"
ENCODINGS: Final = "encoding_stats"
SORTING: Final = "sorting_columns"
SIZES: Final = "size_statistics"
ROWS: Final = "num_rows"

_BOUNDS: Final = "statistics-bounds"
_COUNTS: Final = "statistics-counts"
_PAGE_BOUNDS: Final = "page-index-bounds"
_PAGE_COUNTS: Final = "page-index-counts"
_LOCATIONS: Final = "page-index-locations"
_SIZES: Final = "size-statistics"
_ORDER: Final = "sorting-columns"
_NOT_COMPARED: Final = "statistics-not-checked"
"""Its fault is of no structure: nothing is known to be wrong."""

TOTAL_ORDER: Final = "IEEE_754_TOTAL_ORDER"
_INT96: Final = "INT96_TIMESTAMP_ORDER"
_ORDERS: Final = ("TYPE_ORDER", TOTAL_ORDER, _INT96)
_SIGNED: Final = ("INT32", "INT64", "FLOAT", "DOUBLE", "BOOLEAN")
"""The types of which readers use the old `min` and `max`, if the values are signed."""
_OLD_ENCODINGS: Final = PLAIN_DICTIONARY | 1 << 3 | 1 << 4
"""PLAIN_DICTIONARY, RLE and BIT_PACKED."""
_SHOWN: Final = 60
ROWS_HINT: Final = " sets it right if the pages prove the right number; else the file has to be written again"


class Fault(NamedTuple):
    """One structure of a chunk's metadata that is wrong."""

    rule: str
    structure: str
    """The structure's name above."""
    message: str
    severity: Severity
    offset: int | None = None
    """The structure's file offset."""
    proven: int = 0
    """Of `sorting_columns`: the number of columns, from the first on, in whose order the rows are."""

    @property
    def is_open(self) -> bool:
        """Whether it isn't known if the structure is wrong."""
        return self.rule == _NOT_COMPARED

    def finding(self, chunk: ColumnChunk) -> Finding:
        """The finding of `validate`."""
        return Finding(
            id=self.rule,
            severity=self.severity,
            message=self.message,
            row_group=chunk.row_group,
            column=chunk.column.path,
            offset=self.offset,
            hint=None
            if self.is_open
            else repairing(chunk.column.path, after=ROWS_HINT if self.structure == ROWS else MENDS),
        )


def faults(
    filters: Filters,
    chunk: ColumnChunk,
    measured: Measure,
    stop: Stop | None = None,
    orders: Mapping[int, Bounds] = MappingProxyType({}),
) -> list[Fault]:
    """The faults of a chunk's metadata, by its values; `orders`: the order of rows in other measured columns. Raises
    CorruptFile for statistics that can't be walked; Stopped soon after `stop` is set."""
    return list(_Proof(filters, chunk, measured, stop or Stop(), orders))


def contradictions(filters: Filters, chunk: ColumnChunk) -> list[Fault]:
    """The faults of a chunk's metadata that these show by themselves, without its values."""
    return list(_Metadata(filters, chunk).contradictions())


def measure_of(footer: Footer, chunk: ColumnChunk) -> Measure:
    """A measure of what the chunk's metadata speak about."""
    by = sorting_columns(footer, chunk.row_group)
    claimed = statistics.geospatial_claims(footer.meta_struct(chunk.key), chunk.column)
    return Measure(
        chunk,
        footer.order(chunk.column),
        tracked=any(sorting.column == chunk.column.index for sorting in by),
        distinct=footer.metadata(chunk.key).distinct_count is not None,
        shapes=None if claimed is None else claimed.shapes(),
    )


def names_only_dictionaries(encodings: int) -> bool:
    """Whether readers that find no encoding statistics conclude from a chunk's encodings, a bit for each, that all of
    its pages are dictionary-encoded: RLE and BIT_PACKED are taken for those of levels."""
    return bool(encodings & PLAIN_DICTIONARY) and not encodings & ~_OLD_ENCODINGS


def key_of(column: Column, order: str | None) -> Callable[[bytes], Any]:
    """A function that makes PLAIN bytes comparable in a column's order; it returns None for NaN, and for bytes that
    aren't a value."""
    if column.physical == "BOOLEAN":
        return lambda value: value[0] & 1 if len(value) == 1 else None
    if column.physical == "INT96":
        return _timestamp
    if order == TOTAL_ORDER and statistics.has_floats(column):
        return lambda value: _signed_zero(decode_bound(value, column))
    return lambda value: decode_bound(value, column)


def _timestamp(value: bytes) -> tuple[int, int] | None:
    if len(value) != 12:
        return None
    nanos, day = struct.unpack("<qi", value)
    return day, nanos


def _signed_zero(value: float | None) -> tuple[float, float] | None:
    return None if value is None else (value, math.copysign(1, value))


def _text(value: bytes, column: Column) -> str:
    if column.physical == "BOOLEAN":
        return "true" if value[:1] == b"\1" else "false"
    text = render(value, column)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class _Metadata:
    """The metadata of a chunk from which readers conclude which values are there."""

    def __init__(self, filters: Filters, chunk: ColumnChunk) -> None:
        self.filters, self.footer = filters, filters.footer
        self.chunk, self.key = chunk, chunk.key
        self.column = chunk.column
        self.raw = self.footer.metadata(self.key)
        self.order = self.footer.order(self.column)
        self.key_of = key_of(self.column, self.order)
        self.flat = not self.column.max_repetition_level
        self.rows = self.footer.row_group(chunk.row_group).rows
        self.meta = self.footer.meta_struct(self.key)
        self.statistics = self.meta.struct("statistics", "Statistics")
        self.claimed = statistics.geospatial_claims(self.meta, self.column)
        self.indexes: list[Fault] = []
        """Why an index can't be read."""
        self.column_index = self._index(COLUMN_INDEX, _PAGE_BOUNDS, page_index.column_index)
        self.offset_index = self._index(OFFSET_INDEX, _LOCATIONS, page_index.offset_index)

    def _index(self, name: str, rule: str, read: Callable[[Source, Footer, ChunkKey], _Index]) -> _Index | None:
        try:
            return read(self.filters.source, self.footer, self.key)
        except (CorruptFile, UnsupportedError) as error:
            self.indexes.append(self.fault(rule, name, error.reason))
            return None

    def fault(self, rule: str, structure: str, message: str, *, note: bool = False) -> Fault:
        """A fault of a structure; `note`: it costs no reader a row."""
        at = {COLUMN_INDEX: self.raw.column_index_offset, OFFSET_INDEX: self.raw.offset_index_offset}
        return Fault(
            rule,
            structure,
            message,
            Severity.NOTE if note else RULES[rule].severity,
            at.get(structure) or self.footer.start + self.meta.start,
        )

    @property
    def ordered(self) -> bool:
        """Whether readers use min_value and max_value. Some do even if the footer has no orders at all."""
        return self.order in _ORDERS or not self.footer.orders

    def bounds(self) -> Iterator[tuple[str, bytes, bool | None]]:
        """(field, PLAIN bytes, whether it is a value) of the statistics' bounds that readers use."""
        if self.statistics is None:
            return
        fields = []
        if self.ordered:
            fields += [("min_value", "is_min_value_exact"), ("max_value", "is_max_value_exact")]
        old = self.statistics.binary("min"), self.statistics.binary("max")
        one_value = old[0] is not None and old[0] == old[1]  # parquet-java then uses them for every type
        if one_value or (self.column.physical in _SIGNED and self.column.signed):
            fields += [("min", ""), ("max", "")]
        for field, exact in fields:
            bound = self.statistics.binary(field)
            if bound is not None:
                yield field, bound, self.statistics.truth(exact) if exact else None

    def contradictions(self) -> Iterator[Fault]:
        """Yield what the metadata alone show to be wrong."""
        yield from self.indexes
        keys = {field: self.key_of(value) for field, value, _ in self.bounds()}
        for low, high in (("min_value", "max_value"), ("min", "max")):
            least, most = keys.get(low), keys.get(high)
            if least is not None and most is not None and least > most:
                yield self.fault(_BOUNDS, STATISTICS, f"{low} is above {high}")
        for reason in () if self.claimed is None else self.claimed.contradictions():
            yield self.fault(_BOUNDS, GEOSPATIAL, reason)
        nulls = None if self.statistics is None else self.statistics.integer("null_count")
        why = statistics.in_counts(self.chunk.num_values, nulls, bounds=bool(keys))
        if nulls and not self.column.max_definition_level:
            why = f"null_count is {nulls}, and the column can't be null"
        if why is not None:
            yield self.fault(_COUNTS, STATISTICS, why)
        stated = self.raw.num_values or 0
        if stated != self.rows and (self.flat or not self.rows):
            yield self.fault(_COUNTS, ROWS, f"num_rows is {self.rows}, and the column has {counted(stated, 'value')}")
        locations = [] if self.offset_index is None else self.offset_index.page_locations or []
        located = None
        if self.offset_index is not None:
            located = page_index.fault_in_locations(locations, self.chunk, self.rows)
        if located is not None:
            yield self.fault(_LOCATIONS, OFFSET_INDEX, located)
        elif self.column_index is not None and self.offset_index is not None:
            firsts = [first for _, _, first in locations]
            pages = PageBounds(self.column_index, firsts, self.chunk, self.footer)
            if pages.problem is not None:
                rule = _PAGE_COUNTS if pages.in_counts else _PAGE_BOUNDS
                yield self.fault(rule, COLUMN_INDEX, pages.problem)


class _Proof(_Metadata):
    """Compares a chunk's metadata with its values. Iterating yields the faults."""

    def __init__(
        self,
        filters: Filters,
        chunk: ColumnChunk,
        measured: Measure,
        stop: Stop,
        orders: Mapping[int, Bounds],
    ) -> None:
        super().__init__(filters, chunk)
        self.orders = orders
        self.measured = measured
        self.stop = stop

    def __iter__(self) -> Iterator[Fault]:
        if self.flat and self.chunk.num_values > self.rows and self._reads_on():
            yield from self._in_rows()
            return
        yield from self.indexes
        yield from self._in_statistics()
        yield from self._in_shapes()
        yield from self._in_rows()
        yield from self._in_encodings()
        yield from self._in_order()
        yield from self._in_offset_index(self.offset_index)
        yield from self._in_column_index(self.column_index)
        yield from self._in_sizes()

    def _reads_on(self) -> bool:
        """Whether the last pages lie behind the chunk: then they are another one's."""
        pages = self.measured.pages
        end = self.chunk.data_offset + self.chunk.compressed_bytes
        return bool(pages) and pages[-1].offset + pages[-1].size > end

    def _in_statistics(self) -> Iterator[Fault]:
        if self.statistics is None:
            return
        measured, stats = self.measured, self.statistics
        for wrong in self._in_bounds():
            if wrong:
                yield self.fault(_BOUNDS, STATISTICS, "; ".join(wrong))
        wrong = []
        nulls = stats.integer("null_count")
        if nulls is not None and not self._possible_nulls(nulls, measured.nulls, measured.values):
            wrong.append(
                f"null_count is {nulls}, and {measured.nulls} of {counted(measured.values, 'value')}"
                f" {are(measured.nulls)} null"
            )
        nans = stats.integer("nan_count")
        if nans is not None and nans != measured.nans and statistics.has_floats(self.column):
            wrong.append(f"nan_count is {nans}, and {measured.nans} of the values are NaN")
        if wrong:
            yield self.fault(_COUNTS, STATISTICS, "; ".join(wrong))
        if nulls is None and measured.nulls and self.flat:  # the field is optional
            message = f"there is no null_count, which DataFusion takes for 0, and {measured.nulls} of"
            message += f" {counted(measured.values, 'value')} {are(measured.nulls)} null"
            yield self.fault(_COUNTS, STATISTICS, message)._replace(severity=Severity.WARNING)
        distinct = stats.integer("distinct_count")
        if distinct is not None and measured.distinct is not None and distinct != measured.distinct:
            message = f"distinct_count is {distinct}, and the values are {measured.distinct} of the dictionary's"
            yield self.fault(_COUNTS, STATISTICS, message, note=True)

    def _in_shapes(self) -> Iterator[Fault]:
        shapes = self.measured.shapes
        if self.claimed is None or shapes is None:
            return
        for wrong in (self.claimed.wrong_in_box(shapes), self.claimed.wrong_in_types(shapes)):
            if wrong:
                yield self.fault(_BOUNDS, GEOSPATIAL, "; ".join(wrong))
        if shapes.unread:
            values = counted(shapes.unread, "value")
            message = f"{values} can't be compared with the geospatial statistics: not ISO WKB of a type up to 7"
            yield self.fault(_NOT_COMPARED, "", message, note=True)

    def _in_bounds(self) -> tuple[list[str], list[str]]:
        """(bounds that leave values out, bounds that are said to be values and aren't)."""
        wrong: list[str] = []
        inexact: list[str] = []
        low, high = self.measured.low, self.measured.high
        if low is None or high is None:
            return wrong, inexact
        for field, stored, exact in self.bounds():
            is_low = field.startswith("min")
            value, at = low if is_low else high, self.key_of(stored)
            fault = self._in_bound(stored, value, is_low=is_low)
            if fault is not None:
                wrong.append(f"{field} {fault}")
            elif exact and at is not None and at != self._key_of_value(value) and not self.measured.unknown:
                inexact.append(f"{field} is {_text(stored, self.column)} and said to be exact, and no value is")
        return wrong, inexact

    def _in_bound(self, stored: bytes, value: bytes, *, is_low: bool) -> str | None:
        """What is wrong with a bound, given the least or the greatest value; None if it leaves no value out. A NaN
        bounds nothing."""
        at, true = self.key_of(stored), self._key_of_value(value)
        if at is None:
            if statistics.has_nan(stored, None, self.column) and len(stored) == len(value):
                return None
            return f"has {counted(len(stored), 'byte')}: no value"
        if at > true if is_low else at < true:
            return f"is {_text(stored, self.column)}, and a value is {_text(value, self.column)}"
        return None

    def _key_of_value(self, value: bytes) -> Any:
        """The key of a value that is there. A decimal without bytes is compared as 0, as DuckDB reads it."""
        key = self.key_of(value)
        return 0 if key is None else key

    def _possible_nulls(self, stored: int, nulls: int, values: int) -> bool:
        """Whether a null count can be right. Writers count empty lists and nulls around a repeated leaf
        differently, so its count may be less than the number of undefined values, unless it says that all are null.
        """
        return stored == nulls if self.flat else 0 <= stored <= nulls and (stored < values or nulls == values)

    def _in_rows(self) -> Iterator[Fault]:
        measured, stated = self.measured, self.raw.num_values
        if measured.values != stated:
            yield self.fault(
                _COUNTS, ROWS, f"num_values is {stated}, and the pages have {counted(measured.values, 'value')}"
            )
        elif measured.rows is not None and measured.rows != self.rows:
            yield self.fault(
                _COUNTS, ROWS, f"num_rows is {self.rows}, and the column has {counted(measured.rows, 'row')}"
            )

    def _in_encodings(self) -> Iterator[Fault]:
        others = [p for p in self.measured.pages if not (p.has_dictionary_indices or p.only_nulls)]
        if not others:
            return
        if self.raw.has_encoding_stats:
            only, field = self.raw.only_dictionary_encoded(parquet_limits.LIST_MAX), "encoding_stats say"
        else:
            only, field = names_only_dictionaries(self.raw.encodings), "encodings say"
        if only:
            message = (
                f"the {field} that all pages are dictionary-encoded, and {counted(len(others), 'page')} of"
                f" {len(self.measured.pages)} {'is' if len(others) == 1 else 'are'} {others[0].encoding}"
            )
            yield self.fault("statistics-encodings", ENCODINGS, message)

    def _in_order(self) -> Iterator[Fault]:
        by = sorting_columns(self.footer, self.key.row_group)
        if not by or by[0].column != self.key.column:
            return
        order = self.measured.order
        if order is None:
            comparison = compared(self.filters, self.chunk, self.orders, self.stop)
        elif order.falls if by[0].falling else order.rises:
            comparison = compared(self.filters, self.chunk, {**self.orders, self.key.column: order}, self.stop)
        else:
            yield self.fault(_ORDER, SORTING, f"the rows aren't in the {by[0].order} order of the column")
            return
        if comparison.wrong is not None:
            yield self.fault(_ORDER, SORTING, comparison.wrong)._replace(proven=comparison.proven)
        if comparison.unknown is not None:
            yield self.fault(_NOT_COMPARED, SORTING, comparison.unknown)

    def _listed(self, count: int) -> Sequence[MeasuredPage] | None:
        """The pages that an index of `count` pages describes: writers leave pages without values out, or don't."""
        pages = self.measured.pages
        if count == len(pages):
            return pages
        some = [page for page in pages if page.values]
        return some if count == len(some) else None

    def _in_offset_index(self, index: OffsetIndex | None) -> Iterator[Fault]:
        if index is None:
            return
        locations = index.page_locations or []
        pages = self._listed(len(locations))
        if pages is None:
            count = counted(len(locations), "page")
            yield self.fault(
                _LOCATIONS, OFFSET_INDEX, f"the offset index lists {count}, the chunk has {len(self.measured.pages)}"
            )
            return
        wrong = {}
        for number, ((offset, size, first), page) in enumerate(zip(locations, pages, strict=True)):
            if offset != page.offset:
                wrong[number] = f"page {number} is said to be at {offset}, and is at {page.offset}"
            elif size != page.size:
                wrong[number] = f"page {number} is said to have {counted(size, 'byte')}, and has {page.size}"
            elif page.first_row is not None and first != page.first_row:
                wrong[number] = f"page {number} is said to begin with row {first}, and begins with {page.first_row}"
            elif not page.begins and page.repetition is not None:
                wrong[number] = f"page {number} doesn't begin with a row, as pages in an offset index must"
        yield from self._of_pages(_LOCATIONS, OFFSET_INDEX, wrong, len(pages))
        sizes = index.unencoded_byte_array_data_bytes
        if sizes is not None and sizes != [page.plain_bytes for page in pages]:
            yield self.fault(
                _SIZES, OFFSET_INDEX, "the offset index has other numbers of unencoded bytes than the pages"
            )

    def _of_pages(self, rule: str, structure: str, wrong: Mapping[int, str], pages: int) -> Iterator[Fault]:
        """One fault for all wrong pages, with what is wrong in the first."""
        if wrong:
            more = f" ({len(wrong)} of {pages} pages are wrong)" if len(wrong) > 1 else ""
            yield self.fault(rule, structure, next(iter(wrong.values())) + more)

    def _in_column_index(self, index: ColumnIndex | None) -> Iterator[Fault]:
        if index is None:
            return
        nulls = index.null_pages or []
        lows, highs = index.min_values or [], index.max_values or []
        pages = self._listed(len(nulls))
        lengths = [len(nulls), len(lows), len(highs)]
        lengths += [len(counts) for counts in (index.null_counts, index.nan_counts) if counts is not None]
        if pages is None or len(set(lengths)) > 1:
            numbers = ", ".join(map(str, lengths))
            yield self.fault(
                _PAGE_COUNTS,
                COLUMN_INDEX,
                f"the column index has lists of {numbers} pages, the chunk has {len(self.measured.pages)}",
            )
            return
        yield from self._in_page_counts(index, nulls, pages)
        if self.measured.ordered and self.ordered:
            yield from self._in_page_bounds(index, [*zip(nulls, lows, highs, pages, strict=True)])
        for name, levels, histograms in (
            ("repetition", index.repetition_level_histograms, [page.repetition for page in pages]),
            ("definition", index.definition_level_histograms, [page.definition for page in pages]),
        ):
            if _differ(levels, histograms):
                yield self.fault(_SIZES, COLUMN_INDEX, f"the column index has another histogram of {name} levels")

    def _in_page_counts(
        self, index: ColumnIndex, only_nulls: Sequence[bool], pages: Sequence[MeasuredPage]
    ) -> Iterator[Fault]:
        wrong: dict[int, str] = {}
        harmless: dict[int, str] = {}
        floats = statistics.has_floats(self.column)
        for number, (null, page) in enumerate(zip(only_nulls, pages, strict=True)):
            if null and not page.only_nulls:
                values = counted(page.values - page.nulls, "value")
                wrong[number] = f"page {number} is said to have only nulls, and has {values}"
            elif not null and page.only_nulls and page.values:
                # readers refuse a bound without bytes in a page that isn't said to have only nulls
                refused = self.column.physical != "BYTE_ARRAY" and not (index.min_values or [b""])[number]
                (wrong if refused else harmless)[number] = f"page {number} has only nulls, and isn't said to"
            null_count = None if index.null_counts is None else index.null_counts[number]
            if null_count is not None and not self._possible_nulls(null_count, page.nulls, page.values):
                nulls = counted(null_count, "null")
                wrong.setdefault(number, f"page {number} is said to have {nulls}, and has {page.nulls}")
            nans = None if index.nan_counts is None else index.nan_counts[number]
            if nans is not None and floats and nans != page.nans:
                wrong.setdefault(number, f"page {number} is said to have {counted(nans, 'NaN')}, and has {page.nans}")
        yield from self._of_pages(_PAGE_COUNTS, COLUMN_INDEX, wrong, len(pages))
        for fault in self._of_pages(_PAGE_COUNTS, COLUMN_INDEX, harmless, len(pages)):
            yield fault._replace(severity=Severity.NOTE)

    def _in_page_bounds(
        self, index: ColumnIndex, pages: Sequence[tuple[bool, bytes, bytes, MeasuredPage]]
    ) -> Iterator[Fault]:
        wrong: dict[int, str] = {}
        keys: list[tuple[Any, Any]] = []
        for number, (null, low, high, page) in enumerate(pages):
            if null:
                continue
            keys.append((self.key_of(low), self.key_of(high)))
            if page.low is None or page.high is None:
                continue
            for word, stored, value in (("minimum", low, page.low), ("maximum", high, page.high)):
                fault = self._in_bound(stored, value, is_low=word == "minimum")
                if fault is not None:
                    wrong.setdefault(number, f"page {number}'s {word} {fault}")
        order = enum_name("BoundaryOrder", index.boundary_order or 0)
        if any(page_index.out_of_order(ends, index.boundary_order) for ends in zip(*keys, strict=True)):
            wrong = wrong or {0: f"the bounds of the pages aren't {order}, as the index says"}
        yield from self._of_pages(_PAGE_BOUNDS, COLUMN_INDEX, wrong, len(pages))

    def _in_sizes(self) -> Iterator[Fault]:
        sizes = self.meta.struct("size_statistics", "SizeStatistics")
        if sizes is None:
            return
        size = sizes.integer("unencoded_byte_array_data_bytes")
        if size is not None and size != self.measured.plain_bytes:
            yield self.fault(
                _SIZES,
                SIZES,
                f"the values are said to have {counted(size, 'byte')}, and have {self.measured.plain_bytes}",
            )
        for name in ("repetition", "definition"):
            levels = [getattr(page, name) for page in self.measured.pages]
            together = None if None in levels else tuple(map(sum, zip(*levels, strict=True)))
            if _differ(sizes.integers(f"{name}_level_histogram", I64), [together]):
                yield self.fault(_SIZES, SIZES, f"the histogram of {name} levels is another one")


def _differ(stored: Sequence[int] | None, histograms: Sequence[tuple[int, ...] | None]) -> bool:
    """Whether a stored histogram, if there is one, differs from what was counted, if everything was."""
    if not stored or None in histograms:
        return False
    return list(stored) != [count for levels in histograms if levels is not None for count in levels]


class SortingColumn(NamedTuple):
    """A column by which the rows of a row group are said to be sorted."""

    column: int | None
    """The leaf column's ordinal, unchecked; None if the field is missing."""
    falling: bool
    nulls_first: bool
    encoded: bytes
    """The structure as it is in the footer."""

    @property
    def order(self) -> str:
        """The order's name."""
        return "descending" if self.falling else "ascending"


class ComparedRows(NamedTuple):
    """What the comparison of a row group's rows showed."""

    proven: int
    """The number of sorting columns, from the first on, in whose order all rows are."""
    wrong: str | None
    """Why the rows aren't in the order of more columns; None if no row contradicts it."""
    unknown: str | None
    """Why the rows aren't compared by all columns; None if they are."""


def sorting_columns(footer: Footer, row_group: int) -> Sequence[SortingColumn]:
    """The columns in a row group's `sorting_columns`, one more than are compared at most. Raises CorruptFile."""
    group = footer.group_struct(row_group)
    starts = group.list_starts("sorting_columns")[: parquet_limits.SORTED_BY_MOST + 2]
    where = group.location.at("sorting_columns")
    columns = []
    for start, end in pairwise(starts):
        sorting = Struct("SortingColumn", footer.raw, start, where)
        flags = bool(sorting.truth("descending")), bool(sorting.truth("nulls_first"))
        columns.append(SortingColumn(sorting.integer("column_idx"), *flags, footer.raw[start:end]))
    return columns


def compared(filters: Filters, first: ColumnChunk, orders: Mapping[int, kernels.Bounds], stop: Stop) -> ComparedRows:
    """Compare a row group's rows by all its sorting columns.

    Args:
        filters: the file's filters.
        first: the chunk of the first sorting column.
        orders: the order of rows in columns that are measured. The others are decoded.
        stop: ends the decoding.

    Raises:
        CorruptFile: the footer can't be walked. Damaged pages only end the comparison by their column.
        Stopped: soon after `stop` is set.
    """
    footer = filters.footer
    by, wrong, unknown = sorting_columns(footer, first.row_group), None, None
    columns: list[kernels.Bounds] = []
    for sorting in by:
        if sorting.column is None or not 0 <= sorting.column < len(footer.columns):
            column_count = counted(len(footer.columns), "column")
            wrong = f"the rows can't be sorted by column {sorting.column}: the file has {column_count}"
            break
        try:
            columns.append(_order_in(filters, first.row_group, sorting.column, orders, len(columns), stop))
        except (CorruptFile, UnsupportedError) as error:
            path = footer.columns[sorting.column].path
            unknown = f"the order of the rows isn't compared from the sorting column {path} on: {error.reason}"
            break
    proven, fault = compared_rows(columns, by, footer.row_group(first.row_group).rows)
    if fault is not None:
        *equal, path = [footer.columns[sorting.column or 0].path for sorting in by[: proven + 1]]
        whose, which = f"the rows with equal values in {', '.join(equal)}" if equal else "the rows", by[proven]
        if fault is RowFault.OUT_OF_ORDER:
            wrong = f"{whose} aren't in the {which.order} order of {path}"
        else:
            wrong = f"{whose} with nulls in {path} aren't {'first' if which.nulls_first else 'last'}"
    return ComparedRows(proven, wrong, unknown)


class RowFault(Enum):
    """Why rows aren't in the order of a column."""

    OUT_OF_ORDER = "a value is less, or greater, than the one before it"
    NULLS_MISPLACED = "nulls aren't where the column has them"


def compared_rows(columns: Sequence[Bounds], by: Sequence[SortingColumn], rows: int) -> tuple[int, RowFault | None]:
    """Compare rows with the ones before them by columns, of which each counts only between rows that are equal in
    those before it.

    Args:
        columns: the columns, with at least so many rows.
        by: how each of them is sorted.
        rows: the number of rows that are compared.

    Returns:
        The number of columns, from the first on, in whose order the rows are, and what is wrong with the next one's.
    """
    import numpy as np  # only sorted files need it

    equal = np.ones(rows, np.bool_)
    for at, (column, sorting) in enumerate(zip(columns, by, strict=False)):
        halves = np.frombuffer(column.steps, np.uint8)
        steps = np.stack((halves & 0xF, halves >> 4), axis=1).ravel()[:rows]
        wrong = equal & (steps == (kernels.UP if sorting.falling else kernels.DOWN))
        wrong_nulls = equal & (steps & (kernels.TO_NULL if sorting.nulls_first else kernels.FROM_NULL) != 0)
        if wrong.any():
            return at, RowFault.OUT_OF_ORDER
        if wrong_nulls.any():
            return at, RowFault.NULLS_MISPLACED
        equal &= steps == 0
    return len(columns), None


def _order_in(
    filters: Filters, row_group: int, column: int, orders: Mapping[int, kernels.Bounds], before: int, stop: Stop
) -> kernels.Bounds:
    """The order of a row group's rows in a column, the sorting column after `before` others. Raises CorruptFile;
    UnsupportedError if there is none."""
    footer = filters.footer
    leaf, rows = footer.columns[column], footer.row_group(row_group).rows
    why = None
    if leaf.max_repetition_level:
        why = "the format defines no order of lists"
    elif order_of(leaf, footer.order(leaf)) == kernels.NO_ORDER:
        why = "its type has no defined order"
    elif before == parquet_limits.SORTED_BY_MOST:
        why = f"rows are compared by at most {before} columns"
    elif rows > parquet_limits.ORDERED_ROWS_MOST:
        why = f"row groups of at most {parquet_limits.ORDERED_ROWS_MOST} rows are compared"
    if why is None:
        order = orders.get(column)
        if order is None:
            (chunk,) = footer.chunks({column}, row_group)
            filters.source.will_read([chunk_range(chunk)])
            order = measured(filters, chunk, Measure(chunk, footer.order(leaf), tracked=True), stop).order
        if order is not None and order.rows >= rows and not order.unknown:
            return order
        why = "it has fewer values than the row group has rows"
        if order is None or order.unknown:
            why = "a value is too long to be compared"
    raise UnsupportedError(why, path=filters.source.path)
