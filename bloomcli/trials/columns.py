"""Columns of a file, read by Arrow: the names of nested fields, and the values in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from bloomcli import limits
from bloomcli.errors import CorruptFile, UsageError
from bloomcli.model.file import Column
from bloomcli.trials.readers.base import InVariant
from bloomcli.trials.texts import storage_of
from bloomcli.values import variant_paths

_NO_SETS: Final = {
    pa.float16(): pa.float32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}
"""Types that few Arrow functions support, and the types with the same values that all of them support."""


class Leaf(NamedTuple):
    """A leaf column that readers can compare with a value."""

    column: Column
    names: tuple[str, ...]
    """The column's name; in structs, then the names of the nested fields."""
    type: pa.DataType
    """The Arrow type, without extensions and dictionaries."""

    @property
    def in_variant(self) -> InVariant | None:
        """Its place in a shredded VARIANT; None for other columns."""
        path = self.column.variant_path or ""
        for at in range(1, len(self.names)):
            top = ".".join(self.names[:at])
            if self.names[at] == "typed_value" and path.startswith(top + variant_paths.ROOT):
                return InVariant(self.names[:at], self.names[at + 1 :: 2], path[len(top) + 1 :])
        return None


class ColumnFile:
    """A local Parquet or ORC file, read by Arrow."""

    def __init__(self, path: str, file_format: str) -> None:
        self._path = path
        try:
            if file_format == "orc":
                self._file = orc.ORCFile(path)
            else:
                self._file = pq.ParquetFile(path, page_checksum_verification=True)
            self._schema: pa.Schema = self._file.schema if file_format == "orc" else self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise CorruptFile(f"Arrow can't read the file: {error}", path=path) from None

    def leaf(self, column: Column) -> Leaf:
        """The Arrow leaf of a column.

        Raises:
            UsageError: no reader can compare the column with a value: it is in a list or a map, or several columns
                have its name.
        """
        leaves = [(names, kind) for names, kind in _leaves((), self._schema) if ".".join(names) == column.path]
        if len(leaves) == 1:
            (names, kind) = leaves[0]
            return Leaf(column, names, storage_of(kind))
        reason = "several columns have this name" if leaves else "no query compares single values of a list or a map"
        raise UsageError(f"column {column.path} can't be looked up: {reason}", path=self._path)

    def values(self, leaf: Leaf) -> Iterator[tuple[int, pa.Array]]:
        """Yield the row group and the values of each batch, without nulls, in a type that all Arrow functions
        support. Raises CorruptFile."""
        try:
            for row_group, batch in self._batches(".".join(leaf.names)):
                array = batch.column(0)
                for name in leaf.names[1:]:
                    array = pc.struct_field(_storage(array), name)
                yield row_group, comparable(_storage(array)).drop_null()
        except (pa.ArrowException, OSError) as error:  # Arrow raises OSError for encrypted pages
            raise CorruptFile(f"Arrow can't read column {leaf.column.path}: {error}", path=self._path) from None

    def _batches(self, path: str) -> Iterator[tuple[int, pa.RecordBatch]]:
        if isinstance(self._file, orc.ORCFile):
            for stripe in range(self._file.nstripes):
                yield stripe, self._file.read_stripe(stripe, columns=[path])
            return
        for row_group in range(self._file.num_row_groups):
            batches = self._file.iter_batches(limits.ROWS_PER_BATCH, row_groups=[row_group], columns=[path])
            yield from ((row_group, batch) for batch in batches)


def _leaves(
    above: tuple[str, ...], fields: pa.Schema | pa.StructType
) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for field in fields:
        names, kind = (*above, field.name), storage_of(field.type)
        if pa.types.is_struct(kind):
            yield from _leaves(names, kind)
        elif not pa.types.is_nested(kind):
            yield names, field.type


def _storage(array: pa.Array) -> pa.Array:
    """The array without extension types and dictionaries: the values of the storage type."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def comparable(array: pa.Array) -> pa.Array:
    """The same values in a type that all Arrow functions support."""
    kind = _NO_SETS.get(array.type, array.type)
    return array if kind == array.type else array.cast(kind)
