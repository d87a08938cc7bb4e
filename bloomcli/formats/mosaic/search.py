"""Finds the rows of a Mosaic file that have values of a column. Row groups are decoded by paimon-mosaic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import UsageError
from bloomcli.formats import arrays, wanted_values
from bloomcli.formats.answer import UnitFacts
from bloomcli.formats.column_search import Candidates, ColumnSearch, FoundRows, Matches, is_nan
from bloomcli.formats.mosaic import schema, values
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column

if TYPE_CHECKING:
    from bloomcli.formats.mosaic.file import MosaicFile

_ROWS_AT_ONCE = 8192


class Search(ColumnSearch):
    """The search of a column in an open file.

    Args:
        file: the open file.
        column: one of its columns.

    Raises:
        UsageError: the column is a list or a map.
    """

    _file: MosaicFile

    def __init__(self, file: MosaicFile, column: Column) -> None:
        self._footer = file.footer
        self._mosaic = self._footer.columns[column.index]
        super().__init__(file, column, schema.literal_column(self._mosaic))
        if self._mosaic.kind in COMPOUND:
            raise UsageError(
                f"column {column.path} is a {self._mosaic.kind.lower()}, and has no values to find",
                path=file.source.path,
                hint="--column names a column that is neither a list nor a map",
            )

    def hashes_of(self, forms: pa.Array) -> bytes:
        """The hashes of forms in Mosaic's filters, which hash integers at their own width."""
        narrow = {"INT8": pa.int8(), "INT16": pa.int16()}.get(self._mosaic.family)
        return wanted_values.xxh64_of(forms if narrow is None else forms.cast(narrow))

    def bounded_units(self, count: int) -> Iterator[UnitFacts]:
        """The column's row groups."""
        return (self._file.unit(group, self._mosaic, count) for group in self._footer.row_groups)

    def matches_in(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """The rows of a row group that have one of the candidates. The column is decoded as a whole."""
        array = self._decoded(candidates.row_group, [self._mosaic]).column(0)
        chosen = wanted.forms.take(candidates.forms)
        forms = wanted_values.comparable(arrays.forms_of(array), self._typed)
        positions = candidates.forms.take(pc.index_in(forms, value_set=chosen, skip_nulls=True))
        if candidates.nan and wanted.nan is not None and pa.types.is_floating(array.type):
            positions = pc.if_else(pc.fill_null(is_nan(array), False), len(wanted.forms), positions)
        rows = pc.indices_nonzero(positions.is_valid()).cast(pa.int64())
        if len(rows):
            yield Matches(rows, positions.take(rows))

    def records(self, rows: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Rows of row groups. Columns have the order that the writer was given."""
        for candidates, positions in rows:
            whole = self._decoded(candidates.row_group, self._in_order(columns))
            for first in range(0, len(positions), _ROWS_AT_ONCE):
                yield whole.take(positions[first : first + _ROWS_AT_ONCE])

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with the columns of records, as paimon-mosaic reads them."""
        with values.ColumnReader(self._footer, self._in_order(columns)) as reader:
            return reader.no_rows()

    def _in_order(self, columns: Sequence[str] | None) -> list[MosaicColumn]:
        """Columns in the order that the writer was given."""
        order = [self._footer.columns[index] for index in self._footer.schema.order]
        return [column for column in order if columns is None or column.name in columns]

    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the buckets of the searched column and of these columns."""
        if columns is None:
            return self._file.total_bytes()
        buckets = {c.bucket for c in self._footer.columns if c.name in columns} | {self._mosaic.bucket}
        return sum(group.bucket_bytes(bucket) for group in self._footer.row_groups for bucket in buckets)

    def _decoded(self, ordinal: int, columns: Sequence[MosaicColumn]) -> pa.RecordBatch:
        group = self._footer.row_groups[ordinal]
        self._file.source.will_read(self._file.filters.value_ranges(group, {c.index for c in columns}))
        with values.ColumnReader(self._footer, columns) as reader:
            return reader.decoded(group)
