"""Searches a column of a Parquet file for values, and the filters of many files like it in compiled code.

The other files are local, and have the schema of the open file. Compiled code tells which of their row groups can't
have any of the values and, of many values, which ones a file may have. A file that may have a value, or isn't encoded
as writers usually do, is opened and searched for the remaining values.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.errors import CorruptFile
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import counting, repeated
from bloomcli.formats.column_search import (
    SCOPE,
    BoundedUnit,
    ByKeys,
    Candidates,
    ColumnSearch,
    FoundRows,
    Matches,
    Scope,
    decoded,
    each_row,
    is_nan,
    within,
)
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.parquet import idl, page_decoder
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.formats.parquet.lookups import stored_forms
from bloomcli.formats.parquet.page_decoder import ChosenPages
from bloomcli.formats.parquet.records import Records, RequestPlan
from bloomcli.formats.parquet.spec import field_ids
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.values.literals import Literal
from bloomcli.words import counted

if TYPE_CHECKING:
    from bloomcli.formats.located_file import LocatedFile

_KEYS_MOST: Final = 100_000
"""The maximum number of values that are compared with the bounds of pages; with more, few pages are excluded."""
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

    def together(self, several: Sequence[Candidates]) -> Iterator[Sequence[Candidates]]:
        """Split row groups of a local file into those that are searched together; each is a request of its own to a
        store."""
        if self._file.source.request_bytes:
            yield from super().together(several)
            return
        some: list[Candidates] = []
        rows = size = 0
        for candidates in several:
            if some and (rows + candidates.rows > _ROWS_TOGETHER or size + candidates.chunk_bytes > _BYTES_TOGETHER):
                yield some
                some, rows, size = [], 0, 0
            some.append(candidates)
            rows, size = rows + candidates.rows, size + candidates.chunk_bytes
        if some:
            yield some

    def matches(self, wanted: WantedValues, several: Sequence[Candidates]) -> Iterator[tuple[Candidates, Matches]]:
        """Yield the rows of row groups that have one of their candidates. Reads only pages that can have one."""
        searched = [(candidates, *self._chunk(candidates)) for candidates in several]
        with_values = [some for some in searched if self._has_values(*some)]
        forms = _forms_of([candidates for candidates, *_ in with_values], len(wanted.forms))
        chosen = wanted.forms.take(forms)
        chunks = (self._chosen_pages(wanted, *some) for some in with_values)
        decoded_parts = page_decoder.decoded(self._file.source, self._filters.footer.start, chunks)
        for parts in page_decoder.joined(decoded_parts, len(chosen)):
            values = [wanted_values.comparable(part.values, self._column) for part in parts]
            positions = pc.index_in(pa.chunked_array(values), value_set=chosen).combine_chunks()
            first = 0
            for part in parts:
                self.pages_read += part.pages
                candidates = with_values[part.chunk][0]
                at = positions.slice(first, len(part.values))
                first += len(part.values)
                if at.null_count == len(at) and not candidates.nan:
                    continue
                there = pc.indices_nonzero(at.is_valid())
                found = forms.take(at.take(there))
                if len(forms) != len(candidates.forms):  # the row group can't have others, by its filter
                    possible = candidates.forms.filter(pc.is_in(candidates.forms, value_set=pc.unique(found)))
                    inside = pc.is_in(found, value_set=possible)
                    there, found = there.filter(inside), found.filter(inside)
                texts = wanted.owners.take(found)
                if candidates.nan and wanted.nan is not None:
                    there, texts = _with_nan(there, texts, part.values, wanted.nan)
                if len(there):
                    repeated = self._column.max_repetition_level > 0
                    yield candidates, each_row(part.rows.take(there), texts, repeated=repeated)

    def _chosen_pages(
        self, wanted: WantedValues, candidates: Candidates, key: ChunkKey, chunk: ColumnChunk
    ) -> ChosenPages:
        """The pages of a row group's chunk that can have one of the candidates."""
        places = None
        if candidates.trusted:
            selected = self._plan.select(key, chunk, partial(_sorted_keys, wanted, candidates))
            if selected is not None:
                places = selected.pages
                self.pages_left_out += selected.left_out
        return ChosenPages(chunk, candidates.rows, places)

    def _chunk(self, candidates: Candidates) -> tuple[ChunkKey, ColumnChunk]:
        """The column's chunk in a row group."""
        footer, index = self._filters.footer, self._column.index
        key = ChunkKey(candidates.row_group, index, footer.row_group(candidates.row_group).chunks[index])
        return key, footer.chunk(key)

    def _has_values(self, candidates: Candidates, key: ChunkKey, chunk: ColumnChunk) -> bool:
        """Whether a row group's chunk has values. Raises CorruptFile if only the row group has rows."""
        if chunk.num_values or chunk.encrypted:
            return True
        if candidates.rows:
            raise _without_values(self._file.source.path, key, candidates.rows)
        return False

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
            keys_of = partial(_sorted_keys, wanted, candidates)
            chosen, flat = self._records.columns_to_announce(columns) if rows else (set(), set())
            self._plan.prepare(self._column.index, candidates, keys_of, chosen, flat)

    def records(self, found: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Read rows of row groups."""
        return self._records.read([(some.candidates.row_group, some.rows) for some in found], columns)

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
        return _filter_lookup(self._filters.footer, self._column, wanted, self._scanned(columns))

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


def _forms_of(several: Sequence[Candidates], count: int) -> pa.Int64Array:
    """The positions of the forms that any of the row groups may have, of `count` forms."""
    if len(several) == 1:
        return several[0].forms
    if sum(len(candidates.forms) for candidates in several) >= count:
        return counting(0, count)
    return pc.unique(pa.concat_arrays([candidates.forms for candidates in several] or [counting(0, 0)]))


def _with_nan(there: pa.Array, texts: pa.Int64Array, values: pa.Array, nan: int) -> tuple[pa.Array, pa.Int64Array]:
    """Add the positions of NaN in values, with the position of its text, to ascending positions and their texts."""
    others = pc.indices_nonzero(pc.fill_null(is_nan(values), False))
    there, texts = pa.concat_arrays([there, others]), pa.concat_arrays([texts, repeated(nan, len(others))])
    order = pc.array_sort_indices(there)
    return there.take(order), texts.take(order)


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


_ORDERED: Final = 1
_DEPRECATED: Final = 2
_SAME: Final = ("schema", "created_by", "column_orders")
"""Footer fields that determine the columns, and whose bounds can be trusted."""


def _ascending(wanted: WantedValues) -> tuple[kernels.Ascending, pa.Int64Array]:
    """The hashes in ascending order, and the position of each one's text."""
    try:
        return kernels.Ascending(wanted.hashes), wanted.owners
    except ValueError:
        hashes = pa.Array.from_buffers(pa.uint64(), len(wanted.forms), [None, pa.py_buffer(wanted.hashes)])
        order = pc.array_sort_indices(hashes)
        ascending = hashes.take(order).buffers()[1].to_pybytes()[: 8 * len(order)]
        return kernels.Ascending(ascending), wanted.owners.take(order)


def _numbers(footer: Footer, column: Column) -> tuple[int, int, int, int]:
    """The numbers of a column for `kernels.FilterQuery`."""
    trust = footer.trust(column)
    flags = _ORDERED * trust.ordered + _DEPRECATED * trust.deprecated
    return idl.ENUMS["Type"].get(column.physical, -1), flags, *trust.kind_of_bounds


def _filter_lookup(
    footer: Footer, column: Column, wanted: WantedValues, summed: set[int] | None
) -> FilterLookup | None:
    """The lookup in files with the schema of an open one; None if their filters can't answer it.

    Args:
        footer: the footer of the open file.
        column: the searched column.
        wanted: the values to find, converted for the column.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
    """
    if (
        footer.signed
        or column.physical == "BOOLEAN"
        or len(footer.columns) != footer.column_count
        or wanted.nan is not None
        or any(literal.unknowable is not None for literal in wanted.literals or ())
    ):
        return None
    hashes: bytes | kernels.Ascending = wanted.hashes
    owners = None
    if wanted.literals is None:
        hashes, owners = _ascending(wanted)
    ids = field_ids("FileMetaData")
    query = kernels.FilterQuery(
        parquet_limits.THRIFT_MAX_DEPTH,
        {ids[field]: footer.top.raw(field) for field in _SAME},
        array("i", (number for column in footer.columns for number in _numbers(footer, column))),
        column.index,
        None if summed is None else bytes(c.index in summed for c in footer.columns),
        hashes,
    )
    return FilterLookup("parquet", query, owners)
