"""Hashes the values of columns, row group by row group, to build filters or to check them.

The released package decodes the columns in a separate process (`paimon-mosaic`, of the extra ``mosaic``). It
sees a file with filters as the equivalent version-1 file without them. Hashed with XXH64, seed 0:

    bool                        1 byte, 0 or 1
    int8, int16, int32, int64   little-endian, at their own width
    float, double, date         little-endian
    string                      its bytes

Nulls are never hashed. If a floating-point column has a zero of either sign, filters get both zeros.

The uncompressed sizes that buckets claim are checked first, because the decoder trusts them:

    monolithic: one compressed block; its size, unpacked, is in the index
    paged:      [u16 parts | parts x u32 elements] | columns x u32 slot size | slots     (little-endian)
                a slot: varint size, unpacked | compressed block; size 0: all values are null

Slots have the order of the bucket's columns; those of the parts of lists and maps follow. Only a bucket with such
parts has the header in brackets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Self

from bloomcli import kernels
from bloomcli.errors import BloomError, CorruptFile, UnreadableError, UnsupportedError
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.formats.mosaic import spec
from bloomcli.formats.mosaic.decoder import Decoder
from bloomcli.formats.mosaic.footer import Bucket, Footer, RowGroup
from bloomcli.formats.mosaic.schema import WIDTHS, MosaicColumn
from bloomcli.formats.mosaic.spec import Cursor
from bloomcli.words import are, counted

_FLOATS: Final = {"FLOAT": "<f", "DOUBLE": "<d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedColumn:
    """The hashes of the non-null values of one column in one row group, and the values."""

    count: int
    hashes: bytes
    has_zero: bool
    values: Any
    """The Arrow array of the values, nulls included."""

    def value(self, index: int) -> str:
        """The text of the value with the hash at `index`. Slow: for the few values that are reported."""
        scalar = self.values.drop_null()[index]
        try:
            return str(scalar.as_py())
        except UnicodeDecodeError:
            return repr(scalar.as_buffer().to_pybytes())
        except (OverflowError, ValueError):  # a date that Python's calendar doesn't reach
            return f"{scalar.value} days after 1970-01-01"


def distinct_bound(column: MosaicColumn, count: int) -> int:
    """The maximum number of distinct values among `count` values of a column."""
    if column.family == "BOOLEAN":
        return min(count, 2)
    width = WIDTHS.get(column.family)
    return count if width is None else min(count, 1 << 8 * width)


def zero_hashes(column: MosaicColumn) -> tuple[int, ...]:
    """The hashes of both zeros of a floating-point column."""
    form = _FLOATS.get(column.family)
    return () if form is None else tuple(kernels.xxh64(struct.pack(form, zero)) for zero in (0.0, -0.0))


class ColumnReader:
    """Decodes row groups of chosen columns. Opens the file on first use. Raises UnsupportedError, UnreadableError."""

    def __init__(self, footer: Footer, columns: Sequence[MosaicColumn]) -> None:
        self._footer = footer
        self._columns = columns

    @cached_property
    def _decoder(self) -> Decoder:
        footer = self._footer
        cells = len(footer.row_groups) * footer.schema.buckets
        if cells > mosaic_limits.CELLS_MAX:
            raise UnsupportedError(
                f"{counted(len(footer.row_groups), 'row group')} of"
                f" {counted(footer.schema.buckets, 'bucket')} are too many to decode",
                path=footer.path,
                hint="write fewer and larger row groups",
            )
        try:
            return Decoder(footer.path, *released_view(footer), [c.name for c in self._columns])
        except UnreadableError as error:
            raise self._fault("the file", error, None) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_decoder" in self.__dict__:
            self._decoder.close()

    def _fault(self, what: str, error: BloomError, group: RowGroup | None) -> BloomError:
        if error.path is not None:  # an error about reading the file, which says more
            return error
        if "failed to spawn thread" in error.reason:  # it decodes in its own threads
            return UnsupportedError(
                "paimon-mosaic can't start a thread, which it needs to decode columns",
                path=self._footer.path,
                hint="`ulimit -u`, or the container's pids.max, says how many processes and threads there may be",
            )
        return type(error)(
            f"{what} can't be decoded ({error.reason})",
            path=self._footer.path,
            offset=min((b.offset for b in group.buckets), default=None) if group is not None else None,
            field=None if group is None else f"row_groups[{group.ordinal}]",
            hint=error.hint or "the data is damaged, or of a kind that paimon-mosaic doesn't know",
        )

    def row_group(self, group: RowGroup) -> dict[int, HashedColumn]:
        """The hashes of the chosen columns in a row group, by column."""
        batch = self.decoded(group)
        return {c.index: hash_column(batch.column(c.name), c) for c in self._columns}

    def no_rows(self) -> Any:
        """The chosen columns in their order, an Arrow record batch without rows."""
        try:
            batch = self._decoder.no_rows()
        except UnreadableError as error:
            raise self._fault("the schema", error, None) from None
        return batch.select([c.name for c in self._columns])

    def decoded(self, group: RowGroup) -> Any:
        """The chosen columns of a row group in their order, an Arrow record batch."""
        if group.rows > mosaic_limits.ROWS_MAX:
            raise UnsupportedError(
                f"a row group of {counted(group.rows, 'row')} is too large to decode",
                path=self._footer.path,
                field=f"row_groups[{group.ordinal}]",
                hint="write smaller row groups",
            )
        check_buckets(self._footer, group, self._columns)
        try:
            batch = self._decoder.row_group(group.ordinal)
        except UnreadableError as error:
            raise self._fault("the row group", error, group) from None
        if batch.num_rows != group.rows:
            wrong = CorruptFile(f"it has {counted(batch.num_rows, 'row')}, the index says {group.rows}")
            raise self._fault("the row group", wrong, group)
        names = [c.name for c in self._columns]
        if missing := [name for name in names if name not in batch.schema.names]:
            raise self._fault("the row group", CorruptFile(f"it has no bucket with the column {missing[0]}"), group)
        return batch.select(names)


def released_view(footer: Footer) -> tuple[Callable[[int, int], bytes], int]:
    """A view of the file as a version-1 file: (function that reads bytes, size). Only the end of the index moves."""
    source = footer.source
    if footer.version == spec.RELEASED:
        return source.read_at, source.size
    index = b"".join(group.raw for group in footer.row_groups)
    tail = bytearray(footer.tail)
    tail[spec.VERSION_AT] = spec.RELEASED
    end = index + bytes(tail)
    size = footer.index_at + len(end)

    def read_at(offset: int, length: int) -> bytes:
        kept = max(min(footer.index_at - offset, length), 0)
        start = max(offset - footer.index_at, 0)
        return source.read_at(offset, kept) * (kept > 0) + end[start : start + length - kept]

    return read_at, size


def hash_column(array: Any, column: MosaicColumn) -> HashedColumn:
    """Hash a column's non-null values, in order."""
    import pyarrow as pa

    from bloomcli.formats.wanted_values import xxh64_of

    values = array.drop_null()
    if column.family == "BOOLEAN":
        values = values.cast(pa.uint8())
    elif column.family not in WIDTHS:
        values = values.cast(pa.large_binary())
    count, zero = len(values), False
    if column.family in _FLOATS and count:
        width = WIDTHS[column.family]
        stored = memoryview(values.buffers()[1]).cast("B")[width * values.offset :]
        zero = kernels.has_zero(stored, width, count)
    return HashedColumn(count=count, hashes=xxh64_of(values), has_zero=zero, values=array)


