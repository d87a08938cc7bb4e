"""Finds the rows that have one of many values in files with small row groups, in compiled code, one call a file.

For a few values, a filter lookup takes less time than reading the column. For at least as many values as a row group
has rows, the filter lookups take more time than the column, and usually one of them is a false positive.

The files are local, and have the schema of a file that was opened before, with selected columns that `page_rows`
supports. `search.py` searches other files, unusual or damaged ones, and files in which bounds exclude all values of a
row group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.formats.filter_answer import FileRows, FileScan
from bloomcli.formats.finding import WantedValues
from bloomcli.formats.parquet import page_rows
from bloomcli.formats.parquet.compiled_scan import compiled_scan
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.page_parts import Part
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.storage.base import Source

Columns = Mapping[int, tuple[ColumnChunk, pa.Field]]
"""Columns by ordinal, each with one of its chunks and the field of its values."""

_VALUES_MOST: Final = 1 << 22
_MAX_MISSES: Final = 4
"""The scan is given up when it has failed in this many more files than it has succeeded in."""


class RowScan:
    """The rows with values to find in files like one that was opened.

    Args:
        footer: the footer of that file.
        column: the searched column.
        wanted: the values, converted in batches.
        columns: the columns of the records.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
    """

    def __init__(
        self, footer: Footer, column: Column, wanted: WantedValues, columns: Columns, summed: set[int] | None
    ) -> None:
        self._owners = wanted.owners
        self._columns = [columns[index] for index in sorted(columns)]
        self._misses = 0
        order = pc.array_sort_indices(wanted.forms).cast(pa.int64())
        ascending = order.buffers()[1].to_pybytes()[: 8 * len(order)]
        self._scan = compiled_scan(footer, column, _table(wanted), ascending, columns, summed)

    @property
    def gave_up(self) -> bool:
        """Whether no further file is scanned."""
        return self._misses >= _MAX_MISSES

    def rows(self, source: Source) -> FileRows | None:
        """The rows of an open file; None if it has to be searched with its filters."""
        descriptor = source.fileno()
        if descriptor is None or self.gave_up:
            return None
        found = self._scan.file(descriptor, source.size)
        self._misses += 1 if found is None else -1
        if found is None:
            return None
        groups, rows, numbers, parts = found[6:]
        return self._file_rows([FileScan(*found[:6], len(rows) // 8)], groups, rows, numbers, parts)

    def rows_of(self, names: Sequence[bytes], rows: int, size: int) -> FileRows | None:
        """The rows of files, as `FilterLookup.rows_of`."""
        if self.gave_up:
            return None
        files, groups, of_rows, numbers, parts = self._scan.files(b"".join(n + b"\0" for n in names), rows, size)
        self._misses -= len(files)  # `rows` counts the file that ended the scan
        if not files:
            return None
        return self._file_rows(list(map(FileScan._make, files)), groups, of_rows, numbers, parts)

    def _file_rows(
        self,
        files: list[FileScan],
        groups: bytes,
        rows: bytes,
        numbers: bytes,
        parts: list[tuple[bytes, bytes, bytes]],
    ) -> FileRows:
        """Convert the results of compiled code to Arrow."""
        count = len(rows) // 8
        arrays = [
            page_rows.of_part(
                Part(bytearray(values), bytearray(sizes), bytearray(positions)), count, chunk, field.type
            )
            for (values, sizes, positions), (chunk, field) in zip(parts, self._columns, strict=True)
        ]
        records = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field for _, field in self._columns]))
        texts = self._owners.take(_int64s(numbers))
        return FileRows(files, _int64s(groups), _int64s(rows), texts, records)


def row_scan(
    footer: Footer,
    column: Column,
    wanted: WantedValues,
    columns: Callable[[], Columns | None],
    summed: set[int] | None,
) -> RowScan | None:
    """The scan for the rows in files like an open one; None if lookups in their filters take less time, or a column's
    type isn't supported. `columns` returns the columns of the records; it is called last."""
    nested = column.max_repetition_level or column.max_definition_level > 1
    if nested or wanted.literals is not None or not isinstance(wanted.keys, pa.Array):
        return None
    if not 0 < len(wanted.forms) <= _VALUES_MOST or not footer.row_group_count:
        return None
    chosen = columns() if footer.row_group(0).rows <= len(wanted.forms) else None
    return None if chosen is None else RowScan(footer, column, wanted, chosen, summed)


def _table(wanted: WantedValues) -> kernels.ValueTable:
    forms = wanted.forms
    if not pa.types.is_large_binary(forms.type):
        width = forms.type.bit_width // 8
        return kernels.ValueTable(wanted.hashes, _view(forms.buffers()[1], width * len(forms)), None, width)
    _, offsets, values = forms.buffers()
    starts = _view(offsets, 8 * (len(forms) + 1)).cast("q")
    return kernels.ValueTable(wanted.hashes, _view(values, len(values or b"")), starts, 0)


def _view(buffer: pa.Buffer | None, size: int) -> memoryview:
    return memoryview(buffer or b"").cast("B")[:size]


def _int64s(numbers: bytes) -> pa.Int64Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers) // 8, [None, pa.py_buffer(numbers)])
