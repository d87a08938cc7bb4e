"""The tables of an index: its files, and the units of each column.

Each is a blob: an Arrow IPC stream with one batch, compressed with zstd.

A unit is a row group that has a column in a type; its row is its slot in the rows of bits.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from operator import sub
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.index.puffin import Blob, damaged, number_of
from bloomcli.limits import INDEX_TABLE_MAX_BYTES
from bloomcli.model.index import IndexedFile
from bloomcli.storage.base import Fingerprint
from bloomcli.words import counted

FREE, FILTER, ALWAYS, NEVER = range(4)
"""States of slots. The last three are those of `ChunkState`."""


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


FILE_SCHEMA: Final = _schema(
    path=pa.large_utf8(),
    size=pa.int64(),
    mtime_ns=pa.int64(),
    tag=pa.large_utf8(),
    rows=pa.large_list(pa.field("item", pa.int64(), nullable=False)),
)
UNIT_SCHEMA: Final = _schema(file=pa.int32(), row_group=pa.int32(), state=pa.uint8(), fpp=pa.float32())
END_SCHEMA: Final = _schema(bytes=pa.int32())
"""The tables' schemas; no column has nulls."""
_LEVEL: Final = 3
"""zstd's own default."""


class Units(NamedTuple):
    """The units of a column, by their slots: in arrays of NumPy in an open index, of Python in a new one."""

    file: Any
    """Positions of files; -1 for free slots."""
    row_group: Any
    state: Any
    fpp: Any
    """The measured rate at the common size; 0 without a filter."""


def packed(batch: pa.RecordBatch) -> tuple[bytes, dict[str, str]]:
    """Make a table's blob, and its properties. Raises UnsupportedError if it is too large."""
    import zstandard

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw = sink.getvalue()
    if raw.size > INDEX_TABLE_MAX_BYTES:
        raise UnsupportedError(
            f"too many files or row groups for an index: a table has {counted(raw.size, 'byte')}",
            hint="build an index for each part of the files",
        )
    data = zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
    return data, {"rows": str(batch.num_rows), "xxh64": f"{kernels.xxh64(data):016x}"}


def unpacked(path: str, blob: Blob, data: bytes, schema: pa.Schema, field: str) -> tuple[int, list[Any]]:
    """Read the number of rows and the columns of a blob's table.

    Args:
        path: the index.
        blob: as the footer describes it.
        data: its bytes.
        schema: the schema that the table must have.
        field: the blob's field path.

    Raises:
        CorruptFile: the bytes are damaged, or aren't such a table.
    """
    import zstandard

    def wrong(reason: str, name: str = "") -> CorruptFile:
        return damaged(path, reason, offset=blob.offset, field=f"{field}{name}")

    if blob.properties.get("xxh64") != f"{kernels.xxh64(data):016x}":
        raise wrong("the bytes don't match their checksum", ".properties.xxh64")
    rows = number_of(blob.properties.get("rows"), INDEX_TABLE_MAX_BYTES)
    if rows is None:
        raise wrong("it isn't a number of rows", ".properties.rows")
    if blob.codec != "zstd":
        raise wrong(f"the table is compressed with {blob.codec}, not with zstd", ".compression-codec")
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= INDEX_TABLE_MAX_BYTES:
            raise wrong(f"a table can't have {counted(size, 'byte')}")
        raw = zstandard.ZstdDecompressor().decompress(data)
    except (zstandard.ZstdError, ValueError, MemoryError) as error:
        raise wrong(_unreadable(error)) from None
    try:
        with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
            if not reader.schema.equals(schema):
                raise wrong("the table has other columns")
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, StopIteration, MemoryError) as error:
        raise wrong(_unreadable(error)) from None
    if batch.num_rows != rows:
        raise wrong(f"the table has {counted(batch.num_rows, 'row')}, not {rows}", ".properties.rows")
    for name, column in zip(schema.names, batch.columns, strict=True):
        if column.null_count or (pa.types.is_large_list(column.type) and column.values.null_count):
            raise wrong("a value is missing", f".{name}")
    return rows, list(map(_read_column, batch.columns))


def _unreadable(error: Exception) -> str:
    detail = " ".join(str(error).split())[:200]
    return f"the table can't be read: {detail or type(error).__name__}"


def _read_column(column: pa.Array) -> Any:
    """Texts as a list, numbers as an array; of a column of lists the start of the first one with the end of each, and
    the numbers of all."""
    if pa.types.is_large_string(column.type):
        return column.to_pylist()
    if pa.types.is_large_list(column.type):
        return column.offsets.to_pylist(), _numbers(column.values)
    return _numbers(column)


def _numbers(column: pa.Array) -> NDArray[Any]:
    """The numbers of a column. `np.asarray` would import pandas."""
    kind = np.dtype(column.type.to_pandas_dtype())
    data = column.buffers()[1] if len(column) else b""
    return np.frombuffer(data, kind, len(column), column.offset * kind.itemsize if len(column) else 0)


