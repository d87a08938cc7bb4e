"""Finds the rows of a few values, and their records, without Arrow, whose import takes longer than the search of a
file.

It searches local files by a column that isn't nested, and reads records whose columns are all at the top level and of
types whose values can be built from their bytes. Other files and pages, and damaged ones, are left to `search` and
`records`, which use Arrow and report errors.
"""

from __future__ import annotations

import binascii
from array import array
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from bloomcli import kernels
from bloomcli.formats import answer
from bloomcli.formats.parquet import page_parts, page_scan, page_selection
from bloomcli.formats.parquet.encodings import width_of
from bloomcli.formats.parquet.footer import ChunkKey, Footer
from bloomcli.formats.parquet.lookups import stored_forms
from bloomcli.formats.parquet.plain_values import TIMESTAMP, ValueConverter, value_converter
from bloomcli.formats.parquet.spec import Struct
from bloomcli.formats.plain_rows import VALUES_MOST, NeedsArrow, PlainRow, PlainSearch, PossibleRowGroup
from bloomcli.index.ipc import type_codes
from bloomcli.values import literals

if TYPE_CHECKING:
    from bloomcli.formats.filter_answer import FilterLookup
    from bloomcli.formats.located_file import LocatedFile
    from bloomcli.formats.parquet.filters import Filters
    from bloomcli.formats.parquet.page_selection import PagePlace
    from bloomcli.model.file import Column, ColumnChunk

_BYTES_MOST: Final = 1 << 20
"""The maximum size of a column's values in the matching rows."""
_ARROW_SCHEMA: Final = b"ARROW:schema"


class ParquetPlainSearch(PlainSearch):
    """The search of a column in an open local file.

    Args:
        file: the open file.
        filters: its filters.
        column: the column to search.
        texts: the values to find.
        selected: the columns of the records: None for all, an empty sequence if records aren't read.

    Raises:
        NeedsArrow: Arrow has to search it.
        LiteralError: a text isn't a value of the column's type.
    """

    def __init__(
        self,
        file: LocatedFile,
        filters: Filters,
        column: Column,
        texts: Sequence[str],
        selected: Sequence[str] | None,
    ) -> None:
        _require(len(texts) <= VALUES_MOST and not file.source.request_bytes and column.physical != "BOOLEAN")
        self._file, self._filters, self._footer, self._column = file, filters, filters.footer, column
        _require(not column.max_repetition_level and column.max_definition_level < 2)
        self._literals = tuple(literals.parse(text, column, path=file.source.path) for text in texts)
        _require(all(one.unknowable is None or one.impossible is not None for one in self._literals))
        self._columns = _selected(self._footer, selected)
        self._read = None if selected is None else {c.index for c in self._columns} | {column.index}
        self._forms: dict[bytes, int] = {}
        for at, literal in enumerate(self._literals):
            for form in stored_forms(literal, column):
                self._forms.setdefault(form, at)

    def scanned_bytes(self) -> int:
        """Compressed bytes of the searched column and of the columns of the records."""
        footer = self._footer
        if self._read is None:
            return self._file.total_bytes()
        return sum(footer.chunk(key).compressed_bytes for key in footer.chunk_keys(self._read))

    def filter_lookup(self) -> FilterLookup | None:
        """The lookup in the filters of files like this one; None if they can't answer it."""
        from bloomcli.formats.parquet.like_files import filter_lookup_of_few

        return filter_lookup_of_few(self._footer, self._column, self._literals, tuple(self._forms), self._read)

    def possible(self, units: Container[int]) -> Iterator[PossibleRowGroup]:
        """Yield the row groups that may have values, by their filters, statistics and dictionaries."""
        keys = [key for key in self._footer.chunk_keys({self._column.index}) if key.row_group in units]
        _require(all(self._footer.chunk(key).compressed_bytes > 0 for key in keys))
        facts = self._file.unit_facts(self._column, self._literals, units)
        for unit in answer.answers(facts, explain=False):
            left = {at for at, found in enumerate(unit.answers) if not found.excludes}
            forms = [form for form, owner in self._forms.items() if owner in left]
            if forms:
                yield PossibleRowGroup(unit.row_group, forms, all(found.trusted for found in unit.answers))

    def rows(self, possible: PossibleRowGroup, most: int | None) -> Iterator[PlainRow]:
        """Yield the rows of a row group that have one of the values: all, or at least `most` of them."""
        footer, (row_group, forms, trusted) = self._footer, possible
        key, chunk = self._chunk(row_group, self._column)
        _require(page_scan.readable(chunk))
        _require(chunk.num_values > 0 or not footer.row_group(row_group).rows)
        if not chunk.num_values:
            return
        places: Sequence[PagePlace] | None = None
        if trusted:
            rows = footer.row_group(row_group).rows
            selected = page_selection.select(self._filters, key, chunk, rows, self._sorted_keys(forms))
            if selected is not None:
                places = selected.pages
                self.pages_left_out += selected.left_out
        count = 0
        for found in page_scan.scanned(self._file.source, chunk, footer.start, places, _table(forms, self._column)):
            if isinstance(found, page_scan.UnreadablePage):
                raise NeedsArrow
            self.pages_read += found.pages
            count += len(found.rows)
            _require(count <= VALUES_MOST)
            for row, number in zip(found.rows, found.numbers, strict=True):
                yield PlainRow(row, self._forms[forms[number]], forms[number])
            if most is not None and count >= most:
                return

    def records(self, row_group: int, rows: Sequence[PlainRow]) -> Sequence[dict[str, Any]]:
        """The records of some rows of a row group, in order."""
        count = self._footer.row_group(row_group).rows
        _require(all(0 <= row.row < count for row in rows))
        numbers = memoryview(array("q", [row.row for row in rows]))
        columns = {column.path: self._values(row_group, column, numbers, rows) for column in self._columns}
        return [dict(zip(columns, record, strict=True)) for record in zip(*columns.values(), strict=True)]

    def _values(self, row_group: int, column: Column, numbers: memoryview, rows: Sequence[PlainRow]) -> list[Any]:
        """A column's values in some rows."""
        converter = value_converter(column)
        if column.index == self._column.index:
            return [converter.value(row.form) for row in rows]
        key, chunk = self._chunk(row_group, column)
        source, count = self._file.source, self._footer.row_group(row_group).rows
        _require(page_scan.readable(chunk))
        pages = page_selection.pages_of(self._filters, key, chunk, count)
        if pages is None:
            pages = page_selection.pages_by_headers(source, chunk, self._footer.start, count)
        _require(pages is not None)
        some = page_selection.with_rows(pages or (), numbers)
        try:
            parts = page_parts.parts_of(source, chunk, self._footer.start, some, numbers)
        except (page_parts.TooManyBytes, kernels.PageError):
            raise NeedsArrow from None
        values = [value for part in parts or () for value in _values_of(part, converter, column)]
        _require(len(values) == len(rows))
        return values

    def _chunk(self, row_group: int, column: Column) -> tuple[ChunkKey, ColumnChunk]:
        footer = self._footer
        key = ChunkKey(row_group, column.index, footer.row_group(row_group).chunks[column.index])
        return key, footer.chunk(key)

    def _sorted_keys(self, forms: Sequence[bytes]) -> list[Any] | None:
        """The sort keys of forms, which are compared with bounds, in ascending order; None if they have no order."""
        chosen: list[literals.Literal] = [self._literals[self._forms[form]] for form in forms]
        keys = [literal.order_key for literal in chosen]
        return None if None in keys else sorted(keys)


