"""Reads the records of rows by their positions in row groups.

For a column at the top level, only the pages with these rows are read, located by the offset index or the page
headers, and only the values of these rows are decoded. pyarrow reads whole chunks of all other columns, and of all
columns if a large part of the rows is read. A batch has at most `_AT_ONCE` rows, and `_BYTES_MOST` bytes in each
column.

Arrow's view types are replaced, because most of PyArrow's functions and many readers don't support them.

In a store each read is a request, which takes as long as the transfer of `Source.request_bytes`, and `RequestPlan`
plans the reads of a row group. Chunks with at most that many bytes in total are read whole, in one request, without
their page indexes. For larger chunks, the page indexes determine the pages that are read: those of the searched
column and, with them, the pages of the selected columns with the same rows. If the latter have more bytes than a
request costs, they are read when the matching rows are known. If an index has the file's end, they are read in one
request, with the gaps between them, if that costs less than consecutive requests for each and has at most
`Source.part_bytes`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.arrays import SourceStream, int64s, numbers_of
from bloomcli.formats.column_search import Candidates
from bloomcli.formats.parquet import page_decoder, page_index
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX
from bloomcli.formats.parquet.page_decoder import ChosenPages, runs
from bloomcli.formats.parquet.page_index import HasWithin, PagePlace, Selection
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.storage.base import Range, united
from bloomcli.words import counted

if TYPE_CHECKING:
    import numpy as np
    import pyarrow.parquet as pq

    from bloomcli.formats.located_file import LocatedFile


class RequestPlan:
    """The reads of an open file's row groups. For files that aren't read by requests it announces nothing.

    Args:
        filters: the filters of the file.

    Attributes:
        sparing: an index has the file's end. Before rows are found, only the searched column is requested, unless
            more takes no further request; the record is requested at once. A filter's false positive then takes one
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

    def select(self, chunk: ColumnChunk, has_within: HasWithin | None) -> Selection | None:
        """`page_index.select` for the searched column. The result is kept, because pages are first announced and
        then read."""
        if self.whole(chunk.row_group):
            return None
        if self._selected is None or self._selected[0] != chunk.key:
            self._selected = chunk.key, page_index.select(self._source, self._filters.footer, chunk, has_within)
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
        footer = self._filters.footer
        chunks = {chunk.column.index: chunk for chunk in footer.chunks(chosen | {column}, candidates.row_group)}
        every = [*map(_extent, chunks.values())]
        indexes = [
            extent
            for ordinal, chunk in chunks.items()
            for extent in page_index.ranges(
                footer,
                chunk.key,
                OFFSET_INDEX,
                *((COLUMN_INDEX,) if ordinal == column else ()),
            )
        ]
        in_memory = not self._source.estimate(indexes).requests
        if not indexes or (not in_memory and self._bytes(every) <= self._source.request_bytes):
            self._whole.add(candidates.row_group)
            own = [_extent(chunks[column])]
            self._source.will_read(every if self._worth(every, own) else own)
            return
        self._source.will_read(indexes)
        own, rows = self._own(chunks[column], candidates, has_within)
        others = [
            extent
            for ordinal, chunk in chunks.items()
            if ordinal in chosen
            for extent in self._with_rows(chunk, rows if ordinal in paged else None)
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

    def _worth(self, together: Sequence[Range], own: Sequence[Range]) -> bool:
        """Whether to request the record with the searched column, before it is known whether rows match."""
        if self.sparing and self._source.estimate(together).requests > max(self._source.estimate(own).requests, 1):
            return False
        return self._bytes(together) - self._bytes(own) <= self._source.request_bytes

    def _bytes(self, ranges: Sequence[Range]) -> int:
        return self._source.estimate(ranges).bytes_downloaded

    def _own(
        self, chunk: ColumnChunk, candidates: Candidates, has_within: HasWithin | None
    ) -> tuple[list[Range], list[range] | None]:
        """The ranges of the searched column that are read, and the rows that may match; None for all rows."""
        selected = self.select(chunk, has_within) if candidates.trusted else None
        if selected is None:
            return [_extent(chunk)], None
        rows = [range(page.first_row, page.first_row + page.rows) for page in selected.pages]
        return list(_pages(chunk, selected.pages)), rows

    def _with_rows(self, chunk: ColumnChunk, rows: list[range] | None) -> Iterable[Range]:
        """The ranges of a selected column's chunk that are read for rows (the whole chunk if None)."""
        pages = None if rows is None else page_index.pages_of(self._source, self._filters.footer, chunk)
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


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast columns of view types, at any depth, to the types without views.

    A Parquet file can request views in the Arrow schema in its metadata (arrow-rs and Polars do).
    """
    schema = without_views_in(batch.schema)
    if all(field.type == old.type for field, old in zip(schema, batch.schema, strict=True)):
        return batch
    return batch.cast(schema)


def without_views_in(schema: pa.Schema) -> pa.Schema:
    """Replace the view types of a schema."""
    return pa.schema([field.with_type(_type(field.type)) for field in schema])


def _type(kind: pa.DataType) -> pa.DataType:
    return _with_leaves(kind, _without_view)


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _with_leaves(kind: Any, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with each type in it that has no fields replaced by `leaf`, and views of lists by lists."""

    def field(child: pa.Field) -> pa.Field:
        return child.with_type(_with_leaves(child.type, leaf))

    types = pa.types
    if types.is_struct(kind):
        return pa.struct([field(child) for child in kind])
    if types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(field(kind.value_field))
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(field(kind.value_field))
    return leaf(kind)


_AT_ONCE: Final = 8192
"""The maximum number of rows of a batch."""
_BYTES_MOST: Final = 64 << 20
"""The maximum size of the values of a column in a batch, unless it is one value."""
_OF_ROWS: Final = 8
"""If more than one in this many rows is read, it takes less time to decode whole chunks."""


_SMALL_ROWS: Final = 1 << 15
"""In row groups of up to this many rows, it takes less time to decode whole chunks than to find their pages."""
_FIXED: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE")
"""Physical types whose values have few bytes: those of a batch take little memory, whatever a chunk repeats."""


_VALUES_TOGETHER: Final = 1 << 20
"""Values of several row groups that are decoded together."""


class _TooManyBytes(Exception):
    """The values of some rows have more than `_BYTES_MOST` bytes; the caller retries with fewer rows."""


def _positions(rows: Iterable[int], places: pa.Int64Array) -> Iterator[int]:
    """Yield the positions of ascending rows in ascending places, which contain all of them."""
    numbers = memoryview(places.buffers()[1]).cast("q")[places.offset : places.offset + len(places)]
    at = 0
    for row in rows:
        at = bisect_left(numbers, row, at)
        yield at


def _numbers(positions: Iterable[tuple[int, pa.Int64Array]]) -> Iterator[tuple[int, memoryview]]:
    return ((row_group, numbers_of(rows)) for row_group, rows in positions)


class _Rows(NamedTuple):
    """Rows of a row group that are read."""

    row_group: int
    rows: memoryview
    """Their positions in the row group, int64s, ascending."""
    paged: Mapping[int, ChosenPages]
    """The chunks of which only some pages are read, by the ordinals of their columns."""


def _slice(groups: Sequence[_Rows], first: int, count: int) -> list[_Rows]:
    """Rows `first` to `first` + `count` of the rows of several row groups."""
    parts = []
    for group in groups:
        some = group.rows[first : first + count]
        if len(some):
            parts.append(group._replace(rows=some))
        count -= len(some)
        first = max(first - len(group.rows), 0)
    return parts


_DAYS: Final = (2333938, 2547238)
"""The first and the last Julian day of the years 1678 to 2261, all of whose times fit into int64 nanoseconds."""


def _int96(values: pa.FixedSizeBinaryArray) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The Julian days, and the nanoseconds of the day, of INT96 timestamps without the nulls."""
    import numpy as np  # few files have such a column

    data = b"".join(values.drop_null().to_pylist())
    timestamps = np.frombuffer(data, np.dtype([("nanos", "<i8"), ("day", "<i4")]))
    return timestamps["day"], timestamps["nanos"]


def _instant(kind: pa.DataType) -> pa.DataType:
    """Timestamps, which have no zone, as instants in microseconds."""
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


def _count(groups: Sequence[_Rows]) -> int:
    return sum(len(group.rows) for group in groups)


class Records:
    """Reads the records of an open file.

    Args:
        file: the open file.
        filters: its filters, with the footer.
        plan: announces reads to a store.
    """

    def __init__(self, file: LocatedFile, filters: Filters, plan: RequestPlan) -> None:
        self._file = file
        self._filters = filters
        self._plan = plan
        self._unit: str | None = None
        """The unit of INT96 timestamps, as for `page_decoder.arrow_file`."""

    def chosen(self, columns: Sequence[str] | None) -> set[int]:
        """The ordinals of these leaf columns (all if None)."""
        return {c.index for c in self._file.columns if columns is None or c.path in columns}

    def read(
        self, positions: Sequence[tuple[int, pa.Int64Array]], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of row groups, with these columns (all if None).

        Args:
            positions: the numbers of one or more row groups, and the ascending positions of rows in each.
            columns: the paths of the columns.

        Raises:
            CorruptFile, UnsupportedError: the rows can't be read.
        """
        chosen = self.chosen(columns)
        with self._faults(f"the rows of row group {positions[0][0]}"):
            self._choose_unit(positions, chosen)
            groups = (_Rows(number, rows, self._paged(number, chosen, rows)) for number, rows in _numbers(positions))
            for ordinals, some in groupby(groups, lambda group: frozenset(group.paged)):
                batches = self._alike(list(some), chosen - ordinals)
                for batch in batches:  # in nanoseconds, they need no zone: the type is that of INT96 alone
                    yield batch if self._unit is None else batch.cast(self.with_instants(batch.schema))

    def _choose_unit(self, positions: Sequence[tuple[int, pa.Int64Array]], columns: set[int]) -> None:
        """Read INT96 timestamps in microseconds if a row has one that nanoseconds can't hold, such as 9999-12-31.

        Raises UnsupportedError if another one has nanoseconds, which microseconds would cut.
        """
        footer = self._filters.footer
        cut: set[str] = set()
        for column in (leaf for leaf in self._int96 if leaf.index in columns):
            for number, rows in positions:
                (chunk,) = self._chunks(number, {column.index})
                every = ChosenPages(chunk, footer.row_group(number).rows, None)
                for part in page_decoder.decoded(self._file.source, [every]):
                    for some in part.by_chunk():
                        days, nanos = _int96(some.values.filter(pc.is_in(some.rows, value_set=rows)))
                        if self._unit is None and ((days < _DAYS[0]) | (days > _DAYS[1])).any():
                            self._unit = "us"
                            self.__dict__.pop("reader", None)
                        if (nanos % 1000).any():
                            cut.add(column.path)
        if cut and self._unit is not None:
            raise UnsupportedError(
                f"timestamps beyond the years 1678 to 2261 need microseconds, and {', '.join(sorted(cut))} has"
                " nanoseconds: no type of Arrow holds both",
                path=self._file.source.path,
                hint="--select names other columns to show",
            )

    def with_instants(self, schema: pa.Schema) -> pa.Schema:
        """The schema with INT96 timestamps as instants in microseconds, as Spark reads them.

        A column with fields of INT96 and of other timestamps, which no writer makes, keeps its type.
        """
        names = {column.path.partition(".")[0] for column in self._int96} | {column.path for column in self._int96}
        others = {
            column.path.partition(".")[0]
            for column in self._file.columns
            if column.unit is not None and "." in column.path
        }
        wanted = names - others
        fields = [
            (field, _with_leaves(field.type, _instant) if field.name in wanted else field.type) for field in schema
        ]
        return pa.schema([field.with_type(kind) for field, kind in fields])

    @cached_property
    def _int96(self) -> Sequence[Column]:
        return [column for column in self._file.columns if column.physical == "INT96"]

    def _alike(self, groups: Sequence[_Rows], columns: set[int]) -> Iterator[pa.RecordBatch]:
        """Read rows of row groups whose paged columns are the same. These other columns are read whole."""
        whole = (chunk for group in groups for chunk in self._chunks(group.row_group, columns))
        self._plan.will_read(
            whole, ((some.chunk, some.places or ()) for group in groups for some in group.paged.values())
        )
        at = 0
        for count, others in self._others(groups, columns):
            yield from self._joined(_slice(groups, at, count), others)
            at += count

    def empty_batch(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with these columns (all if None). Raises CorruptFile."""
        with self._faults("the schema"):
            names = [self._paths[index] for index in sorted(self.chosen(columns))]
            table = self.reader.read_row_groups([], columns=names, use_threads=False)
        return without_views(
            pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], table.column_names)
        )

    def columns_to_announce(self, columns: Sequence[str] | None) -> tuple[set[int], set[int]]:
        """The ordinals of these columns (all if None), and of those at the top level; none if Arrow can't read the
        footer, because Arrow only reads files with matching rows."""
        try:
            return self.chosen(columns), self.flat
        except (pa.ArrowException, OSError, ValueError):
            return set(), set()

    @contextmanager
    def _faults(self, what: str) -> Iterator[None]:
        """Raise CorruptFile for errors of Arrow. `what`: what is read."""
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            if isinstance(error, BloomError):
                raise
            reason = " ".join(str(error).split())[:200]
            path = self._file.source.path
            raise CorruptFile(
                f"{what} can't be read: {reason}", path=path, hint="--select names the columns to read"
            ) from None

    def _chunks(self, row_group: int, columns: set[int]) -> list[ColumnChunk]:
        """The chunks of these columns in a row group, in order."""
        footer = self._filters.footer
        return list(footer.chunks(columns, row_group))

    def _others(self, groups: Sequence[_Rows], columns: set[int]) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Yield the number of rows of each batch, and the columns that are read from whole chunks, if any."""
        if columns or not groups[0].paged:
            batches = self._whole(groups, columns)  # they may have few rows
            for some in runs(batches, lambda batch: (batch.num_rows, batch.nbytes), (_AT_ONCE, _BYTES_MOST)):
                batch = pa.concat_batches(some)
                yield batch.num_rows, batch
            return
        count = _count(groups)
        for at in range(0, count, _AT_ONCE):
            yield min(_AT_ONCE, count - at), None

    def _paged(self, row_group: int, chosen: set[int], rows: memoryview) -> Mapping[int, ChosenPages]:
        """The chunks of which only some pages are read, by the ordinals of their columns."""
        footer = self._filters.footer
        paged: dict[int, ChosenPages] = {}
        count, local = footer.row_group(row_group).rows, not self._file.source.request_bytes
        some_rows = local and len(rows) * _OF_ROWS <= count
        if self._plan.whole(row_group):
            return paged
        columns = chosen & self.flat
        if some_rows and count <= _SMALL_ROWS:
            columns = {index for index in columns if footer.columns[index].physical not in _FIXED}
        for chunk in footer.chunks(columns, row_group):
            if chunk.encrypted:
                continue
            pages = page_index.pages_of(self._file.source, footer, chunk)
            by_headers = pages is None and some_rows
            if by_headers:
                pages = page_index.pages_by_headers(self._file.source, chunk, count)
            some = page_index.with_rows(pages or (), rows)
            if pages is not None and (some_rows or page_index.worth(some, chunk)):
                paged[chunk.column.index] = ChosenPages(chunk, count, some, by_headers)
        return paged

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow reads them, with view types replaced. Raises CorruptFile."""
        with self._faults("the schema"):
            return without_views_in(self.reader.schema_arrow)

    @cached_property
    def flat(self) -> set[int]:
        """The ordinals of columns at the top level that have a single leaf and a unique name."""
        names = Counter(path.partition(".")[0] for path in self._paths)
        return {
            column.index
            for column, path in zip(self._file.columns, self._paths, strict=True)
            if not column.max_repetition_level and column.max_definition_level < 2 and names[path] == 1
        }

    @cached_property
    def _paths(self) -> Sequence[str]:
        """The leaf columns' paths in the file; those in a table may differ."""
        return [self.reader.schema.column(column.index).path for column in self._file.columns]

    def _joined(self, groups: Sequence[_Rows], others: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        """Join columns that are read by pages, and the others."""
        paged = groups[0].paged
        if not paged and others is not None:
            yield others
            return
        count = step = _count(groups)
        at = 0
        while at < count:
            some = _slice(groups, at, step)
            rows = _count(some)
            try:
                arrays = {index: self._values(some, index) for index in paged}
            except _TooManyBytes:
                step = max(step // 8, 1)
                continue
            yield self._batch(arrays, None if others is None else others.slice(at, rows))
            at += rows

    def _batch(self, arrays: Mapping[int, pa.Array], others: pa.RecordBatch | None) -> pa.RecordBatch:
        """A batch with the columns in the file's order."""
        columns = {self._paths[index]: [array] for index, array in arrays.items()}
        if others is not None:
            for name, column in zip(others.schema.names, others.columns, strict=True):  # names can be equal
                columns.setdefault(name, []).append(column)
        fields = [field for field in self.reader.schema_arrow if field.name in columns]
        ordered_arrays = [columns[field.name].pop(0) for field in fields]
        kinds = [field.with_type(array.type) for field, array in zip(fields, ordered_arrays, strict=True)]
        return pa.RecordBatch.from_arrays(ordered_arrays, schema=pa.schema(kinds))

    def _values(self, groups: Sequence[_Rows], column: int) -> pa.Array:
        """The values of a column in some rows, decoded by pages. Raises TooManyBytes for several rows."""
        footer = self._filters.footer
        paged = [group.paged[column] for group in groups]
        chosen = [
            some._replace(places=page_index.with_rows(some.places or (), group.rows))
            for some, group in zip(paged, groups, strict=True)
        ]
        parts, at, size, chunk = [], 0, 0, -1
        decoded = page_decoder.decoded(self._file.source, chosen, typed=footer, unit=self._unit)
        for part in (part for several in decoded for part in several.by_chunk()):
            if part.chunk != chunk:
                chunk, at = part.chunk, 0
            rows = groups[chunk].rows
            end = bisect_left(rows, part.rows[-1].as_py() + 1, at)
            if end > at:
                kind = _type(part.values.type)
                values = part.values if kind == part.values.type else part.values.cast(kind)
                parts.append(values.take(int64s(_positions(rows[at:end], part.rows))))
                size += parts[-1].nbytes
            if size > _BYTES_MOST and _count(groups) > 1:
                raise _TooManyBytes
            at = end
        return pa.concat_arrays(parts)

    def _whole(self, groups: Sequence[_Rows], columns: set[int]) -> Iterator[pa.RecordBatch]:
        """Rows from whole chunks."""
        fixed = all(self._filters.footer.columns[index].physical in _FIXED for index in columns)
        # those whose values are decoded together have few in all, because all are in memory
        most = _VALUES_TOGETHER // max(len(columns), 1) if fixed else 0
        for some in runs(groups, lambda group: (self._count_of(group),), (most,)):
            with self._faults(f"the rows of row group {some[0].row_group}"):
                try:
                    small = fixed and self._count_of(some[0]) <= _SMALL_ROWS
                    yield from self._whole_of(some, columns, _SMALL_ROWS if small else _AT_ONCE)
                except (pa.ArrowException, OSError, ValueError) as error:
                    if len(some) > 1:  # one of them is damaged, perhaps behind its last row that is read
                        for group in some:
                            yield from self._whole([group], columns)
                        continue
                    if not isinstance(error, BloomError):
                        self._check_pages(some[0].row_group, columns)
                    raise

    def _count_of(self, group: _Rows) -> int:
        """The number of all rows of a row group."""
        return self._filters.footer.row_group(group.row_group).rows

    def _whole_of(self, groups: Sequence[_Rows], columns: set[int], at_once: int) -> Iterator[pa.RecordBatch]:
        """Rows of row groups, of which `at_once` are decoded at a time.

        Raises ValueError if Arrow ends before the last row without an error.
        """
        numbers = [group.row_group for group in groups]
        names = [self._paths[index] for index in sorted(columns)]
        footer, places = self._filters.footer, numbers
        reader = page_decoder.in_plain(self._file.source, footer, numbers, columns, self._unit)
        if reader is None:
            reader = self.reader
        else:
            places = list(range(len(numbers)))
        batches = reader.iter_batches(at_once, row_groups=places, columns=names, use_threads=False)
        before = [0, *accumulate(map(self._count_of, groups))]
        rows = [number + row for number, group in zip(before, groups, strict=False) for row in group.rows]
        if len(groups) > 1:  # a row group with too few values would give its place to the next one's
            batches = list(batches)
            if sum(batch.num_rows for batch in batches) != before[-1]:
                raise ValueError("row groups with other numbers of rows")  # they are read one by one
        first = at = 0
        for batch in batches:
            end = bisect_left(rows, first + batch.num_rows, at)
            if end > at:
                output = batch if self.schema == self.reader.schema_arrow else without_views(batch)
                yield output.take(int64s(row - first for row in rows[at:end]))
            first, at = first + batch.num_rows, end
            if at == len(rows):
                return
        if at < len(rows):  # Arrow only reports a short column if it reads others at the same time
            raise ValueError(f"{', '.join(names)}: the pages have {counted(first, 'row')} and no row {rows[at]}")

    def _check_pages(self, row_group: int, columns: set[int]) -> None:
        """Raise the error of a page of these columns that can't be decoded: it says where the page is, and Arrow's
        error doesn't. Checks columns at the top level only."""
        footer = self._filters.footer
        rows = footer.row_group(row_group).rows
        for chunk in self._chunks(row_group, columns & self.flat):
            for _ in page_decoder.decoded(self._file.source, [ChosenPages(chunk, rows, None)]):
                pass

    @cached_property
    def reader(self) -> pq.ParquetFile:
        """Arrow's reader of the file. Raises errors of Arrow."""
        file = pa.PythonFile(SourceStream(self._file.source), "r")
        return page_decoder.arrow_file(file, self._filters.footer.for_arrow, self._unit)
