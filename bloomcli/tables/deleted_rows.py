"""The deleted rows of a table's data file, which executors read from deletion vectors and delete files.

A search reads them only after it has found rows in the data file. The driver only knows which delete files apply to
which data file.

Delete files are Parquet and ORC, which pyarrow reads, or Avro, for which fastavro is needed (the extra ``avro``).

A deletion vector is a blob with the row numbers that are deleted. Iceberg and Delta use the same format: the length
(big-endian, without the checksum), the bytes D1 D3 39 64, a 64-bit Roaring bitmap in the portable format, and a
CRC-32 (big-endian) of magic and bitmap. Sources: the Puffin specification ("deletion-vector-v1"), Delta's PROTOCOL.md
("Deletion Vector Format"), RoaringFormatSpec.

Row numbers are looked up in the stored form of the bitmap, which is never expanded.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet as pq

from bloomcli.datasets.record_shape import Constant, RecordField, Shape, apply_shape
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError, install
from bloomcli.storage.registry import open_source
from bloomcli.storage.table_files import read_blocks
from bloomcli.words import counted

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_WITHOUT_RUNS: Final = 12346
_WITH_RUNS: Final = 12347
_NO_OFFSETS: Final = 4
"""Bitmaps with runs and fewer containers than this have no offsets."""
_ARRAY_MOST: Final = 4096
_BITMAP_BYTES: Final = 8192


class Bitmap:
    """A 64-bit Roaring bitmap.

    Args:
        data: the bitmap in the portable format, without trailing bytes.
        path, offset: the file, and the bitmap's offset in it, for errors.

    Attributes:
        count: how many numbers it has.

    Raises:
        CorruptFile: the data isn't a valid bitmap.
    """

    def __init__(self, data: bytes, path: str, offset: int = 0) -> None:
        self._data = memoryview(data)
        self._containers: dict[int, Callable[[int], bool]] = {}
        """For each container, by the upper 48 bits of its numbers, a function that looks up the lower 16 bits."""
        self._at = self.count = 0
        try:
            (count,) = self._take("<Q")
            for _ in range(count):
                (high,) = self._take("<I")
                self._read(high)
        except (struct.error, ValueError, IndexError):
            raise CorruptFile("the deletion vector is damaged: it ends too early", path=path, offset=offset) from None
        if self._at != len(data):
            raise CorruptFile("the deletion vector is damaged: it is too long", path=path, offset=offset)

    def __contains__(self, number: int) -> bool:
        has = self._containers.get(number >> 16)
        return has is not None and has(number & 0xFFFF)

    def _take(self, form: str) -> tuple[int, ...]:
        numbers = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return numbers

    def _bytes(self, count: int) -> memoryview:
        if self._at + count > len(self._data):
            raise ValueError
        self._at += count
        return self._data[self._at - count : self._at]

    def _read(self, high: int) -> None:
        """Read a 32-bit bitmap."""
        (cookie,) = self._take("<I")
        runs = b""
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            runs = bytes(self._bytes((count + 7) // 8))
        elif cookie == _WITHOUT_RUNS:
            (count,) = self._take("<I")
        else:
            raise ValueError
        headers = struct.unpack(f"<{2 * count}H", self._bytes(4 * count))
        if not runs or count >= _NO_OFFSETS:
            self._bytes(4 * count)
        for at in range(count):
            key, cardinality = headers[2 * at], headers[2 * at + 1] + 1
            if runs and runs[at // 8] >> at % 8 & 1:
                has, cardinality = self._runs()
            elif cardinality <= _ARRAY_MOST:
                has = frozenset(struct.unpack(f"<{cardinality}H", self._bytes(2 * cardinality))).__contains__
            else:
                has = _of_bits(bits := self._bytes(_BITMAP_BYTES))
                cardinality = int.from_bytes(bits, "little").bit_count()
            self.count += cardinality
            self._containers[high << 16 | key] = has

    def _runs(self) -> tuple[Callable[[int], bool], int]:
        (count,) = self._take("<H")
        pairs = struct.unpack(f"<{2 * count}H", self._bytes(4 * count))
        starts, lengths = pairs[::2], pairs[1::2]

        def has(low: int) -> bool:
            at = bisect_right(starts, low) - 1
            return at >= 0 and low - starts[at] <= lengths[at]

        return has, sum(lengths) + count


def _of_bits(bits: memoryview) -> Callable[[int], bool]:
    return lambda low: bool(bits[low >> 3] >> (low & 7) & 1)


def from_blob(blob: bytes, path: str, offset: int) -> Bitmap:
    """Read the bitmap of a blob, and check its length and checksum. Raises CorruptFile."""
    if len(blob) < 12 or int.from_bytes(blob[:4], "big") != len(blob) - 8:
        raise CorruptFile("the deletion vector isn't as long as it says", path=path, offset=offset)
    if zlib.crc32(blob[4:-4]) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFile("the deletion vector's checksum doesn't match", path=path, offset=offset)
    return from_body(blob[4:-4], path, offset + 4)


def from_body(body: bytes, path: str, offset: int = 0) -> Bitmap:
    """Read the bitmap that follows the magic bytes. Raises CorruptFile."""
    if body[:4] != _MAGIC:
        raise CorruptFile("the deletion vector doesn't begin with its magic bytes", path=path, offset=offset)
    return Bitmap(body[4:], path, offset + 4)


_ROWS_AT_ONCE: Final = 1 << 16
_AVRO_ID: Final = "field-id"
"""Iceberg's attribute for the id of a field. Source: Iceberg's specification, "Appendix A: Avro"."""


def delete_rows(path: str, kind: str, shape: Shape, size: int | None = None) -> Iterator[pa.StructArray]:
    """Yield the rows of a delete file, batch by batch.

    Args:
        path: the file.
        kind: its format, according to the table's metadata.
        shape: the columns; found by field ids, or by names in files without ids.
        size: its bytes, according to the table's metadata; None if they don't have it.

    Raises:
        CorruptFile: it can't be decoded, or has another size.
        UnreadableError: the store can't read it.
        UnsupportedError: its format isn't supported, or the package that reads it isn't installed.
    """
    read = _READERS.get(kind)
    if read is None:
        raise UnsupportedError(
            f"a delete file of the format {kind}: its deleted rows can't be read",
            path=path,
            hint="rewrite the table's delete files, or use --files-only without --table",
        )
    with open_source(path) as source:
        if size is not None and source.size != size:
            raise CorruptFile(
                f"the delete file has {counted(source.size, 'byte')}, and the table says {size}",
                path=path,
                hint="the file is cut off or was replaced; restore it",
            )
        data = source.read_at(0, source.size)
    try:
        for batch in read(data, shape):
            yield apply_shape(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)), shape, path)
    except ImportError:
        raise UnsupportedError(
            "delete files in Avro are read by fastavro, which isn't installed",
            path=path,
            hint=install("avro"),
        ) from None
    except (pa.ArrowException, OSError, ValueError, LookupError, EOFError, TypeError, ArithmeticError) as error:
        if isinstance(error, BloomError):
            raise
        reason = " ".join(str(error).split())[:200] or "it is cut off"
        raise CorruptFile(f"the delete file can't be read: {reason}", path=path) from None


def _of_parquet(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    names = set(file.schema_arrow.names)
    columns = [field.name for field in shape]
    chosen = columns if all(field.field_id is None and field.name in names for field in shape) else None
    rows = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=chosen, use_threads=False):
        rows += batch.num_rows
        yield batch
    if rows != file.metadata.num_rows:  # Arrow ends early, without an error, if pages are damaged
        raise ValueError(f"the pages have {counted(rows, 'row')}, and the footer says {file.metadata.num_rows}")


def _of_orc(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    del shape  # all columns are read
    file = pyarrow.orc.ORCFile(pa.BufferReader(data))
    for stripe in range(file.nstripes):
        yield file.read_stripe(stripe)


def _of_avro(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    schema, blocks = read_blocks(data)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its rows aren't records")
    chosen = [(field, name) for field in shape if (name := _avro_name(schema["fields"], field)) is not None]
    for rows in blocks:
        arrays = [pa.array([_plain(row[name], field) for row in rows], field.type) for field, name in chosen]
        fields = [pa.field(field.name, field.type, metadata=_id_of(field)) for field, _ in chosen]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _avro_name(fields: list[Mapping[str, Any]], field: RecordField) -> str | None:
    """The name of a field in a file; None if the file doesn't have it."""
    with_ids = any(_AVRO_ID in avro_field for avro_field in fields)
    for avro_field in fields:
        if (
            avro_field.get(_AVRO_ID) == field.field_id
            if with_ids and field.field_id is not None
            else avro_field["name"] in field.names
        ):
            return str(avro_field["name"])
    return None


