"""Searches a column of a Parquet file for values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import CorruptFile
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import counting
from bloomcli.formats.column_search import (
    SCOPE,
    BoundedUnit,
    ByKeys,
    Candidates,
    ColumnSearch,
    Matches,
    Scope,
    decoded,
    each_row,
    is_nan,
    within,
)
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.parquet import like_files, page_decoder
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.lookups import stored_forms
from bloomcli.formats.parquet.records import Records
from bloomcli.formats.parquet.request_plan import RequestPlan
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.words import counted

if TYPE_CHECKING:
    from bloomcli.formats.located_file import LocatedFile
    from bloomcli.values.literals import Literal

_KEYS_MOST: Final = 100_000
"""The maximum number of values that are compared with the bounds of pages; with more, few pages are excluded."""


class ParquetSearch(ColumnSearch):
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
        super().__init__(file.source, file.look_up, column, column)
        self._file = file
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
        footer = self._filters.footer
        chunks = footer.row_group(candidates.row_group).chunks
        key = ChunkKey(candidates.row_group, column.index, chunks[column.index])
        chunk = footer.chunk(key)
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
        chosen, owners = wanted.forms.take(candidates.forms), wanted.owners.take(candidates.forms)
        parts = page_decoder.decoded(file.source, chunk, footer.start, candidates.rows, places)
        for part in page_decoder.joined(parts, len(chosen)):
            self.pages_read += part.pages
            texts = owners.take(pc.index_in(wanted_values.comparable(part.values, column), value_set=chosen))
            if candidates.nan and wanted.nan is not None:
                texts = pc.if_else(pc.fill_null(is_nan(part.values), False), wanted.nan, texts)
            if texts.null_count < len(texts):
                there = pc.indices_nonzero(texts.is_valid())
                repeated = column.max_repetition_level > 0
                yield each_row(part.rows.take(there), texts.take(there), repeated=repeated)

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """Yield the values that each row group may have."""
        if scope.pages_follow:
            self._located.chunks_read_whole = self._file.source.request_bytes
        units = scope.row_groups
        if units is not None and scope.values_filtered:
            return self._filtered(wanted, units)
        if units is not None and wanted.literals is not None:
            return self._indexed(wanted, wanted.literals, units, checked=scope.bounds_checked)
        if wanted.literals is None and self._file.source.request_bytes:
            hashes = memoryview(wanted.hashes).cast("Q")
            self._filters.will_look_up(
                lambda: ((chunk, hashes) for chunk in self._filters.chunks_of(self._column.index))
            )
        return super().candidates(wanted, scope)

    def _filtered(self, wanted: WantedValues, units: Container[int]) -> Iterator[Candidates]:
        """Yield the values within the bounds of each row group, for values that passed the filters of `units`."""
        footer, order = self._filters.footer, ByKeys(wanted.keys, len(wanted.forms))
        for chunk in self._filters.chunks_of(self._column.index):
            forms = counting(0, 0)
            if chunk.row_group in units:
                forms = order.within(decoded(chunk.min_value, self._column), decoded(chunk.max_value, self._column))
            yield Candidates(chunk.row_group, footer.row_group(chunk.row_group).rows, chunk.compressed_bytes, forms)

    def _indexed(
        self, wanted: WantedValues, literals: Sequence[Literal], units: Container[int], *, checked: bool
    ) -> Iterator[Candidates]:
        """Yield the values that each row group may have, for row groups that an index has selected.

        A chunk that takes one request is read whole, without its filter, which would take another request. Statistics
        can only be trusted if the filter, or the index, contains their bounds. If the index has checked them, the
        bounds and the page index select what is read, with one request for the largest part.
        """
        footer, whole = self._filters.footer, self._located.chunks_read_whole
        self._plan.sparing = checked
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
        return like_files.filter_lookup(self._filters.footer, self._column, wanted, self._scanned(columns))

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


def _sorted_keys(wanted: WantedValues, candidates: Candidates) -> list[Any] | None:
    """The sort keys of the candidates, ascending; None for NaN, too many candidates, or values without order."""
    if candidates.nan or wanted.keys is None or len(candidates.forms) > _KEYS_MOST:
        return None
    if isinstance(wanted.keys, list):
        return sorted(wanted.keys[at] for at in candidates.forms.to_pylist())
    found: list[Any] = sorted(wanted.keys.take(candidates.forms).to_pylist())
    return found