def check_buckets(footer: Footer, group: RowGroup, columns: Sequence[MosaicColumn]) -> None:
    """Check the sizes that a row group's buckets claim for these columns. Raises CorruptFile."""
    wanted = {c.bucket for c in columns}
    for position, bucket in enumerate(group.buckets):
        if bucket.id not in wanted:
            continue
        field = f"row_groups[{group.ordinal}].buckets[{position}]"
        if bucket.unpacked:
            _check_size(footer, bucket.unpacked, bucket.offset, field)
        elif bucket.size:
            _check_paged(footer, bucket, columns, field)


def _check_size(footer: Footer, size: int, offset: int, field: str) -> None:
    if size > mosaic_limits.BUCKET_MAX_BYTES:
        raise CorruptFile(
            f"{counted(size, 'byte')} {are(size)} claimed to be compressed here; writers stop at"
            f" {mosaic_limits.BUCKET_MAX_BYTES}",
            path=footer.path,
            offset=offset,
            field=field,
            hint="the file is damaged; get it from its source again",
        )


def slots(footer: Footer, bucket: Bucket, field: str) -> dict[int, tuple[int, int]]:
    """The offset and the size of each column's slot in a paged bucket, by ordinal. Raises CorruptFile."""
    members = footer.members[bucket.id]
    parts = sum(c.parts for c in members)
    count = len(members) + parts
    start = (2 + 4 * parts if parts else 0) + 4 * count
    data = footer.source.read_at(bucket.offset, min(start, bucket.size))
    cursor = Cursor(data, base=bucket.offset, path=footer.path, field=field)
    if parts:
        stored_parts = int.from_bytes(cursor.take(2, "the number of parts"), "little")
        if stored_parts != parts:
            raise cursor.fault(f"{counted(stored_parts, 'part')} of lists and maps; the schema has {parts}", 0)
        cursor.take(4 * parts, "the parts' numbers of elements")
    sizes = [int.from_bytes(cursor.take(4, "a slot's size"), "little") for _ in range(count)]
    if start + sum(sizes) != bucket.size:
        raise cursor.fault(
            f"directory and slots take {counted(start + sum(sizes), 'byte')}, the bucket has {bucket.size}", 0
        )
    offsets = accumulate(sizes, initial=bucket.offset + start)
    # the parts' slots follow the columns'
    return {column.index: (at, size) for column, at, size in zip(members, offsets, sizes, strict=False)}


def _check_paged(footer: Footer, bucket: Bucket, columns: Sequence[MosaicColumn], field: str) -> None:
    chosen = {c.index for c in columns}
    for index, (at, size) in slots(footer, bucket, field).items():
        if size and index in chosen:
            head = footer.source.read_at(at, min(size, spec.VARINT_BYTES))
            slot = Cursor(head, base=at, path=footer.path, field=f"{field}.columns[{index}]")
            _check_size(footer, slot.varint("a column's size, unpacked"), at, slot.field)
