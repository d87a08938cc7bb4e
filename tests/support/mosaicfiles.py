"""Mosaic files for the suites: written and read by paimon-mosaic, and split and edited without bloomcli."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import mosaic
import pyarrow as pa

from support.thrift import read_varint, varint

FOOTER: Final = 32
DRAFT: Final = {"mosaic_draft": True}


def write(path: Path, table: pa.Table, *, batch: int | None = None, **options: Any) -> Path:
    """Write a table; `batch` is the number of rows of each row group."""
    if batch is not None:
        options.setdefault("row_group_max_size", 1)
    with (
        path.open("wb") as opened,
        mosaic.MosaicWriter(opened, table.schema, mosaic.WriterOptions(**options)) as rows,
    ):
        for part in table.to_batches(batch):
            rows.write(part)
    return path


def read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The table that the released reader sees."""
    data = path.read_bytes()
    return mosaic.read_table(lambda at, length: data[at : at + length], len(data), columns)


@dataclass(frozen=True)
class Bucket:
    """A bucket's entry in the index."""

    id: int
    offset: int
    size: int
    unpacked: int

    def encode(self) -> bytes:
        """Its bytes."""
        return varint(self.id) + self.offset.to_bytes(8, "big") + varint(self.size) + varint(self.unpacked)


@dataclass(frozen=True)
class Blob:
    """A filter's entry in the index."""

    column: int
    offset: int
    length: int

    def encode(self) -> bytes:
        """Its bytes."""
        return varint(self.column) + self.offset.to_bytes(8, "big") + varint(self.length)


@dataclass(frozen=True)
class Group:
    """A row group's entry, without statistics. A count other than None replaces the true one."""

    rows: int
    buckets: tuple[Bucket, ...]
    blobs: tuple[Blob, ...] = ()
    bucket_count: int | None = None
    statistics: bytes = b"\0"
    blob_count: int | None = None

    def encode(self, version: int) -> bytes:
        """Its bytes in a version of the format."""
        count = len(self.buckets) if self.bucket_count is None else self.bucket_count
        out = varint(self.rows) + varint(count) + b"".join(b.encode() for b in self.buckets) + self.statistics
        if version == 1:
            return out
        count = len(self.blobs) if self.blob_count is None else self.blob_count
        return out + varint(count) + b"".join(b.encode() for b in self.blobs)


@dataclass(frozen=True)
class Parts:
    """The parts of a file without statistics; `data()` joins them. Nothing is checked."""

    body: bytes
    schema: bytes
    """The bytes with their size in front."""
    groups: tuple[Group, ...]
    buckets: int
    compression: int
    version: int
    reserved: bytes = bytes(2)
    magic: bytes = b"MOSA"
    index: bytes | None = None
    schema_at: int | None = None
    index_at: int | None = None
    group_count: int | None = None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Split a file into parts."""
        tail = data[-FOOTER:]
        index_at, schema_at = int.from_bytes(tail[:8], "big"), int.from_bytes(tail[8:16], "big")
        index, at, groups = data[index_at:-FOOTER], 0, []
        for _ in range(int.from_bytes(tail[20:24], "big")):
            rows, at = read_varint(index, at)
            count, at = read_varint(index, at)
            buckets, blobs = [], []
            for _ in range(count):
                number, at = read_varint(index, at)
                offset = int.from_bytes(index[at : at + 8], "big")
                size, at = read_varint(index, at + 8)
                unpacked, at = read_varint(index, at)
                buckets.append(Bucket(number, offset, size, unpacked))
            none, at = read_varint(index, at)
            assert none == 0, "files with statistics aren't taken apart"
            if tail[25] == 2:
                count, at = read_varint(index, at)
                for _ in range(count):
                    column, at = read_varint(index, at)
                    offset = int.from_bytes(index[at : at + 8], "big")
                    length, at = read_varint(index, at + 8)
                    blobs.append(Blob(column, offset, length))
            groups.append(Group(rows, tuple(buckets), tuple(blobs)))
        assert at == len(index)
        buckets_of = int.from_bytes(tail[16:20], "big")
        body, schema = data[:schema_at], data[schema_at:index_at]
        parts = cls(body, schema, tuple(groups), buckets_of, tail[24], tail[25], tail[26:28])
        assert parts.data() == data
        return parts

    def data(self) -> bytes:
        """The file."""
        index = self.index
        if index is None:
            index = b"".join(g.encode(self.version) for g in self.groups)
        schema_at = len(self.body) if self.schema_at is None else self.schema_at
        index_at = len(self.body) + len(self.schema) if self.index_at is None else self.index_at
        count = len(self.groups) if self.group_count is None else self.group_count
        tail = index_at.to_bytes(8, "big") + schema_at.to_bytes(8, "big")
        tail += self.buckets.to_bytes(4, "big") + count.to_bytes(4, "big")
        tail += bytes([self.compression, self.version]) + self.reserved + self.magic
        return self.body + self.schema + index + tail

    def with_group(self, ordinal: int, **changes: Any) -> Self:
        """With other figures in one row group's entry."""
        groups = list(self.groups)
        groups[ordinal] = replace(groups[ordinal], **changes)
        return replace(self, groups=tuple(groups))

    def with_bucket(self, ordinal: int, position: int, **changes: Any) -> Self:
        """With other figures of one bucket."""
        buckets = list(self.groups[ordinal].buckets)
        buckets[position] = replace(buckets[position], **changes)
        return self.with_group(ordinal, buckets=tuple(buckets))

    def with_blob(self, ordinal: int, position: int, **changes: Any) -> Self:
        """With other figures of one filter."""
        blobs = list(self.groups[ordinal].blobs)
        blobs[position] = replace(blobs[position], **changes)
        return self.with_group(ordinal, blobs=tuple(blobs))

    def with_body(self, at: int, new: bytes) -> Self:
        """With other bytes in the body."""
        return replace(self, body=self.body[:at] + new + self.body[at + len(new) :])
