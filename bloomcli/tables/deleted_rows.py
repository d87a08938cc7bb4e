"""The deleted rows of a table's data file, which executors read from deletion vectors and delete files.

A search reads them only after it has found rows in the data file. The driver only knows which delete files apply to
which data file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.datasets.record_shape import Constant, RecordField, Shape
from bloomcli.storage.registry import open_source
from bloomcli.tables.bitmap import Bitmap, from_blob, from_body
from bloomcli.tables.delete_files import delete_rows

_CODES_MOST: Final = 2**62
_POSITIONS: Final = tuple(
    RecordField(name=name, type=kind, names=(name,), missing_reason=f"the position delete file has no column {name}")
    for name, kind in (("file_path", pa.string()), ("pos", pa.int64()))
)
"""The columns of a position delete file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    """A deletion vector.

    Attributes:
        path: the file that contains it; empty if `body` is set.
        offset, size: the blob's location, including its length field and its checksum.
        body: the blob without length and checksum, if the table's metadata contain it.
    """

    path: str = ""
    offset: int = 0
    size: int = 0
    body: bytes | None = None

    def read(self) -> Bitmap:
        """The bitmap. Raises CorruptFile, UnreadableError."""
        if self.body is not None:
            return from_body(self.body, self.path)
        with open_source(self.path) as source:
            return from_blob(source.read_at(self.offset, self.size), self.path, self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDeletes:
    """An Iceberg position delete file, which lists deleted rows of data files.

    Attributes:
        size: its bytes, according to the table's metadata.
    """

    path: str
    format: str
    size: int | None = None

    def positions(self, data_file: str) -> pa.Array:
        """The deleted rows of a data file. Raises CorruptFile, UnreadableError, UnsupportedError."""
        found = [
            rows.field(1).filter(pc.equal(rows.field(0), data_file))
            for rows in delete_rows(self.path, self.format, _POSITIONS, self.size)
        ]
        return pa.concat_arrays(found) if found else pa.array([], pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityDeletes:
    """An Iceberg equality delete file: a row is deleted if it equals one of the file's rows in these columns.

    Attributes:
        shape: the columns, with the table's types.
        size: as for position deletes.
    """

    path: str
    format: str
    shape: Shape
    size: int | None = None

    def matches(self, record: pa.StructArray) -> pa.BooleanArray:
        """For each record, whether it equals a row of the delete file. Nulls equal nulls.

        Args:
            record: the records, with the columns of `shape`.

        Raises:
            CorruptFile, UnreadableError, UnsupportedError: as `PositionDeletes.positions`.
        """
        parts = list(delete_rows(self.path, self.format, self.shape, self.size))
        if not parts:
            return pa.repeat(pa.scalar(False), len(record))
        deleted = pa.concat_arrays(parts)
        kinds = record.type
        columns = [record.field(kinds.get_field_index(field.name)) for field in self.shape]
        deleted_columns = [deleted.field(at) for at in range(len(self.shape))]
        return _equal_rows(columns, deleted_columns)


def _equal_rows(columns: list[pa.Array], deleted: list[pa.Array]) -> pa.BooleanArray:
    """For each row of some columns, whether the deleted columns have an equal row."""
    if len(columns) == 1:
        return pc.is_in(columns[0], value_set=deleted[0])
    known = [pc.unique(column) for column in deleted]
    codes = [
        [pc.index_in(column, value_set=values).cast(pa.int64()) for column, values in zip(side, known, strict=True)]
        for side in (columns, deleted)
    ]
    if prod(len(values) for values in known) >= _CODES_MOST:
        rows = set(zip(*(column.to_pylist() for column in codes[1]), strict=True))
        return pa.array([row in rows for row in zip(*(c.to_pylist() for c in codes[0]), strict=True)], pa.bool_())
    sizes = [len(values) for values in known]
    numbers = [reduce(lambda whole, part: pc.add(pc.multiply(whole, part[1]), part[0]),
                      zip(side[1:], sizes[1:], strict=True), side[0]) for side in codes]  # fmt: skip
    return pc.and_(numbers[0].is_valid(), pc.is_in(numbers[0], value_set=numbers[1]))


@dataclass(slots=True, kw_only=True)
class DeletedRows:
    """The deletes that apply to a data file.

    Attributes:
        data_file: its path, as the table spells it.
        vectors, positions, equalities: the deletion vectors and delete files.
    """

    data_file: str
    vectors: tuple[DeletionVector, ...] = ()
    positions: tuple[PositionDeletes, ...] = ()
    equalities: tuple[EqualityDeletes, ...] = ()
    _read: tuple[list[Bitmap], pa.Array] | None = field(default=None, init=False, repr=False)

    @property
    def columns(self) -> set[str]:
        """The columns of records that `kept` needs."""
        return {column.name for one in self.equalities for column in one.shape}

    def kept(self, rows: pa.Int64Array, record: pa.StructArray) -> pa.BooleanArray:
        """For each row, whether it isn't deleted.

        Args:
            rows: row numbers in the data file.
            record: the same rows, with `columns`.

        Raises:
            CorruptFile, UnreadableError, UnsupportedError: a delete file can't be read.
        """
        if self._read is None:
            positions = [one.positions(self.data_file) for one in self.positions]
            found = pa.concat_arrays(positions) if positions else pa.array([], pa.int64())
            self._read = [one.read() for one in self.vectors], found
        bitmaps, found = self._read
        deleted = pc.is_in(rows, value_set=found)
        for bitmap in bitmaps:
            deleted = pc.or_(deleted, pa.array([number in bitmap for number in rows.to_pylist()], pa.bool_()))
        for one in self.equalities:
            deleted = pc.or_(deleted, one.matches(record))
        return pc.invert(deleted)

    def __getstate__(self) -> Any:
        return self.data_file, self.vectors, self.positions, self.equalities

    def __setstate__(self, state: Any) -> None:
        self.data_file, self.vectors, self.positions, self.equalities = state
        self._read = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """What a search needs to return the rows of a snapshot instead of those of its files.

    Attributes:
        shape: the table's columns with Spark's types in Arrow; a type is None if Spark or Arrow doesn't have it.
        dropped: columns that the table no longer has, and that deletes compare.
        deleted: the deletes of data files that have some, by their paths in the table's metadata.
        constants: the partition values of data files, which may not have the partition columns.
    """

    shape: Shape
    deleted: dict[str, DeletedRows]
    constants: dict[str, dict[str, Constant]]
    dropped: Shape = ()