def _id_of(field: RecordField) -> dict[bytes, bytes]:
    return {} if field.field_id is None else {b"PARQUET:field_id": str(field.field_id).encode()}


def _plain(value: Any, field: RecordField) -> Any:
    """A value of fastavro in a form that pyarrow converts."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime) and getattr(field.type, "tz", None) is None:
        return value.replace(tzinfo=None)
    return value


_READERS: Final[Mapping[str, Callable[[bytes, Shape], Iterator[pa.RecordBatch]]]] = {
    "parquet": _of_parquet,
    "orc": _of_orc,
    "avro": _of_avro,
}


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
        rows: the number of deleted rows, according to the table's metadata; None if they don't have it.
    """

    path: str = ""
    offset: int = 0
    size: int = 0
    body: bytes | None = None
    rows: int | None = None

    def read(self) -> Bitmap:
        """The bitmap. Raises CorruptFile, UnreadableError."""
        if self.body is not None:
            bitmap = from_body(self.body, self.path)
        else:
            with open_source(self.path) as source:
                bitmap = from_blob(source.read_at(self.offset, self.size), self.path, self.offset)
        if self.rows is not None and self.rows != bitmap.count:
            deleted = counted(bitmap.count, "row")
            reason = f"the deletion vector deletes {deleted}, and the table's metadata say {self.rows}"
            raise CorruptFile(reason, path=self.path, offset=self.offset)
        return bitmap


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
        arrays = [
            rows.field(1).filter(pc.equal(rows.field(0), data_file))
            for rows in delete_rows(self.path, self.format, _POSITIONS, self.size)
        ]
        return pa.concat_arrays(arrays) if arrays else pa.array([], pa.int64())


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