def _stored(path: str) -> str:
    """A path as the table stores it: if it isn't UTF-8, a zero character and its bytes in hexadecimal."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"\0{os.fsencode(path).hex()}"
    return path


def _path(stored: str) -> str:
    return os.fsdecode(bytes.fromhex(stored[1:])) if stored.startswith("\0") else stored


def files_table(files: Sequence[IndexedFile]) -> pa.RecordBatch:
    """The table of files."""
    return pa.record_batch(
        [
            pa.array([_stored(file.path) for file in files], pa.large_utf8()),
            pa.array([file.size for file in files], pa.int64()),
            pa.array([file.mtime_ns for file in files], pa.int64()),
            pa.array([file.tag for file in files], pa.large_utf8()),
            pa.array([file.rows for file in files], FILE_SCHEMA.field("rows").type),
        ],
        schema=FILE_SCHEMA,
    )


def end_sizes_table(sizes: array[int]) -> pa.RecordBatch:
    """The table of the sizes of files' ends."""
    column = pa.Array.from_buffers(pa.int32(), len(sizes), [None, pa.py_buffer(sizes)])
    return pa.record_batch([column], schema=END_SCHEMA)


def units_table(units: Units) -> pa.RecordBatch:
    """The table of a column's units."""
    count = len(units.file)
    columns = [
        pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(values)])
        for field, values in zip(UNIT_SCHEMA, units, strict=True)
    ]
    return pa.record_batch(columns, schema=UNIT_SCHEMA)


class Files:
    """The indexed files, by their positions.

    Args:
        path: the index.
        blob: the blob of their table.
        data: its bytes.
        field: its field path.

    Attributes:
        row_groups: the number of row groups of each file.

    Raises:
        CorruptFile: the table is damaged, or isn't one of files.
    """

    def __init__(self, path: str, blob: Blob, data: bytes, field: str) -> None:
        count, (paths, sizes, times, tags, (ends, rows)) = unpacked(path, blob, data, FILE_SCHEMA, field)

        def check(right: bool, reason: str, name: str) -> None:
            if not right:
                raise damaged(path, reason, offset=blob.offset, field=f"{field}.{name}")

        check(count < 1 << 31, "too many files", "properties.rows")
        for name, numbers in (("size", sizes), ("rows", rows)):
            check(numbers.min(initial=0) >= 0, "a number is negative", name)
            check(numbers.max(initial=0) <= 1 << 53, "a number is too large", name)
        for stored in paths:
            if stored.startswith("\0"):
                try:
                    right = _stored(_path(stored)) == stored
                except ValueError:
                    right = False
                check(right, "a path is neither text nor bytes", "path")
        check(len(set(paths)) == len(paths), "a path comes twice", "path")
        self._paths, self._sizes, self._times, self._tags = paths, sizes.tolist(), times.tolist(), tags
        self._ends, self._rows = ends or [0], rows
        self._positions: dict[str, int] | None = None
        self.row_groups = array("q", map(sub, self._ends[1:], self._ends[:-1]))

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[IndexedFile]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> IndexedFile:
        rows = self._rows[self._ends[at] : self._ends[at + 1]].tolist()
        return IndexedFile(_path(self._paths[at]), self._sizes[at], self._times[at], self._tags[at], tuple(rows))

    def fingerprint(self, position: int) -> Fingerprint:
        """The fingerprint of a file when it was indexed."""
        return Fingerprint(self._sizes[position], self._times[position], tag=self._tags[position])

    def position(self, path: str) -> int | None:
        """The position of a path; None if the file isn't indexed."""
        if self._positions is None:
            self._positions = {_path(name): at for at, name in enumerate(self._paths)}
        return self._positions.get(path)

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(self._rows[self._ends[0] : self._ends[-1]].tolist())

    @property
    def data_bytes(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes)


def read_units(path: str, blob: Blob, data: bytes, files: Files, slots: int, field: str) -> Units:
    """Read the table of a column's units. Raises CorruptFile."""
    count, columns = unpacked(path, blob, data, UNIT_SCHEMA, field)
    if count != slots:
        raise damaged(path, f"{counted(count, 'unit')} in {counted(slots, 'slot')}", offset=blob.offset, field=field)
    file, row_group, state, fpp = columns
    counts, held = np.array([*files.row_groups, 0]), file >= 0

    def check(wrong: NDArray[np.bool_], reason: str, name: str) -> None:
        if wrong.any():
            raise damaged(path, reason, offset=blob.offset, field=f"{field}.{name}")

    check((file < -1) | (file >= len(files)), "the index has no such file", "file")
    check(state > NEVER, "the format has no such state", "state")
    check((state == FREE) == held, "a free slot has a file, or a unit has none", "state")
    check(~((fpp >= 0) & (fpp <= 1)), "it isn't a rate", "fpp")
    no_such = held & ~((row_group >= 0) & (row_group < counts[file]))
    check(no_such, "the file has no such row group", "row_group")
    ordered = np.sort(file[held].astype(np.int64) << 32 | row_group[held])
    check(ordered[1:] == ordered[:-1], "a row group comes twice", "row_group")
    return Units(file, row_group, state, fpp)
