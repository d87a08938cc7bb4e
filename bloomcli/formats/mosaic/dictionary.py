"""The entries of dictionary columns: at the start of a row group's monolithic bucket, or of a column's slot.

    monolithic bucket, unpacked:
        [varint columns | varint parts | parts x varint elements] | 2 bits of encoding for each column
        | 1 bit "has nulls" for each column | the values of constant columns | dictionaries | null bitmaps | data
    slot of a paged bucket, unpacked: u8 encoding | u8 flags | a constant or a dictionary | null bitmap | data
    dictionary: varint entries | entries
    value: big-endian at its type's width, or varint length | bytes

Only buckets with lists or maps have the part in brackets. Source: the released implementation (Apache Paimon Mosaic
0.2.0): its design document and its bucket readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile
from bloomcli.formats.answer import DictionaryLookup, Lookup
from bloomcli.formats.dictionary import DictionaryEntries, ReadBudget
from bloomcli.formats.mosaic import values
from bloomcli.formats.mosaic.footer import Bucket, Footer, RowGroup
from bloomcli.formats.mosaic.schema import MosaicColumn
from bloomcli.formats.mosaic.spec import Cursor

PLAIN: Final = 0
CONSTANT: Final = 1
DICTIONARY: Final = 2
ONLY_NULLS: Final = 3

_START_BYTES: Final = 256 << 10
"""Compressed bytes of a slot that are read: the dictionary is at its start, and writers stop at 32 KiB of entries."""


class _TooLarge(Exception):
    """The entries don't lie within the bytes that are read."""


def entries(footer: Footer, group: RowGroup, column: MosaicColumn) -> list[bytes] | None:
    """The dictionary entries of a column in a row group, as stored; one for a constant, none for a column of nulls.

    None if the column has no dictionary, or one that is too large. Reads a monolithic bucket whole, and of a paged
    bucket the start of the column's slot.

    Raises CorruptFile, UnsupportedError.
    """
    position = next((i for i, b in enumerate(group.buckets) if b.id == column.bucket and b.size), None)
    if position is None:
        return None
    bucket = group.buckets[position]
    field = f"row_groups[{group.ordinal}].buckets[{position}]"
    members = footer.members[column.bucket]
    try:
        if bucket.unpacked:
            return _of_bucket(footer, bucket, members, column, field)
        return _of_slot(footer, bucket, members, column, field)
    except _TooLarge:
        return None


def lookup_of(footer: Footer, group: RowGroup, column: MosaicColumn, budget: ReadBudget) -> DictionaryLookup | None:
    """Return the lookup in a column's dictionary in a row group; None for types whose values can't be compared."""
    if column.family not in {*values.WIDTHS, "STRING", "BYTES"} or not group.rows:
        return None

    @cache
    def found() -> DictionaryEntries | None:
        if not budget.take(group.bucket_bytes(column.bucket)):
            return None
        stored = entries(footer, group, column)
        return None if stored is None or _contradicts_bounds(stored, group, column) else _hashed(stored, column)

    def excludes(lookup: Lookup) -> bool | None:
        hashes = found()
        return None if hashes is None else not any(map(hashes.check, lookup.hashes))

    return excludes


def _contradicts_bounds(stored: Sequence[bytes], group: RowGroup, column: MosaicColumn) -> bool:
    """Whether the statistics' minimum or maximum isn't an entry. Floats aren't compared: zeros have two encodings."""
    known = group.statistics.get(column.index)
    if known is None or column.family not in values.WIDTHS or column.family in {"BOOLEAN", "FLOAT", "DOUBLE"}:
        return False
    return not {bound for bound in (known.minimum, known.maximum) if bound is not None} <= set(stored)


def _hashed(stored: Sequence[bytes], column: MosaicColumn) -> DictionaryEntries:
    """The hashes that a filter would have: of little-endian bytes, and of both zeros if there is one."""
    if column.family not in values.WIDTHS:
        return DictionaryEntries(b"", map(kernels.xxh64, stored))
    hashes = {kernels.xxh64(entry[::-1]) for entry in stored}
    zeros = set(values.zero_hashes(column))
    return DictionaryEntries(b"", hashes | zeros if hashes & zeros else hashes)


