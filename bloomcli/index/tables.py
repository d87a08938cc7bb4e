"""The tables of an index: its files, and the units of each column.

Each is a blob: an Arrow IPC stream with one batch, compressed with zstd.

A unit is a row group that has a column in a type; its row is its slot in the rows of bits.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import Any, Final, NamedTuple, overload

import pyarrow as pa

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.index.puffin import Blob, damaged, number_of
from bloomcli.limits import INDEX_TABLE_MAX_BYTES
from bloomcli.model.index import IndexedFile

FREE, FILTER, ALWAYS, NEVER = range(4)
"""States of slots; the last three are those of `Indexed`."""

FILES_SCHEMA: Final = pa.schema(
    [
        pa.field("path", pa.large_utf8(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("tag", pa.large_utf8(), nullable=False),
        pa.field("rows", pa.large_list(pa.field("item", pa.int64(), nullable=False)), nullable=False),
    ]
)
UNITS_SCHEMA: Final = pa.schema(
    [
        pa.field("file", pa.int32(), nullable=False),
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("state", pa.uint8(), nullable=False),
        pa.field("fpp", pa.float32(), nullable=False),
    ]
)
_LEVEL: Final = 3
"""zstd's own default."""


_VIEWS: Final[dict[pa.DataType, Any]] = {pa.int64(): "q", pa.int32(): "i", pa.uint8(): "B", pa.float32(): "f"}


def numbers_in(column: pa.Array) -> Sequence[Any]:
    """The numbers of a column. Of a lookup's time, importing `pyarrow.compute` (and with it pandas) is the most."""
    form = _VIEWS[column.type]
    data = column.buffers()[1] if len(column) else None
    whole = memoryview(b"" if data is None else data).cast("B")
    width = column.type.bit_width // 8
    return whole[column.offset * width : (column.offset + len(column)) * width].cast(form)


class UnitArrays(NamedTuple):
    """The units of a column, by their slots."""

    file: array[int]
    """Positions of files; -1 for free slots."""
    row_group: array[int]
    state: array[int]
    fpp: array[float]
    """The measured rate at the common size; 0 without a filter."""


def packed(batch: pa.RecordBatch) -> tuple[bytes, dict[str, str]]:
    """A table's blob, and the properties that check it. Raises UnsupportedError where it is too large."""
    import zstandard

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw = sink.getvalue()
    if raw.size > INDEX_TABLE_MAX_BYTES:
        raise UnsupportedError(
            f"too many files or row groups for an index: a table has {raw.size} bytes",
            hint="build an index for each part of the files",
        )
    data = zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
    return data, {"rows": str(batch.num_rows), "xxh64": f"{kernels.xxh64(data):016x}"}


def unpacked(path: str, blob: Blob, data: bytes, schema: pa.Schema, field: str) -> pa.RecordBatch:
    """The table of a blob.

    Args:
        path: the index.
        blob: as the footer describes it.
        data: its bytes.
        schema: what the table has to have.
        field: the blob's field path.

    Raises:
        CorruptFile: the bytes aren't those that were written, or no such table.
    """
    import zstandard

    def wrong(reason: str, name: str = "") -> CorruptFile:
        return damaged(path, reason, offset=blob.offset, field=f"{field}{name}")

    if blob.properties.get("xxh64") != f"{kernels.xxh64(data):016x}":
        raise wrong("the bytes aren't those that were written", ".properties.xxh64")
    rows = number_of(blob.properties.get("rows"), INDEX_TABLE_MAX_BYTES)
    if rows is None:
        raise wrong("it is no number of rows", ".properties.rows")
    if blob.codec != "zstd":
        raise wrong(f"the table is compressed with {blob.codec}, not with zstd", ".compression-codec")
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= INDEX_TABLE_MAX_BYTES:
            raise wrong(f"a table can't have {size} bytes")
        raw = zstandard.ZstdDecompressor().decompress(data)
        with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
            if not reader.schema.equals(schema):
                raise wrong("the table has other columns")
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (zstandard.ZstdError, pa.ArrowException, OSError, ValueError, StopIteration, MemoryError) as error:
        said = " ".join(str(error).split())[:200]
        raise wrong(f"the table can't be read: {said or type(error).__name__}") from None
    if batch.num_rows != rows:
        raise wrong(f"the table has {batch.num_rows} rows, not {rows}", ".properties.rows")
    name: str
    column: pa.Array
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.values if pa.types.is_large_list(column.type) else column
        if column.null_count or values.null_count:
            raise wrong("a value is missing", f".{name}")
    return batch


def _stored(path: str) -> str:
    """A path as the table has it: a local one that isn't UTF-8 as a zero character and its bytes in hexadecimal."""
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
            pa.array([file.rows for file in files], FILES_SCHEMA.field("rows").type),
        ],
        schema=FILES_SCHEMA,
    )


def units_table(units: UnitArrays) -> pa.RecordBatch:
    """The table of a column's units."""
    count = len(units.file)
    columns = [
        pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(values)])
        for field, values in zip(UNITS_SCHEMA, units, strict=True)
    ]
    return pa.record_batch(columns, schema=UNITS_SCHEMA)


