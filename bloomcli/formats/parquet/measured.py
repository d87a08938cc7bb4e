"""Measures what the statistics and the page index of a column chunk should say, while its values are hashed.

A dictionary's entries are kept, and each page's indices mark which of them the page uses.

Source: the Apache Parquet format, parquet.thrift (Statistics, ColumnOrder, SizeStatistics), PageIndex.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.base import MeasuredColumn
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.codecs import Body
from bloomcli.formats.parquet.encodings import Slice, unread
from bloomcli.formats.parquet.pages import Page, read_pages
from bloomcli.formats.parquet.spec import varint
from bloomcli.formats.parquet.statistics import width_of
from bloomcli.formats.parquet.values import DICTIONARY_ENCODINGS, ChunkHasher, mark
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.values.keys import key_of
from bloomcli.values.literals import kind_of
from bloomcli.values.wkb import Shapes
from bloomcli.words import counted

_UNORDERED: Final = ("INTERVAL", "UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY")
_INT96_ORDER: Final = "INT96_TIMESTAMP_ORDER"
_LOOKUPS: Final = 64
"""The maximum number of pages whose minimum `lookup_bytes` looks up."""


class MeasuredPage(NamedTuple):
    """A data page, measured."""

    offset: int
    """The file offset of its header."""
    size: int
    """Bytes in the file, header included."""
    first_row: int | None
    """The position in the row group of the first row that begins in the page; None if rows can't be counted."""
    rows: int | None
    """The number of rows that begin in the page; None if its repetition levels have a deprecated encoding."""
    begins: bool
    """The page begins with a row, as the format demands of pages in an offset index."""
    values: int
    """Leaf values, nulls included."""
    nulls: int
    """Values that aren't defined: nulls, and entries for empty lists and for nulls around the leaf."""
    nans: int
    low: bytes | None
    """PLAIN bytes of the least value in the column's order, NaN left out; None without comparable values."""
    high: bytes | None
    plain_bytes: int
    """Bytes of values of a BYTE_ARRAY column, without their lengths; 0 for other types."""
    repetition: tuple[int, ...] | None
    """The number of values with each repetition level; None if the levels have a deprecated encoding."""
    definition: tuple[int, ...] | None
    encoding: str

    @property
    def only_nulls(self) -> bool:
        """Whether no value is defined."""
        return self.nulls == self.values

    @property
    def has_dictionary_indices(self) -> bool:
        """Whether the values are a dictionary's."""
        return self.encoding in DICTIONARY_ENCODINGS


def order_of(column: Column, name: str | None) -> int:
    """The kernels' order of a column's values. `name`: the order in the footer, of which only INT96 needs one."""
    kind = kind_of(column)
    if kind in _UNORDERED:
        return kernels.NO_ORDER
    if column.physical == "INT96":
        return kernels.INT96 if name == _INT96_ORDER else kernels.NO_ORDER
    if column.physical in {"FLOAT", "DOUBLE"} or kind == "FLOAT16":
        return kernels.FLOATING
    if column.physical in {"INT32", "INT64", "BOOLEAN"}:
        return kernels.SIGNED if column.signed else kernels.UNSIGNED
    return kernels.DECIMAL if kind == "DECIMAL" else kernels.BYTEWISE


