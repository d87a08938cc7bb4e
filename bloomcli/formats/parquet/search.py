"""Searches a column of a Parquet file for values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile
from bloomcli.formats import answer, finding
from bloomcli.formats.arrays import counting, numbers_of
from bloomcli.formats.filter_answer import FilterLookup
from bloomcli.formats.finding import Candidates, Matches, RowGroupHashes, WantedValues
from bloomcli.formats.parquet import page_decoder, page_lookup, page_matches
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.like_files import filter_lookup
from bloomcli.formats.parquet.lookups import stored_forms
from bloomcli.formats.parquet.page_lookup import PageLookup
from bloomcli.formats.parquet.page_matches import KnownValues
from bloomcli.formats.parquet.page_scan import UnreadablePage
from bloomcli.formats.parquet.page_selection import PagePlace
from bloomcli.formats.parquet.records import Records
from bloomcli.formats.parquet.request_plan import RequestPlan
from bloomcli.formats.parquet.row_scan import RowScan, row_scan
from bloomcli.formats.parquet.stored_hashes import read_first, stored_hashes
from bloomcli.formats.unit_search import BoundedUnit, UnitSearch, decoded, each_row, is_nan, within
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.words import counted

if TYPE_CHECKING:
    from bloomcli.formats.located_file import LocatedFile
    from bloomcli.values.literals import Literal

_KEYS_MOST: Final = 100_000
"""The maximum number of values that are compared with the bounds of pages; with more, few pages are excluded."""


class ParquetSearch(UnitSearch):
    """The search of a column in an open file.

    Args:
        file: the open file.
        filters: its filters.
        column: one of its leaf columns.
        facts_of: returns the facts of a chunk for a number of hashes that are looked up in batches.
    """

    def __init__(
        self,
        file: LocatedFile,
        filters: Filters,
        column: Column,
        facts_of: Callable[[ColumnChunk, int], answer.UnitFacts],
    ) -> None:
        super().__init__(file, column, column)
        self._filters = filters
        self._located = file
        self._facts_of = facts_of
        self._plan = RequestPlan(filters)
        self._records = Records(file, filters, self._plan)

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """All forms that a chunk may store for a value."""
        return stored_forms(literal, self._column)

    def bounded_units(self, count: int) -> Iterator[BoundedUnit]:
        """Yield the column's chunks with their bounds."""
        footer = self._filters.footer
        for key in footer.chunk_keys({self._column.index}):
            chunk = footer.chunk(key)
            yield BoundedUnit(self._facts_of(chunk, count), chunk.min_value, chunk.max_value)

    def matches(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """Yield the rows of a row group that have one of the candidates. Reads only pages that can have one."""
        file, column = self._file, self._column
        key = next(k for k in self._filters.footer.chunk_keys({column.index}) if k.row_group == candidates.row_group)
        chunk = self._filters.footer.chunk(key)
        if not chunk.num_values and not chunk.encrypted:
            if candidates.rows:
                raise _without_values(file.source.path, key, candidates.rows)
            return
        places = None
        if candidates.trusted:
            selected = self._plan.select(key, chunk, candidates.rows, _sorted_keys(wanted, candidates))
            if selected is not None:
                places = selected.pages
                self.pages_left_out += selected.left_out
        done = 0
        if page_matches.readable(wanted, candidates, chunk):
            unread = yield from self._by_bytes(wanted, candidates, chunk, places)
            if unread is None:
                return
            done = unread.row
        lookup = _page_lookup(wanted, candidates)
        parts = page_decoder.decoded(
            file.source, chunk, self._filters.footer.start, candidates.rows, places, lookup=lookup
        )
        try:
            for part in page_decoder.joined(parts, len(candidates.forms)):
                self.pages_read += part.pages
                for equal in self._equal(wanted, candidates, part):
                    yield from _from_row(equal, done)
        finally:
            self.pages_read += 0 if lookup is None else lookup.left_out

    def _by_bytes(
        self, wanted: WantedValues, candidates: Candidates, chunk: ColumnChunk, places: Sequence[PagePlace] | None
    ) -> Generator[Matches, None, UnreadablePage | None]:
        """Yield the rows that have one of the candidates, by comparing bytes; returns where Arrow continues."""
        before, start = self.pages_read, self._filters.footer.start
        texts, forms = (array.take(candidates.forms) for array in (wanted.owners, wanted.forms))
        for found in page_matches.matched(self._file.source, chunk, start, places, wanted, candidates):
            if isinstance(found, UnreadablePage):
                self.pages_read = before  # all pages are read again
                self._records.known.clear()
                return found
            self.pages_read += found.pages
            if len(found.rows):
                known = KnownValues(candidates.row_group, self._column.index, found.rows, found.numbers, forms)
                self._records.known.append(known)
                yield Matches(found.rows, texts.take(found.numbers))
        return None

    def _equal(
        self, wanted: WantedValues, candidates: Candidates, part: page_decoder.DecodedValues
    ) -> Iterator[Matches]:
        """Yield the rows of some pages that have one of the candidates."""
        chosen = wanted.forms.take(candidates.forms)
        values = finding.comparable(part.values, self._column)
        texts = wanted.owners.take(candidates.forms).take(pc.index_in(values, value_set=chosen))
        if candidates.nan and wanted.nan is not None:
            texts = pc.if_else(pc.fill_null(is_nan(part.values), False), wanted.nan, texts)
        there = pc.indices_nonzero(texts.is_valid())
        if len(there):
            repeated = self._column.max_repetition_level > 0
            yield each_row(part.rows.take(there), texts.take(there), repeated=repeated)

    def candidates(self, wanted: WantedValues) -> Iterator[Candidates]:
        """Yield the values that each row group may have."""
        if self.pages_follow:
            self._located.chunks_read_whole = self._file.source.request_bytes
        units = self.row_groups
        if self.values_filtered and isinstance(units, tuple) and len(units) == 1:
            return self._whole_row_group(wanted, *units)
        if self.row_groups is not None and wanted.literals is not None:
            return self._indexed(wanted, wanted.literals, self.row_groups)
        if wanted.literals is None and self._file.source.request_bytes:
            hashes = memoryview(wanted.hashes).cast("Q")
            self._filters.will_look_up(
                lambda: ((chunk, hashes) for chunk in self._filters.chunks_of(self._column.index))
            )
        return super().candidates(wanted)

    def _whole_row_group(self, wanted: WantedValues, unit: int) -> Iterator[Candidates]:
        """Yield all values for one row group, because they were already looked up in its filter. It remains to check
        whether the filter contains the row group's minimum and maximum."""
        for chunk in self._filters.chunks_of(self._column.index):
            rows = self._filters.footer.row_group(chunk.row_group).rows
            forms, trusted = counting(0, 0), True
            if chunk.row_group == unit:
                forms, trusted = counting(0, len(wanted.forms)), self._facts_of(chunk, 0).problem != answer.WRONG
            yield Candidates(chunk.row_group, rows, chunk.compressed_bytes, forms, trusted=trusted)

    def _indexed(
        self, wanted: WantedValues, literals: Sequence[Literal], units: Container[int]
    ) -> Iterator[Candidates]:
        """Yield the values that each row group may have, for row groups that an index has selected.

        A chunk that takes one request is read whole, without its filter, which would take another request. Statistics
        can only be trusted if the filter, or the index, contains their bounds. If the index has checked them, the
        bounds and the page index select what is read, with one request for the largest part.
        """
        footer, whole = self._filters.footer, self._located.chunks_read_whole
        checked = self._plan.sparing = self.bounds_checked
        if checked:
            whole = max(whole, self._file.source.part_bytes)
        chunks = list(self._filters.chunks_of(self._column.index))
        looked_up = {c.row_group for c in chunks if c.row_group in units and c.compressed_bytes > whole}
        found = answer.answers(self._located.unit_facts(self._column, literals, looked_up), explain=False)
        answered = {candidates.row_group: candidates for candidates in self.of_units(wanted, literals, found)}
        every, none = counting(0, len(wanted.forms)), counting(0, 0)
        for chunk in chunks:
            group, rows = chunk.row_group, footer.row_group(chunk.row_group).rows
            there = group in units
            forms, nan = every if there else none, there and wanted.nan is not None
            if there and checked:
                low, high = decoded(chunk.min_value, self._column), decoded(chunk.max_value, self._column)
                forms = within(every, wanted.keys, low, high)
            unread = Candidates(group, rows, chunk.compressed_bytes, forms, nan=nan, trusted=checked)
            yield answered.get(group, unread)

    def row_group_hashes(
        self, count: int, ranges: Sequence[tuple[Any, Any]] | None, stop: Stop
    ) -> Iterator[RowGroupHashes] | None:
        """The column's chunks, if reading them takes less time than looking up the values in their filters."""
        chunks = list(self._filters.chunks_of(self._column.index))
        units = self.row_groups
        searched = [chunk for chunk in chunks if units is None or chunk.row_group in units]
        source = self._file.source
        if not read_first(searched, count, source.request_bytes):
            return None
        return self._stored(chunks, frozenset(chunk.row_group for chunk in searched), ranges, stop)

    def _stored(
        self,
        chunks: Sequence[ColumnChunk],
        units: Container[int],
        ranges: Sequence[tuple[Any, Any]] | None,
        stop: Stop,
    ) -> Iterator[RowGroupHashes]:
        """Yield the column's chunks, with the hashes of their values for these row groups."""
        footer = self._filters.footer
        for chunk in chunks:
            rows = footer.row_group(chunk.row_group).rows
            empty = Candidates(chunk.row_group, rows, chunk.compressed_bytes, counting(0, 0))
            if chunk.num_values < rows:  # a row has a value or a null in each column
                raise CorruptFile("fewer values than rows", path=self._file.source.path)
            searched = chunk.row_group in units and chunk.num_values > 0
            facts = partial(self._facts_of, chunk, 0)
            if searched and not self.outside(chunk.min_value, chunk.max_value, ranges, facts):
                yield RowGroupHashes(empty, stored_hashes(self._file.source, chunk, footer.start, stop))
            else:
                yield RowGroupHashes(empty, None)

    def prepare(
        self, wanted: WantedValues, candidates: Candidates, columns: Sequence[str] | None, *, rows: bool
    ) -> None:
        """Announce the reads of a row group to a store."""
        if self._file.source.request_bytes:
            keys = _sorted_keys(wanted, candidates)
            chosen, flat = self._records.columns_to_announce(columns) if rows else (set(), set())
            self._plan.prepare(self._column.index, candidates, keys, chosen, flat)

    def records(
        self, candidates: Candidates, rows: pa.Int64Array, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of a row group."""
        return self._records.read(candidates.row_group, rows, columns)

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with the columns of records."""
        return self._records.empty_batch(columns)

    def record_schema(self) -> pa.Schema:
        """The columns as pyarrow reads them; INT96 timestamps, which are instants, with their zone."""
        int96 = {column.path for column in self._file.columns if column.physical == "INT96"}
        return pa.schema(
            [
                field.with_type(pa.timestamp("us", "UTC")) if field.name in int96 else field
                for field in self._records.checked_schema()
            ]
        )

    def filter_lookup(self, wanted: WantedValues, columns: Sequence[str] | None) -> FilterLookup | None:
        """The lookup in the filters of files like this one; None if they can't answer it."""
        footer, summed = self._filters.footer, self._scanned(columns)

        def scan() -> RowScan | None:
            return row_scan(footer, self._column, wanted, lambda: self._records.plain_columns(columns), summed)

        return filter_lookup(footer, self._column, wanted, summed, scan)

    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the chunks of the searched column and of these columns."""
        footer = self._filters.footer
        chosen = self._scanned(columns)
        if chosen is None:
            return self._file.total_bytes()
        return sum(footer.chunk(key).compressed_bytes for key in footer.chunk_keys(chosen))

    def _scanned(self, columns: Sequence[str] | None) -> set[int] | None:
        """The ordinals of the columns that a scan reads; None: all."""
        if columns is None:
            return None
        return {c.index for c in self._file.columns if c.path in columns} | {self._column.index}


def _without_values(path: str, key: ChunkKey, rows: int) -> CorruptFile:
    return CorruptFile(
        f"the column has no values, and the row group {counted(rows, 'row')}",
        path=path,
        field=f"row_groups[{key.row_group}].columns[{key.column}].meta_data.num_values",
        hint="the metadata are wrong; get the file from its source again",
    )


def _from_row(matches: Matches, row: int) -> Iterator[Matches]:
    """Yield the matches from a row on."""
    at = bisect_left(numbers_of(matches.rows), row)
    if at < len(matches.rows):
        yield Matches(matches.rows[at:], matches.texts[at:])


def _page_lookup(wanted: WantedValues, candidates: Candidates) -> PageLookup | None:
    """The lookup of the candidates in single pages; None if their hashes can't be compared, or they are too many."""
    if candidates.nan or not wanted.hashes or len(candidates.forms) > page_lookup.MOST:
        return None
    chosen = candidates.forms.to_pylist()
    return PageLookup(b"".join(wanted.hashes[8 * at : 8 * at + 8] for at in chosen))


def _sorted_keys(wanted: WantedValues, candidates: Candidates) -> list[Any] | None:
    """The sort keys of the candidates, ascending; None for NaN, too many candidates, or values without order."""
    if candidates.nan or wanted.keys is None or len(candidates.forms) > _KEYS_MOST:
        return None
    if isinstance(wanted.keys, list):
        return sorted(wanted.keys[at] for at in candidates.forms.to_pylist())
    found: list[Any] = sorted(wanted.keys.take(candidates.forms).to_pylist())
    return found