class Stamp(NamedTuple):
    """The size, modification time and tag of an indexed file, as `IndexedFile` has them."""

    size: int
    mtime_ns: int
    tag: str


class Files(Sequence[IndexedFile]):
    """The indexed files, by their positions.

    Attributes:
        row_groups: of each file, the number of its row groups.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._lists: list[list[Any]] | None = None
        self._stamps: list[list[Any]] | None = None
        self._rows = memoryview(b"")
        self._positions: dict[str, int] | None = None
        ends = numbers_in(batch.column("rows").offsets)
        self.row_groups = array("q", map(sub, ends[1:], ends[:-1]))

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    @overload
    def __getitem__(self, position: int) -> IndexedFile: ...
    @overload
    def __getitem__(self, position: slice) -> list[IndexedFile]: ...
    def __getitem__(self, position: int | slice) -> IndexedFile | list[IndexedFile]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        lists = self._lists
        if lists is None:
            rows = self._batch.column("rows")
            counts = rows.values
            self._rows = memoryview(counts.buffers()[1] or b"").cast("B")[: 8 * len(counts)].cast("q")
            names, *others = (column.to_pylist() for column in self._batch.columns[:-1])
            ends = rows.offsets.to_pylist()
            lists = self._lists = [list(map(_path, names)), *others, ends[:-1], ends[1:]]
        path, size, mtime_ns, tag, start, end = (column[position] for column in lists)
        return IndexedFile(path=path, size=size, mtime_ns=mtime_ns, tag=tag, rows=tuple(self._rows[start:end]))

    def stamp(self, position: int) -> Stamp:
        """What tells whether a file is still the one that was indexed."""
        if self._stamps is None:
            self._stamps = [self._batch.column(name).to_pylist() for name in Stamp._fields]
        sizes, times, tags = self._stamps
        return Stamp(sizes[position], times[position], tags[position])

    def position(self, path: str) -> int | None:
        """The position of a path; None if the file isn't indexed."""
        if self._positions is None:
            self._positions = {_path(name): at for at, name in enumerate(self._batch.column("path").to_pylist())}
        return self._positions.get(path)

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(numbers_in(self._batch.column("rows").flatten()))

    @property
    def data_bytes(self) -> int:
        """Bytes of all files."""
        return sum(numbers_in(self._batch.column("size")))


def read_files(path: str, blob: Blob, data: bytes, field: str) -> Files:
    """The table of files. Raises CorruptFile."""
    batch = unpacked(path, blob, data, FILES_SCHEMA, field)

    def check(right: bool, reason: str, name: str) -> None:
        if not right:
            raise damaged(path, reason, offset=blob.offset, field=f"{field}.{name}")

    if batch.num_rows >= 1 << 31:
        raise damaged(path, "too many files", offset=blob.offset, field=f"{field}.properties.rows")
    for name in ("size", "rows"):
        column = batch.column(name)
        numbers = numbers_in(column.values if name == "rows" else column)
        check(min(numbers, default=0) >= 0, "a number is negative", name)
        check(max(numbers, default=0) <= 1 << 53, "a number is too large", name)
    names = batch.column("path").to_pylist()
    for name in names:
        try:
            right = not name.startswith("\0") or _stored(_path(name)) == name
        except ValueError:
            right = False
        if not right:
            raise damaged(path, "a path is neither text nor bytes", offset=blob.offset, field=f"{field}.path")
    check(len(set(names)) == len(names), "a path comes twice", "path")
    return Files(batch)


def read_units(path: str, blob: Blob, data: bytes, files: Files, slots: int, field: str) -> pa.RecordBatch:
    """The table of a column's units. Raises CorruptFile."""
    batch = unpacked(path, blob, data, UNITS_SCHEMA, field)

    def check(right: bool, reason: str, name: str) -> None:
        if not right:
            raise damaged(path, reason, offset=blob.offset, field=f"{field}.{name}")

    if batch.num_rows != slots:
        raise damaged(path, f"{batch.num_rows} units in {slots} slots", offset=blob.offset, field=field)
    file, row_group, state, fpp = map(numbers_in, batch.columns)
    check(min(file, default=0) >= -1 and max(file, default=-1) < len(files), "there is no such file", "file")
    check(max(state, default=0) <= NEVER, "there is no such state", "state")
    free = all((one == FREE) == (at == -1) for one, at in zip(state, file, strict=True))
    check(free, "a free slot has a file, or a unit has none", "state")
    check(all(0.0 <= rate <= 1.0 for rate in fpp), "it is no rate", "fpp")
    groups = files.row_groups
    there = all(at < 0 or 0 <= group < groups[at] for at, group in zip(file, row_group, strict=True))
    check(there, "there is no such row group", "row_group")
    starts, seen = array("q", accumulate(groups, initial=0)), bytearray(sum(groups))
    for at, group in zip(file, row_group, strict=True):
        if at >= 0:
            check(not seen[starts[at] + group], "a row group comes twice", "row_group")
            seen[starts[at] + group] = 1
    return batch
