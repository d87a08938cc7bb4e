"""Reads and checks the end of a Mosaic file: footer, schema block, row-group index.

    footer, 32 bytes, big-endian:
    u64 index offset | u64 schema block offset | u32 buckets | u32 row groups | u8 compression | u8 version
    | 2 reserved bytes | "MOSA"

    schema block: u32 uncompressed size | schema, compressed as the footer says

    row-group index, for each row group:
    varint rows | varint n | n x { varint bucket | u64 offset | varint bytes | varint bytes unpacked, 0: paged }
    | varint n | n x { varint column | varint nulls | [minimum | maximum, unless all are null] }
    | in version 2: varint n | n x { varint column | u64 offset | varint bytes }      (the filters)

The first two parts of an index entry are kept as bytes: a changed file has the same ones, with other offsets.

`schema_tree` and `footer_tree` show the schema and the whole footer as trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import Tree, binary
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.formats.mosaic import spec
from bloomcli.formats.mosaic.schema import MosaicColumn, Schema, read_schema
from bloomcli.formats.mosaic.spec import Cursor
from bloomcli.model.schema import SchemaNode
from bloomcli.storage.base import Source
from bloomcli.words import are, counted

_LEAST_BUCKET: Final = 11
_LEAST_STATISTICS: Final = 2
_LEAST_FILTER: Final = 10
_OFFSET_BYTES: Final = 8
_STEP: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One bucket of one row group."""

    id: int
    offset: int
    size: int
    unpacked: int
    """Uncompressed bytes; 0 for a paged bucket, whose columns are compressed one by one."""
    offset_at: int
    """The position of its offset in the index entry."""

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + self.size

    @property
    def layout(self) -> str:
        """``empty``, ``monolithic`` or ``paged``."""
        return "empty" if not self.size else "monolithic" if self.unpacked else "paged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A column's statistics in a row group. Bounds are the file's bytes, None if all values are null."""

    nulls: int
    minimum: bytes | None
    maximum: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLocation:
    """The location of one filter, by the index. Its column and range aren't checked yet."""

    row_group: int
    position: int
    """Its position among the row group's filters."""
    column: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + self.length

    @property
    def field(self) -> str:
        """Its field path."""
        return f"row_groups[{self.row_group}].filters[{self.position}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """One entry of the row-group index."""

    ordinal: int
    rows: int
    buckets: tuple[Bucket, ...]
    statistics: dict[int, Statistics]
    """By column."""
    filters: tuple[FilterLocation, ...]
    raw: bytes
    """The entry without its filters; in version 1 the whole entry."""

    @property
    def data_bytes(self) -> int:
        """Compressed bytes of its buckets."""
        return sum(b.size for b in self.buckets)

    def bucket_bytes(self, bucket: int) -> int:
        """Compressed bytes of one bucket; 0 if it is empty."""
        return sum(b.size for b in self.buckets if b.id == bucket)

    def non_null(self, column: int) -> int:
        """Non-null values of a column; all rows without statistics."""
        stats = self.statistics.get(column)
        return self.rows - (stats.nulls if stats is not None else 0)

    def encoded(self, moved: dict[int, int], filters: bytes) -> bytes:
        """The entry with new bucket offsets (by `offset_at`), followed by the bytes of its filters."""
        out = bytearray(self.raw)
        for at, offset in moved.items():
            out[at : at + _OFFSET_BYTES] = offset.to_bytes(_OFFSET_BYTES, "big")
        return bytes(out) + filters


class Footer:
    """A Mosaic file's metadata. Raises CorruptFile, UnsupportedError."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.footer_at = source.size - spec.FOOTER_BYTES
        if self.footer_at < 0:
            raise self._fault(
                f"a file of {counted(source.size, 'byte')} can't hold a footer of {spec.FOOTER_BYTES}", 0
            )
        self.tail = source.read_at(self.footer_at, spec.FOOTER_BYTES)
        if self.tail[-len(spec.MAGIC) :] != spec.MAGIC:
            raise self._fault(f"the file ends in {self.tail[-4:]!r}, not in {spec.MAGIC!r}", source.size - 4)
        self.index_at = int.from_bytes(self.tail[0:8], "big")
        self.schema_at = int.from_bytes(self.tail[8:16], "big")
        code = self.tail[spec.COMPRESSION_AT]
        if code not in spec.COMPRESSIONS:
            reason = f"compression {code}; 0 (none) and 1 (zstd) are known"
            raise self._unknown(reason, spec.COMPRESSION_AT, "footer.compression")
        self.compression = spec.COMPRESSIONS[code]
        self.version = self.tail[spec.VERSION_AT]
        if self.version not in {spec.RELEASED, spec.DRAFT}:
            reason = f"version {self.version} of the format; 1 and 2 (the draft with filters) are known"
            raise self._unknown(reason, spec.VERSION_AT, "footer.version")
        if not self.schema_at + 4 <= self.index_at <= self.footer_at:
            raise self._fault(
                f"the schema block at {self.schema_at} and the index at {self.index_at} don't lie in this order "
                f"before the footer at {self.footer_at}",
                self.footer_at,
            )
        if self.footer_at - self.schema_at > limits.FOOTER_MAX_BYTES:
            raise UnsupportedError(
                f"metadata of {counted(self.footer_at - self.schema_at, 'byte')}",
                path=self.path,
                offset=self.schema_at,
                field="footer",
                hint=f"bloom reads up to {limits.FOOTER_MAX_BYTES} bytes of it; write smaller files",
            )
        source.will_read([(self.schema_at, self.footer_at - self.schema_at)])
        self.schema = self._read_schema()
        self.row_groups = self._read_index()

    def _fault(self, reason: str, offset: int, field: str = "footer") -> CorruptFile:
        return CorruptFile(reason, path=self.path, offset=offset, field=field, hint=spec.HINT_DAMAGED)

    def _unknown(self, reason: str, at: int, field: str) -> UnsupportedError:
        hint = "write the file with a released writer"
        return UnsupportedError(reason, path=self.path, offset=self.footer_at + at, field=field, hint=hint)

    @property
    def columns(self) -> tuple[MosaicColumn, ...]:
        """The columns, in name-sorted order."""
        return self.schema.columns

    @cached_property
    def members(self) -> list[list[MosaicColumn]]:
        """The columns of each bucket."""
        buckets: list[list[MosaicColumn]] = [[] for _ in range(self.schema.buckets)]
        for column in self.columns:
            buckets[column.bucket].append(column)
        return buckets

    @property
    def filters(self) -> Iterator[FilterLocation]:
        """Every filter in the index, in its order."""
        return (location for group in self.row_groups for location in group.filters)

    def _read_schema(self) -> Schema:
        block = self.source.read_at(self.schema_at, self.index_at - self.schema_at)
        size = int.from_bytes(block[:4], "big")
        data = block[4:]
        if self.compression == "ZSTD":
            data = self._decompress(data, size)
        schema = read_schema(
            Cursor(data, base=self.schema_at + 4, path=self.path, field="schema", packed=self.compression != "NONE")
        )
        buckets = int.from_bytes(self.tail[16:20], "big")
        if buckets != schema.buckets:
            raise self._fault(
                f"the footer says {counted(buckets, 'bucket')}, the schema {schema.buckets}",
                self.footer_at + 16,
                "footer.buckets",
            )
        return schema

    def _decompress(self, data: bytes, size: int) -> bytes:
        if size > mosaic_limits.SCHEMA_MAX_BYTES:
            raise self._fault(
                f"a schema of {counted(size, 'byte')}; {mosaic_limits.SCHEMA_MAX_BYTES} are read",
                self.schema_at,
                "schema",
            )
        import zstandard

        unpacked = bytearray()
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as stream:
                # in small steps: memory grows with the bytes that are read, not with the claimed size
                while len(unpacked) <= size and (step := stream.read(_STEP)):
                    unpacked += step
        except (zstandard.ZstdError, MemoryError) as error:
            raise self._fault(f"the schema can't be decompressed ({error})", self.schema_at, "schema") from None
        if len(unpacked) != size:
            length = f"{len(unpacked)}" if len(unpacked) < size else "more"
            raise self._fault(
                f"the schema decompresses to {length} bytes, {size} {are(size)} claimed",
                self.schema_at,
                "schema",
            )
        return bytes(unpacked)

    def _read_index(self) -> tuple[RowGroup, ...]:
        data = self.source.read_at(self.index_at, self.footer_at - self.index_at)
        cursor = Cursor(data, base=self.index_at, path=self.path, field="row_groups")
        count = int.from_bytes(self.tail[20:24], "big")
        least = 3 if self.version == spec.RELEASED else 4
        if count * least > len(data):
            raise self._fault(
                f"{counted(count, 'row group')} {are(count)} claimed, the index has {counted(len(data), 'byte')}",
                self.footer_at + 20,
                "footer.row_groups",
            )
        cursor.add_parts(count)
        groups = tuple(self._read_row_group(cursor, ordinal) for ordinal in range(count))
        if rest := cursor.remaining:
            cursor.field = "row_groups"
            raise cursor.fault(f"{counted(rest, 'byte')} {are(rest)} left behind the last row group of the index")
        return groups

    def _read_row_group(self, cursor: Cursor, ordinal: int) -> RowGroup:
        start = cursor.pos
        cursor.field = field = f"row_groups[{ordinal}]"
        rows = cursor.varint("rows")
        buckets = self._read_buckets(cursor, start, field)
        statistics = self._read_statistics(cursor, rows, field)
        raw = cursor.data[start : cursor.pos]
        filters: list[FilterLocation] = []
        if self.version == spec.DRAFT:
            cursor.field = f"{field}.filters"
            for position in range(cursor.parts("filters", _LEAST_FILTER)):
                column = cursor.varint("a filter's column")
                offset = cursor.u64("a filter's offset")
                length = cursor.varint("a filter's bytes")
                filters.append(
                    FilterLocation(row_group=ordinal, position=position, column=column, offset=offset, length=length)
                )
        return RowGroup(
            ordinal=ordinal,
            rows=rows,
            buckets=buckets,
            statistics=statistics,
            filters=tuple(filters),
            raw=raw,
        )

    def _read_buckets(self, cursor: Cursor, start: int, field: str) -> tuple[Bucket, ...]:
        cursor.field = f"{field}.buckets"
        count = cursor.parts("buckets", _LEAST_BUCKET)
        if count > self.schema.buckets:
            raise cursor.fault(f"{counted(count, 'bucket')} of {self.schema.buckets}")
        buckets: dict[int, Bucket] = {}
        for position in range(count):
            cursor.field = f"{field}.buckets[{position}]"
            here = cursor.pos
            number = cursor.varint("a bucket's number")
            if number >= self.schema.buckets or number in buckets:
                what = "comes twice" if number in buckets else f"isn't one of {self.schema.buckets}"
                raise cursor.fault(f"bucket {number} {what}", here)
            offset_at = cursor.pos - start
            bucket = Bucket(
                id=number,
                offset=cursor.u64("a bucket's offset"),
                size=cursor.varint("a bucket's bytes"),
                unpacked=cursor.varint("a bucket's bytes, unpacked"),
                offset_at=offset_at,
            )
            if not bucket.size and bucket.unpacked:
                raise cursor.fault(f"an empty bucket that unpacks to {counted(bucket.unpacked, 'byte')}", here)
            if bucket.end > self.schema_at:
                raise cursor.fault(
                    f"the bucket at {bucket.offset}, {counted(bucket.size, 'byte')}, runs past the data's"
                    f" end, {self.schema_at}",
                    here,
                )
            buckets[number] = bucket
        return tuple(buckets.values())

    def _read_statistics(self, cursor: Cursor, rows: int, field: str) -> dict[int, Statistics]:
        cursor.field = f"{field}.statistics"
        by_column: dict[int, Statistics] = {}
        for position in range(cursor.parts("statistics", _LEAST_STATISTICS)):
            cursor.field = f"{field}.statistics[{position}]"
            here = cursor.pos
            column = cursor.varint("a column")
            if column >= len(self.columns):
                raise cursor.fault(f"statistics of column {column}, the file has {len(self.columns)}", here)
            nulls = cursor.varint("nulls")
            if nulls > rows:
                raise cursor.fault(f"{counted(nulls, 'null')} in {counted(rows, 'row')}", here)
            low = high = None
            if nulls < rows:
                low = self._bound(cursor, self.columns[column], "a minimum")
                high = self._bound(cursor, self.columns[column], "a maximum")
            by_column.setdefault(column, Statistics(nulls=nulls, minimum=low, maximum=high))
        return by_column

    @staticmethod
    def _bound(cursor: Cursor, column: MosaicColumn, what: str) -> bytes:
        width = column.width
        return cursor.take(cursor.varint(f"the length of {what}") if width is None else width, what)


