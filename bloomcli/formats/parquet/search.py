"""Searches a column of a Parquet file for values, and the filters of many files like it in compiled code.

The other files are local, and have the schema of the open file. Compiled code tells which of their row groups can't
have any of the values and, of many values, which ones a file may have. If the column is small, and its page headers
are sound, Arrow decodes it whole. A file that then may have a value, or isn't encoded as usual, is opened and
searched for the remaining values.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.errors import CorruptFile
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import counting
from bloomcli.formats.column_search import (
    SCOPE,
    Candidates,
    ColumnSearch,
    FoundRows,
    Matches,
    Scope,
    decoded,
    each_row,
    is_nan,
)
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import page_decoder, spec
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import Footer, read_tail
from bloomcli.formats.parquet.lookups import stored_forms
from bloomcli.formats.parquet.page_decoder import ChosenPages, ChunkEnd, DecodedValues, arrow_file, whole_column
from bloomcli.formats.parquet.page_index import HasWithin
from bloomcli.formats.parquet.records import Records, RequestPlan
from bloomcli.formats.parquet.spec import FOOTER_TAIL_BYTES, field_ids
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import ChunkKey, Column, ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal, kind_of
from bloomcli.words import counted

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from bloomcli.formats.located_file import LocatedFile

_ROWS_TOGETHER: Final = 1 << 20
_BYTES_TOGETHER: Final = 8 << 20
"""Rows of row groups, and compressed bytes of their chunks, that are searched together."""


class ParquetSearch(ColumnSearch):
    """The search of a column in an open file.

    Args:
        file: the open file.
        filters: its filters.
        column: one of its leaf columns.
        facts_of: returns the facts of a chunk for a number of hashes that are looked up in batches.
    """

    _file: LocatedFile

    def __init__(
        self,
        file: LocatedFile,
        filters: Filters,
        column: Column,
        facts_of: Callable[[ColumnChunk, int], answer.UnitFacts],
    ) -> None:
        super().__init__(file, column, column)
        self._filters = filters
        self._facts_of = facts_of
        self._plan = RequestPlan(filters)
        self._records = Records(file, filters, self._plan)
        self._chunks: dict[int, ColumnChunk] = {}
        self._sound_pages: Mapping[int, int] = {}

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """All forms that a chunk may store for a value."""
        return stored_forms(literal, self._column)

    def bounded_units(self, count: int) -> Iterator[answer.UnitFacts]:
        """Yield the column's chunks with their bounds."""
        for chunk in self._every_chunk():
            yield self._facts_of(chunk, count)._replace(low=chunk.min_value, high=chunk.max_value)

    def together(self, several: Sequence[Candidates]) -> Iterator[Sequence[Candidates]]:
        """Split row groups of a local file into those that are searched together; each is a request of its own to a
        store."""
        if self._file.source.request_bytes:
            yield from super().together(several)
            return
        yield from page_decoder.runs(
            several, lambda candidates: (candidates.rows, candidates.chunk_bytes), (_ROWS_TOGETHER, _BYTES_TOGETHER)
        )

    def matches(self, wanted: WantedValues, several: Sequence[Candidates]) -> Iterator[tuple[Candidates, Matches]]:
        """Yield the rows of row groups that have one of their candidates. Reads only pages that can have one."""
        searched = [(candidates, self._chunk(candidates.row_group)) for candidates in several]
        with_values = [some for some in searched if self._has_values(*some)]
        every = self._decoded_whole(wanted, [some for some, _ in with_values])
        if every is None:
            chunks = (self._chosen_pages(wanted, *some) for some in with_values)
            every = page_decoder.decoded(self._file.source, chunks)
        nan = wanted.nan is not None and any(candidates.nan for candidates, _ in with_values)
        if not nan:  # leave out most of the values that aren't wanted
            every = (part.take(wanted.likely(wanted_values.comparable(part.values, self._column))) for part in every)
        for parts in page_decoder.joined(every, len(wanted.forms)):
            values = [wanted_values.comparable(part.values, self._column) for part in parts]
            forms = wanted.likely_forms(values)
            positions = pc.index_in(pa.concat_arrays(values), value_set=wanted.forms.take(forms))
            first = 0
            for part in (part for several in parts for part in several.by_chunk()):
                self.pages_read += part.pages
                candidates = with_values[part.chunk][0]
                value_forms = _among(forms.take(positions.slice(first, len(part.values))), candidates.forms)
                first += len(part.values)
                if candidates.nan and wanted.nan is not None:
                    value_forms = pc.if_else(pc.fill_null(is_nan(part.values), False), len(wanted.forms), value_forms)
                hits = pc.indices_nonzero(value_forms.is_valid())
                if len(hits):
                    repeated = self._column.max_repetition_level > 0
                    yield candidates, each_row(part.rows.take(hits), value_forms.take(hits), repeated=repeated)

    def _decoded_whole(self, wanted: WantedValues, searched: Sequence[Candidates]) -> Iterator[DecodedValues] | None:
        """The values of row groups that can be decoded whole; None if they can't be."""
        pages = [self._sound_pages.get(candidates.row_group, 0) for candidates in searched]
        if not all(pages):
            return None
        rows = [candidates.rows for candidates in searched]
        groups = [candidates.row_group for candidates in searched]
        stored = whole_column(lambda: self._records.reader, groups, self._column.index, wanted.forms.type, sum(rows))
        if stored is None:
            return None
        ends = map(ChunkEnd, range(len(rows)), accumulate(rows), pages)
        places = pa.concat_arrays([counting(0, count) for count in rows])
        return iter([DecodedValues(stored.combine_chunks(), places, list(ends))])

    def _chosen_pages(self, wanted: WantedValues, candidates: Candidates, chunk: ColumnChunk) -> ChosenPages:
        """The pages of a row group's chunk that can have one of the candidates."""
        places = None
        if candidates.trusted:
            selected = self._plan.select(chunk, _has_within(wanted, candidates))
            if selected is not None:
                places = selected.pages
                self.pages_left_out += selected.left_out
        return ChosenPages(chunk, candidates.rows, places)

    def _chunk(self, row_group: int) -> ColumnChunk:
        """The column's chunk in a row group."""
        chunk = self._chunks.get(row_group)
        if chunk is None:
            key = ChunkKey(row_group, self._column.index)
            chunk = self._chunks[row_group] = self._filters.footer.chunk(key)
        return chunk

    def _every_chunk(self) -> Iterator[ColumnChunk]:
        """Yield the column's chunk in each row group."""
        return (self._chunk(key.row_group) for key in self._filters.footer.chunk_keys({self._column.index}))

    def _has_values(self, candidates: Candidates, chunk: ColumnChunk) -> bool:
        """Whether a row group's chunk has values. Raises CorruptFile if only the row group has rows."""
        if candidates.rows and not (chunk.num_values or chunk.encrypted):
            raise CorruptFile(
                f"the column has no values, and the row group {counted(candidates.rows, 'row')}",
                path=self._file.source.path,
                field=f"{chunk.key.field}.meta_data.num_values",
                hint="the metadata are wrong; get the file from its source again",
            )
        return bool(chunk.num_values) or chunk.encrypted

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """Yield the values that each row group may have."""
        if scope.pages_follow:
            self._file.chunks_read_whole = self._file.source.request_bytes
        units, self._sound_pages = scope.row_groups, scope.sound_pages
        if scope.filtered is not None:
            return self._filtered(wanted, scope.filtered)
        if units is not None and wanted.literals is not None:
            return self._indexed(wanted, wanted.literals, units, checked=scope.bounds_checked)
        if wanted.literals is None and self._file.source.request_bytes:
            hashes = memoryview(wanted.hashes).cast("Q")
            self._filters.will_look_up(lambda: ((chunk, hashes) for chunk in self._every_chunk()))
        return super().candidates(wanted, scope)

    def _filtered(self, wanted: WantedValues, filtered: Mapping[int, pa.Int64Array]) -> Iterator[Candidates]:
        """Yield those of the values that passed the filter of each row group which are within its bounds."""
        for chunk in self._every_chunk():
            group, low, high = chunk.row_group, *self._bounds(chunk)
            forms = wanted.within(filtered.get(group, wanted.every[:0]), low, high)
            yield Candidates(group, self._filters.footer.row_group(group).rows, chunk.compressed_bytes, forms)

    def _bounds(self, chunk: ColumnChunk) -> tuple[Any, Any]:
        """The bounds of a chunk's values, decoded."""
        return decoded(chunk.min_value, self._column), decoded(chunk.max_value, self._column)

    def _indexed(
        self, wanted: WantedValues, literals: Sequence[Literal], units: Container[int], *, checked: bool
    ) -> Iterator[Candidates]:
        """Yield the values that each row group may have, for row groups that an index has selected.

        A chunk that takes one request is read whole, without its filter, which would take another request. Statistics
        can only be trusted if the filter, or the index, contains their bounds. If the index has checked them, the
        bounds and the page index select what is read, with one request for the largest part.
        """
        footer, whole = self._filters.footer, self._file.chunks_read_whole
        self._plan.sparing = checked
        if checked:
            whole = max(whole, self._file.source.part_bytes)
        chunks = list(self._every_chunk())
        looked_up = {c.row_group for c in chunks if c.row_group in units and c.compressed_bytes > whole}
        answers = answer.answers(self._file.unit_facts(self._column, literals, looked_up), explain=False)
        answered = {candidates.row_group: candidates for candidates in self.of_units(wanted, answers)}
        for chunk in chunks:
            group, rows = chunk.row_group, footer.row_group(chunk.row_group).rows
            in_units = group in units
            forms, nan = wanted.every if in_units else wanted.every[:0], in_units and wanted.nan is not None
            if checked:
                forms = wanted.within(forms, *self._bounds(chunk))
            unread = Candidates(group, rows, chunk.compressed_bytes, forms, nan=nan, trusted=checked)
            yield answered.get(group, unread)

    def prepare(
        self, wanted: WantedValues, candidates: Candidates, columns: Sequence[str] | None, *, rows: bool
    ) -> None:
        """Announce the reads of a row group to a store."""
        if self._file.source.request_bytes:
            has_within = _has_within(wanted, candidates)
            chosen, flat = self._records.columns_to_announce(columns) if rows else (set(), set())
            self._plan.prepare(self._column.index, candidates, has_within, chosen, flat)

    def records(self, rows: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Read rows of row groups."""
        return self._records.read([(some.candidates.row_group, some.rows) for some in rows], columns)

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with the columns of records."""
        return self._records.empty_batch(columns)

    def record_schema(self) -> pa.Schema:
        """The columns as pyarrow reads them; INT96 timestamps, which are instants, with their zone."""
        return self._records.with_instants(self._records.schema)

    def filter_lookup(self, wanted: WantedValues, columns: Sequence[str] | None) -> FilterLookup | None:
        """The lookup in the filters of files with the schema of this one; None if they can't answer it, without
        filters and bounds of integers, and for a path in a VARIANT: each file tells whether there are values of other
        types."""
        footer, column, literals = self._filters.footer, self._column, wanted.literals
        signed = column.physical in {"INT32", "INT64"} and column.signed and column.wide is None
        # of few signed integers, compiled code compares the values with the bounds of chunks, too
        bounded = signed and literals is not None and wanted.keys is not None and len(wanted.keys) > 0
        if (
            column.untyped is not None
            or footer.signed
            or column.physical == "BOOLEAN"
            or wanted.nan is not None
            or any(literal.unknowable is not None for literal in literals or ())
            or not (bounded or any(chunk.bloom_filter_offset is not None for chunk in self._every_chunk()))
        ):
            return None
        hashes, positions = (wanted.hashes, None) if literals is not None else wanted.by_hash
        ids, summed = field_ids("FileMetaData"), self._scanned(columns)
        query = kernels.FilterQuery(
            parquet_limits.THRIFT_MAX_DEPTH,
            {ids[field]: footer.top.raw(field) for field in _SAME},
            array("i", (number for leaf in footer.columns for number in _numbers(footer, leaf))),
            column.index,
            None if summed is None else bytes(leaf.index in summed for leaf in footer.columns),
            hashes,
            array("q", wanted.keys or ()).tobytes() if bounded else None,
            positions is not None,
        )
        return FilterLookup("parquet", query, positions, partial(_may_match, wanted.forms, column.index))

    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the chunks of the searched column and of these columns."""
        footer = self._filters.footer
        chosen = self._scanned(columns)
        if chosen is None:
            return self._file.total_bytes()
        others = footer.chunks(chosen - {self._column.index})
        return sum(chunk.compressed_bytes for chunk in (*self._every_chunk(), *others))

    def _scanned(self, columns: Sequence[str] | None) -> set[int] | None:
        """The ordinals of the columns that a scan reads; all if None."""
        if columns is None:
            return None
        return self._chosen(columns) | {self._column.index}


_NULL: Final = pa.nulls(1, pa.int64())[0]


def _among(positions: pa.Int64Array, forms: pa.Int64Array) -> pa.Int64Array:
    """Replace positions of forms that aren't among the ascending ones of a row group, which can't have the others by
    its filter or statistics, by nulls."""
    if not len(forms):
        return pa.nulls(len(positions), pa.int64())
    low, high = forms[0], forms[-1]  # scalars of Arrow: a comparison with Python's numbers would import pandas
    first, last = low.as_py(), high.as_py()
    if last - first < len(forms):  # all between two bounds
        least, most = pc.min_max(positions).as_py().values()
        if least is None or first <= least <= most <= last:
            return positions
        inside = pc.and_(pc.greater_equal(positions, low), pc.less_equal(positions, high))
    else:
        inside = pc.is_in(positions, value_set=forms)
    return pc.if_else(inside, positions, _NULL)


def _has_within(wanted: WantedValues, candidates: Candidates) -> HasWithin | None:
    """Returns whether a row group may have a value between two bounds; None if bounds exclude none: NaN, and values
    without order."""
    if candidates.nan or wanted.keys is None:
        return None
    return lambda low, high: len(wanted.within(candidates.forms, low, high)) > 0


_ORDERED: Final = 1
_DEPRECATED: Final = 2
_DIRECT: Final = 4
_FEW: Final = 6
"""Up to this number of values, comparisons with each take less time than a lookup in a hash table."""
_SAME: Final = ("schema", "created_by", "column_orders")
"""Footer fields that determine the columns, and whose bounds can be trusted."""


def _numbers(footer: Footer, column: Column) -> tuple[int, int, int, int]:
    """The numbers of a column for `kernels.FilterQuery`."""
    trust = footer.trust(column)
    integer = column.logical is None or kind_of(column) == "INTEGER"  # `_may_match` sees the type as Arrow reads it
    direct = integer and column.signed and not column.max_repetition_level and column.max_definition_level < 2
    flags = _ORDERED * trust.ordered + _DEPRECATED * trust.deprecated + _DIRECT * direct
    return spec.ENUMS["Type"].get(column.physical, -1), flags, *trust.kind_of_bounds


def _may_match(forms: pa.Array, column: int, source: Source, row_groups: Sequence[int], values: int) -> bool:
    """Whether a column's chunks in row groups may have one of the forms, by a comparison of all their values.

    Args:
        forms: as `WantedValues.forms`.
        column: the column's ordinal.
        source: the file.
        row_groups: their numbers. The headers of the column's pages have been checked.
        values: the number of their values.
    """

    def opened() -> pq.ParquetFile:
        size = read_tail(source).footer_length
        footer = source.read_at(source.size - FOOTER_TAIL_BYTES - size, size)
        return arrow_file(pa.OSFile(f"/dev/fd/{source.fileno()}"), footer)  # read without Python's lock

    stored = whole_column(opened, row_groups, column, forms.type, values)
    if stored is None:
        return True
    masks = [pc.equal(stored, form) for form in forms] if len(forms) <= _FEW else [pc.is_in(stored, value_set=forms)]
    return any(pc.any(some).as_py() for some in masks)