class Measure:
    """What the statistics and the page index of a column chunk should say, measured as its pages are decoded.

    Args:
        chunk: the column chunk.
        order: the name of its column's order in the footer.
        tracked: whether to measure the order of rows.
        distinct: whether to count distinct values.
        shapes: takes the geometries; None if they aren't measured.

    Attributes:
        bounds: takes the values of pages that aren't dictionary-encoded.
        pages: all data pages in order, also those without values.
        values, nulls, nans, plain_bytes: the sums over the pages.
        rows: the number of rows; None if a page's rows can't be counted.
        distinct: the number of distinct values that aren't null, where it is known: all pages have indices of one
            dictionary.
        ordered: the column has a defined order. Without one, there are no bounds.
        shapes: the extents of geometries; None if they aren't measured.
    """

    def __init__(
        self,
        chunk: ColumnChunk,
        order: str | None,
        *,
        tracked: bool = False,
        distinct: bool = False,
        shapes: Shapes | None = None,
    ) -> None:
        column = chunk.column
        self.ordered = order_of(column, order) != kernels.NO_ORDER
        kind = kernels.INT96 if column.physical == "INT96" else order_of(column, order)
        self._width = width_of(column) or 0
        self._column = column
        self._counts_distinct = distinct
        self.shapes = shapes
        self._geometries: Slice | None = None
        """The dictionary, if it has geometries that are measured."""
        flat = not column.max_repetition_level and chunk.num_values <= parquet_limits.ORDERED_ROWS_MOST
        self._tracked = tracked and self.ordered and flat
        self.bounds = kernels.Bounds(kind, self._width, self._tracked)
        self._total = kernels.Bounds(kind, self._width)
        self._entries: kernels.Entries | None = None
        if column.physical == "BOOLEAN":
            self._entries = kernels.Entries(self.bounds, 2)
            self._entries.add(b"\0\1", 0, 2)
        self._marks = bytearray()
        self._unseen = 0
        self._one_form = False
        """Each entry of the dictionary differs from the others."""
        self.pages: list[MeasuredPage] = []
        self.values = self.nulls = self.nans = self.plain_bytes = 0
        self.rows: int | None = 0
        self.distinct: int | None = None

    @property
    def ends(self) -> tuple[bytes | None, bytes | None]:
        """`low` and `high`, of INT96 also where the file defines no order: tables have one for timestamps."""
        return self._total.least_and_greatest

    @property
    def low(self) -> bytes | None:
        """PLAIN bytes of the least value; None without comparable values."""
        return self.ends[0] if self.ordered else None

    @property
    def high(self) -> bytes | None:
        """PLAIN bytes of the greatest value; None without comparable values."""
        return self.ends[1] if self.ordered else None

    @property
    def unknown(self) -> bool:
        """Whether a value was too long to be compared: the bounds leave it out."""
        return self.bounds.unknown

    @property
    def order(self) -> kernels.Bounds | None:
        """How each row compares with the one before it; None if the order of rows wasn't measured."""
        return self.bounds if self._tracked else None

    def of_column(self) -> MeasuredColumn:
        """The measures that all formats have. A decimal without bytes isn't compared."""
        low, high = (None if end is None else key_of(end, self._column) for end in self.ends)
        no_value = self.ordered and (low is None or high is None) and self.low is not None
        compared = not self.unknown and not no_value
        return MeasuredColumn(self._column.index, self.values, self.nulls, self.nans, low, high, compared=compared)

    def dictionary(self, page: Slice) -> None:
        """Keep a dictionary's entries."""
        self._entries = kernels.Entries(self.bounds, page.count)
        self._marks, self._unseen = bytearray(page.count), page.count
        if page.count:
            self._entries.add(page.data, page.start, page.count)
        self._geometries = None if self.shapes is None else page
        self._one_form = self._counts_distinct and len(set(memoryview(page.hashes).cast("Q"))) == page.count

    def indices(self, page: Page, stop: Stop) -> None:
        """Add the entries that a page uses. Raises CorruptFile."""
        if self._entries is None:
            raise page.location.fault("a dictionary-encoded page without a dictionary", 0)
        self._unseen = mark(page, self._marks, self._unseen, stop, self._entries)

    @property
    def takes_values(self) -> bool:
        """Whether it takes the values themselves, in addition to their bounds."""
        return self.shapes is not None

    def geometries(self, page: Slice) -> None:
        """Add values of a page that isn't dictionary-encoded, if they are geometries that are measured."""
        if self.shapes is not None:
            for value in _each(page):
                self.shapes.add(value)

    def booleans(self, page: Page, stop: Stop) -> None:
        """Add the values of a page of a BOOLEAN column, which are like indices of a dictionary. Raises CorruptFile,
        UnsupportedError."""
        assert page.body is not None  # noqa: S101  none was skipped
        data = memoryview(page.body.whole())[page.start :]
        if page.encoding == "PLAIN":
            if len(data) * 8 < page.non_null:
                values = counted(page.non_null, "value")
                raise page.location.fault(f"the page has too few bytes for {values}", 0)
            run = varint(-(-page.non_null // 8) << 1 | 1)
        elif page.encoding == "RLE":
            run, data = b"", data[4:]  # after their length
        else:
            raise unread(page.encoding, page.location)
        self._marks, self._unseen = bytearray(2), 2
        indices = b"".join((b"\1", run, data))
        self.indices(page._replace(body=Body(indices, len(indices), page.location, stop), start=0), stop)

    def start_page(self, page: Page) -> None:
        """Begin with a data page. Raises CorruptFile."""
        if self._tracked and page.non_null < page.num_values:
            self.bounds.nulls(page.defined())

    def page(self, page: Page) -> None:
        """Finish a data page whose values were added."""
        column, bounds = self._column, self.bounds
        low, high = bounds.least_and_greatest
        repetition = page.histogram(column, repetition=True)
        rows = None if repetition is None else repetition[0]
        self.pages.append(
            MeasuredPage(
                page.location.base,
                page.end - page.location.base,
                self.rows,
                rows,
                not page.num_values or page.begins_row(column),
                page.num_values,
                page.num_values - page.non_null,
                bounds.nans,
                low if self.ordered else None,
                high if self.ordered else None,
                bounds.size,
                repetition,
                page.histogram(column, repetition=False),
                page.encoding,
            )
        )
        self.values += page.num_values
        self.nulls += page.num_values - page.non_null
        self.nans += bounds.nans
        self.plain_bytes += bounds.size
        self.rows = None if self.rows is None or rows is None else self.rows + rows
        for bound in (low, high):
            if bound is not None and self._width:
                self._total.fixed(bound, 1)
            elif bound is not None:
                self._total.sized(bound, 0, len(bound).to_bytes(8, "little"), 1)
        bounds.reset()

    def finish(self) -> None:
        """All pages were added."""
        if self.shapes is not None and self._geometries is not None:
            for value in compress(_each(self._geometries), self._marks):
                self.shapes.add(value)
            self._geometries = None
        if self._one_form and all(page.has_dictionary_indices or page.only_nulls for page in self.pages):
            self.distinct = len(self._marks) - self._unseen
        self._entries = None


def measured(filters: Filters, chunk: ColumnChunk, measure: Measure, stop: Stop | None = None) -> Measure:
    """Measure a chunk whose hashes aren't needed. Raises CorruptFile, UnsupportedError; Stopped soon after `stop` is
    set."""
    measure.bounds.alone = not measure.takes_values
    for _ in values_of(filters, chunk, measure, stop):
        pass
    return measure


def values_of(filters: Filters, chunk: ColumnChunk, measure: Measure, stop: Stop | None = None) -> Iterator[Slice]:
    """Yield a chunk's hashed values, with all entries of its dictionary, and measure its pages. Pages are compared
    with their checksums. BOOLEAN columns have no hashes. Raises: as `measured`."""
    if not chunk.num_values:
        return
    stop = stop or Stop()
    hasher = ChunkHasher(chunk, stop)
    for page in read_pages(filters.source, chunk, stop=stop, checked=True, whole=True):
        if page.dictionary:
            part = hasher.dictionary(page)
            measure.dictionary(part)
            yield part
            continue
        measure.start_page(page)
        if not page.non_null:
            pass
        elif chunk.column.physical == "BOOLEAN":
            measure.booleans(page, stop)
        elif page.encoding in DICTIONARY_ENCODINGS:
            measure.indices(page, stop)
        else:
            for part in hasher.slices(page, measure.bounds):
                measure.geometries(part)
                yield part
        measure.page(page)
    measure.finish()


def lookup_bytes(pages: Iterable[tuple[Any, Any, int]]) -> int:
    """The mean size of the pages that may have a value, for the minima of some pages: a lookup reads these with a
    column index. `pages`: for each page with values, the keys of its minimum and maximum, and its bytes."""
    bounds = list(pages)
    values = [low for low, _, _ in bounds[:: len(bounds) // _LOOKUPS + 1]]
    read = sum(size for value in values for low, high, size in bounds if low <= value <= high)
    return read // len(values) if values else 0


def _each(page: Slice) -> Iterator[bytes]:
    """The values of a BYTE_ARRAY column; b"" for one that is too long to be kept."""
    yield from page.values() if page.long is None else [b""]
