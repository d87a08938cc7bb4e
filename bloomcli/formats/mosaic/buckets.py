"""Checks the uncompressed sizes that buckets claim, because the decoder trusts them.

    monolithic: one compressed block; its size, unpacked, is in the index
    paged:      [u16 parts | parts x u32 elements] | columns x u32 slot size | slots     (little-endian)
                a slot: varint size, unpacked | compressed block; size 0: all values are null

Slots have the order of the bucket's columns; those of the parts of lists and maps follow. Only a bucket with such
parts has the header in brackets.
"""

from __future__ import annotations

from collections.abc import Sequence

from bloomcli.errors import CorruptFile
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.formats.mosaic.footer import Bucket, Footer, RowGroup
from bloomcli.formats.mosaic.schema import MosaicColumn
from bloomcli.formats.mosaic.spec import Cursor
from bloomcli.words import are, counted

_VARINT_BYTES = 5


def check(footer: Footer, group: RowGroup, columns: Sequence[MosaicColumn]) -> None:
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


def _check_paged(footer: Footer, bucket: Bucket, columns: Sequence[MosaicColumn], field: str) -> None:
    members = footer.members[bucket.id]
    parts = sum(c.parts for c in members)
    header = 2 + 4 * parts if parts else 0
    slots = len(members) + parts
    start = header + 4 * slots
    data = footer.source.read_at(bucket.offset, min(start, bucket.size))
    cursor = Cursor(data, base=bucket.offset, path=footer.path, field=field)
    if parts:
        found = int.from_bytes(cursor.take(2, "the number of parts"), "little")
        if found != parts:
            raise cursor.fault(f"{counted(found, 'part')} of lists and maps; the schema has {parts}", 0)
        cursor.take(4 * parts, "the parts' numbers of elements")
    sizes = [int.from_bytes(cursor.take(4, "a slot's size"), "little") for _ in range(slots)]
    if start + sum(sizes) != bucket.size:
        raise cursor.fault(
            f"directory and slots take {counted(start + sum(sizes), 'byte')}, the bucket has {bucket.size}", 0
        )
    chosen = {c.index for c in columns}
    at = bucket.offset + start
    for column, size in zip(members, sizes, strict=False):  # the parts' slots follow the columns'
        if size and column.index in chosen:
            head = footer.source.read_at(at, min(size, _VARINT_BYTES))
            slot = Cursor(head, base=at, path=footer.path, field=f"{field}.columns[{column.index}]")
            _check_size(footer, slot.varint("a column's size, unpacked"), at, slot.field)
        at += size