def _require(right: bool) -> None:
    if not right:
        raise NeedsArrow


def _selected(footer: Footer, selected: Sequence[str] | None) -> list[Column]:
    """The columns of the records. Raises NeedsArrow unless all columns of the file are at the top level, and the
    Arrow schema in the file, if it has one, agrees with the Parquet schema."""
    if selected is not None and not selected:
        return []
    columns = footer.columns
    names = [column.path for column in columns]
    elements = footer.top.list_starts("schema")
    _require(len(elements) - 1 == len(columns) + 1 and len(set(names)) == len(names))
    codes = _arrow_types(footer)
    _require(codes is None or [name for name, _ in codes] == names)
    found = [column for column in columns if selected is None or column.path in selected]
    for column in found:
        converter = value_converter(column)
        _require(codes is None or codes[column.index][1] in converter.arrow_types)
        if converter.arrow_types == (TIMESTAMP,):  # Arrow reads those with only a converted type as local time
            element = Struct("SchemaElement", footer.raw, elements[column.index + 1], footer.location.at("schema"))
            _require(element.span("logicalType") is not None)
    return found


def _arrow_types(footer: Footer) -> Sequence[tuple[str, int | None]] | None:
    """The columns' names and types in the Arrow schema of the file; None if it has none. Raises NeedsArrow."""
    if footer.top.span("key_value_metadata") is None:
        return None
    location = footer.location.at("key_value_metadata")
    for start in footer.top.list_starts("key_value_metadata")[:-1]:
        pair = Struct("KeyValue", footer.raw, start, location)
        if pair.binary("key") == _ARROW_SCHEMA:
            found = _types_of(pair.binary("value") or b"", len(footer.columns))
            if found is None:
                raise NeedsArrow
            return found
    return None


@lru_cache(maxsize=16)
def _types_of(schema: bytes, columns: int) -> Sequence[tuple[str, int | None]] | None:
    """The names and types in an Arrow schema (base 64); None if it can't be read. Most files of a lake share one."""
    try:
        return type_codes(binascii.a2b_base64(schema, strict_mode=True), columns)
    except binascii.Error:
        return None


def _table(forms: Sequence[bytes], column: Column) -> kernels.ValueTable:
    hashes, width = array("Q", map(kernels.xxh64, forms)).tobytes(), width_of(column)
    if width:
        return kernels.ValueTable(hashes, b"".join(forms), None, width)
    ends = memoryview(array("q", accumulate(map(len, forms), initial=0)))
    return kernels.ValueTable(hashes, b"".join(forms), ends, 0)


def _values_of(part: page_parts.Part, converter: ValueConverter, column: Column) -> Iterator[Any]:
    """Yield the values of a part; None for nulls."""
    data, there = bytes(part.values), memoryview(part.positions).cast("q")
    if column.physical == "BYTE_ARRAY":
        _require(len(data) <= _BYTES_MOST)
        ends = list(accumulate(memoryview(part.sizes).cast("q"), initial=0))
    else:
        width = width_of(column) or 1
        ends = list(range(0, len(data) + 1, width))
    for at in range(len(ends) - 1):
        null = len(there) > 0 and there[at] < 0
        yield None if null else converter.value(data[ends[at] : ends[at + 1]])
