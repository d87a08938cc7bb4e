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
from bloomcli.formats.answer import DictionaryEntries, DictionaryLookup, Lookup, ReadBudget
from bloomcli.formats.mosaic import values
from bloomcli.formats.mosaic.footer import Bucket, Footer, RowGroup
from bloomcli.formats.mosaic.schema import WIDTHS, MosaicColumn
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
    try:
        if bucket.unpacked:
            return _of_bucket(footer, bucket, footer.members[column.bucket], column, field)
        return _of_slot(footer, bucket, column, field)
    except _TooLarge:
        return None


def lookup_of(footer: Footer, group: RowGroup, column: MosaicColumn, budget: ReadBudget) -> DictionaryLookup | None:
    """Return the lookup in a column's dictionary in a row group; None for types whose values can't be compared."""
    if column.family not in {*WIDTHS, "STRING", "BYTES"} or not group.rows:
        return None

    @cache
    def hashed_entries() -> DictionaryEntries | None:
        if not budget.take(group.bucket_bytes(column.bucket)):
            return None
        stored = entries(footer, group, column)
        if stored is None:
            return None
        stats = group.statistics.get(column.index)
        exact = column.family in WIDTHS.keys() - {"BOOLEAN", "FLOAT", "DOUBLE"}  # zeros have two encodings
        ends = {stats.minimum, stats.maximum} - {None} if stats is not None and exact else set()
        return _hashed(stored, column) if ends <= set(stored) else None  # dictionary or statistics are wrong

    def excludes(lookup: Lookup) -> bool | None:
        hashes = hashed_entries()
        return None if hashes is None else not any(map(hashes.check, lookup.hashes))

    return excludes


def _hashed(stored: Sequence[bytes], column: MosaicColumn) -> DictionaryEntries:
    """The hashes that a filter would have: of little-endian bytes, and of both zeros if there is one."""
    if column.family not in WIDTHS:
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
        dictionaries: dict[int, list[bytes]] = {}
        for member, encoding in zip(members, encodings, strict=True):
            if encoding == CONSTANT:
                dictionaries[member.index] = [_value(cursor, member)]
        for member, encoding in zip(members, encodings, strict=True):
            if encoding == DICTIONARY:
                dictionaries[member.index] = list(_dictionary(cursor, member))
            elif encoding == ONLY_NULLS:
                dictionaries[member.index] = []
    except CorruptFile:
        if whole:
            raise
        raise _TooLarge from None
    return dictionaries.get(column.index)


def _of_slot(footer: Footer, bucket: Bucket, column: MosaicColumn, field: str) -> list[bytes] | None:
    at, size = values.slots(footer, bucket, field)[column.index]
    if not size:
        return []
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