def _equal_rows(columns: Sequence[pa.Array], deleted: Sequence[pa.Array]) -> pa.BooleanArray:
    """For each row of some columns, whether the deleted columns have an equal row."""
    sides = columns[0], deleted[0]
    for pair in zip(columns[1:], deleted[1:], strict=True):  # the columns before, and this one, as one number each
        before, values = pc.unique(sides[1]), pc.unique(pair[1])
        sides = tuple(
            pc.add(pc.multiply(_place(left, before), len(values)), _place(right, values))
            for left, right in zip(sides, pair, strict=True)
        )
    matches = pc.is_in(sides[0], value_set=sides[1])
    return matches if len(columns) == 1 else pc.and_(sides[0].is_valid(), matches)


def _place(values: pa.Array, others: pa.Array) -> pa.Int64Array:
    """The positions of values in others; null for those that aren't there."""
    return pc.index_in(values, value_set=others).cast(pa.int64())


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
        return {column.name for equality in self.equalities for column in equality.shape}

    def kept(self, rows: pa.Int64Array, record: pa.StructArray) -> pa.BooleanArray:
        """For each row, whether it isn't deleted.

        Args:
            rows: row numbers in the data file.
            record: the same rows, with `columns`.

        Raises:
            CorruptFile, UnreadableError, UnsupportedError: a delete file can't be read.
        """
        if self._read is None:
            positions = [deletes.positions(self.data_file) for deletes in self.positions]
            numbers = pa.concat_arrays(positions) if positions else pa.array([], pa.int64())
            self._read = [vector.read() for vector in self.vectors], numbers
        bitmaps, numbers = self._read
        deleted = pc.is_in(rows, value_set=numbers)
        for bitmap in bitmaps:
            deleted = pc.or_(deleted, pa.array([number in bitmap for number in rows.to_pylist()], pa.bool_()))
        for equality in self.equalities:
            deleted = pc.or_(deleted, equality.matches(record))
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