def _of_bucket(
    footer: Footer, bucket: Bucket, members: Sequence[MosaicColumn], column: MosaicColumn, field: str
) -> list[bytes] | None:
    if any(c.parts for c in members) or bucket.size > limits.PROBED_DICTIONARY_MAX_BYTES:
        return None  # parts of lists and maps have other types
    packed = footer.source.read_at(bucket.offset, bucket.size)
    data, whole = _unpacked(footer, packed, bucket.unpacked, bucket.offset, field)
    cursor = _cursor(footer, data, bucket.offset, field)
    try:
        flags = cursor.take(-(-len(members) // 4), "the columns' encodings")
        encodings = [flags[i // 4] >> 2 * (i % 4) & 3 for i in range(len(members))]
        cursor.take(-(-len(members) // 8), "the columns with nulls")
        found: dict[int, list[bytes]] = {}
        for member, encoding in zip(members, encodings, strict=True):
            if encoding == CONSTANT:
                found[member.index] = [_value(cursor, member)]
        for member, encoding in zip(members, encodings, strict=True):
            if encoding == DICTIONARY:
                found[member.index] = list(_dictionary(cursor, member))
            elif encoding == ONLY_NULLS:
                found[member.index] = []
    except CorruptFile:
        if whole:
            raise
        raise _TooLarge from None
    return found.get(column.index)


def _of_slot(
    footer: Footer, bucket: Bucket, members: Sequence[MosaicColumn], column: MosaicColumn, field: str
) -> list[bytes] | None:
    parts = sum(c.parts for c in members)
    start = (2 + 4 * parts if parts else 0) + 4 * (len(members) + parts)
    head = footer.source.read_at(bucket.offset, min(start, bucket.size))
    if len(head) < start:
        raise _cursor(footer, head, bucket.offset, field).fault("the bucket ends within its directory", 0)
    directory = head[start - 4 * (len(members) + parts) :]
    sizes = [int.from_bytes(directory[at : at + 4], "little") for at in range(0, 4 * len(members), 4)]
    ordinal = next(i for i, c in enumerate(members) if c.index == column.index)
    size = sizes[ordinal]
    if not size:
        return []
    at = bucket.offset + start + sum(sizes[:ordinal])
    if at + size > bucket.end:
        raise _cursor(footer, head, bucket.offset, field).fault("a slot runs past the bucket's end", 0)
    packed = footer.source.read_at(at, min(size, _START_BYTES))
    slot = f"{field}.columns[{column.index}]"
    cursor = Cursor(packed, base=at, path=footer.path, field=slot)
    claimed = cursor.varint("a column's size, unpacked")
    data, whole = _unpacked(footer, packed[cursor.pos :], claimed, at, slot)
    cursor = _cursor(footer, data, at, slot)
    try:
        encoding = cursor.byte("the column's encoding")
        cursor.byte("the column's flags")
        if encoding == CONSTANT:
            return [_value(cursor, column)]
        return list(_dictionary(cursor, column)) if encoding == DICTIONARY else None
    except CorruptFile:
        if whole and size <= _START_BYTES:
            raise
        raise _TooLarge from None


def _cursor(footer: Footer, data: bytes, offset: int, field: str) -> Cursor:
    return Cursor(data, base=offset, path=footer.path, field=field, packed=footer.compression != "NONE")


def _unpacked(footer: Footer, packed: bytes, claimed: int, offset: int, field: str) -> tuple[bytes, bool]:
    """The first bytes of a decompressed block, and whether they are the whole block. Raises CorruptFile."""
    most = limits.PROBED_DICTIONARY_MAX_BYTES
    if footer.compression == "NONE":
        return packed, True
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            data = reader.read(min(claimed, most))
    except zstandard.ZstdError as error:
        fault = _cursor(footer, b"", offset, field).fault(f"it can't be decompressed ({error})", 0)
        raise fault from None
    return data, claimed <= most


def _dictionary(cursor: Cursor, column: MosaicColumn) -> Iterator[bytes]:
    for _ in range(cursor.count("a dictionary's entries", column.width or 1)):
        yield _value(cursor, column)


def _value(cursor: Cursor, column: MosaicColumn) -> bytes:
    width = column.width
    return cursor.take(cursor.varint("a value's length") if width is None else width, "a value")