def schema_tree(footer: Footer) -> Iterator[SchemaNode]:
    """Yield the columns in the order that the writer was given."""
    for index in footer.schema.order:
        column = footer.columns[index]
        yield SchemaNode(
            depth=1,
            name=column.name,
            path=column.name,
            type=column.type_name,
            repetition=None if column.nullable else "required",
            column=index,
            attributes=(("bucket", str(column.bucket)),),
        )


def footer_tree(footer: Footer) -> dict[str, Tree]:
    """Footer, schema block and row-group index. Raises UnsupportedError if they have very many parts."""
    parts = sum(1 + len(g.buckets) + len(g.statistics) + len(g.filters) for g in footer.row_groups)
    if parts + len(footer.columns) > mosaic_limits.DUMP_MAX_PARTS:
        raise UnsupportedError(
            f"metadata of more than {mosaic_limits.DUMP_MAX_PARTS} parts",
            path=footer.path,
            offset=footer.footer_at,
            field="footer",
            hint="`bloom inspect` without --footer sums them up",
        )
    schema = footer.schema
    return {
        "footer": {
            "offset": footer.footer_at,
            "length": spec.FOOTER_BYTES,
            "index_offset": footer.index_at,
            "schema_offset": footer.schema_at,
            "buckets": schema.buckets,
            "row_groups": len(footer.row_groups),
            "compression": footer.compression,
            "version": footer.version,
            "reserved": binary(footer.tail[26:28], text=False),
            "magic": spec.MAGIC.decode(),
        },
        "schema": {
            "offset": footer.schema_at,
            "length": footer.index_at - footer.schema_at,
            "byte_pair_rules": schema.rules,
            "order": list(schema.order),
            "columns": [
                {"name": c.name, "type": c.type_name, "nullable": c.nullable, "bucket": c.bucket}
                for c in schema.columns
            ],
        },
        "index": {
            "offset": footer.index_at,
            "length": footer.footer_at - footer.index_at,
            "row_groups": [_row_group(group) for group in footer.row_groups],
        },
    }


def _row_group(group: RowGroup) -> dict[str, Tree]:
    return {
        "rows": group.rows,
        "buckets": [
            {
                "bucket": b.id,
                "offset": b.offset,
                "length": b.size,
                "unpacked_length": b.unpacked,
                "layout": b.layout,
            }
            for b in group.buckets
        ],
        "statistics": [
            {
                "column": column,
                "nulls": stats.nulls,
                "minimum": None if stats.minimum is None else binary(stats.minimum, text=False),
                "maximum": None if stats.maximum is None else binary(stats.maximum, text=False),
            }
            for column, stats in group.statistics.items()
        ],
        "filters": [{"column": f.column, "offset": f.offset, "length": f.length} for f in group.filters],
    }
