"""The hashes of values: of a column's, to build filters or to check them, and of values to look up.

Hashed is what orc-core hashes, by type:

    tinyint to bigint, date      the number                            Wang
    timestamp                    milliseconds, rounded down            Wang
    float (widened), double      the double's bits, NaN canonical      Wang
    string, char, varchar        the bytes                             Murmur3
    decimal                      its text, trailing zeros trimmed      Murmur3
    list, map                    the number of elements                Wang

Nulls are never hashed. If a floating-point column has a zero of either sign, filters get both zeros.

Timestamps have two streams:

    DATA        seconds from 2015-01-01 00:00 in the writer's time zone, rounded towards zero
    SECONDARY   nanoseconds; the lowest three bits say how many zeros were cut off the end

Writers hash the milliseconds on their wall clock as if it showed UTC, rounded down. Readers differ in two ways. The
sign of a timestamp decides whether a second is subtracted, because seconds are rounded towards zero: orc-core takes
the sign of the instant, ORC C++ that of the wall clock. And each reader has its own time zone data (see `zones`). The
hashes that other readers compute are returned too.

Source: the Apache ORC specification, Timestamp Columns; orc-core, BloomFilter and
TreeReaderFactory.TimestampTreeReader.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import (
    FLOATS,
    INTEGERS,
    REPEATED,
    STRINGS,
    TIMESTAMPS,
    Counted,
    LeafReader,
    ValueReader,
    Values,
)
from bloomcli.model.file import Column

_HASH_BYTES: Final = 8
_NANOS_PER_MILLI: Final = 1_000_000
_LONG: Final = (1 << 64) - 1
"""Java's longs wrap around."""
_ZEROS: Final = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))

HASHABLE: Final = frozenset((*INTEGERS, *FLOATS, *STRINGS, *TIMESTAMPS, "BYTE", "DECIMAL"))
"""Kinds of leaf columns that can have filters."""
READABLE: Final = HASHABLE | {*REPEATED}
"""Kinds whose filters can be checked against the column."""


def zero_hashes() -> bytearray:
    """Both zeros' hashes."""
    out = bytearray(16)
    kernels.orc_hash_double(b"".join(_ZEROS), 8, 0, 2, out)
    return out


def encoded_hash(encoded: bytes, orc: OrcType, typed: Column) -> int:
    """The hash of a value, whose PLAIN bytes in the literal's column are `encoded`."""
    out = bytearray(_HASH_BYTES)
    if orc.kind in FLOATS:
        kernels.orc_hash_double(encoded, len(encoded), 0, 1, out)
    elif orc.kind in TIMESTAMPS:
        millis = int.from_bytes(encoded, "little", signed=True) // _NANOS_PER_MILLI
        kernels.orc_hash_long((millis & _LONG).to_bytes(8, "little"), 8, 0, 1, out)
    elif orc.kind == "DECIMAL":
        kernels.orc_hash_decimals(encoded, 1, typed.scale, out)
    elif orc.kind == "CHAR":
        text = encoded.decode("utf-8", "surrogateescape").rstrip(" ")  # no meaning: readers cut, then pad
        padded = text.ljust(orc.maximum_length)
        return kernels.orc_hash_bytes(padded.encode("utf-8", "surrogateescape"))
    elif orc.kind in STRINGS:
        return kernels.orc_hash_bytes(encoded)
    else:
        kernels.orc_hash_long(encoded, len(encoded), 0, 1, out)
    return int.from_bytes(out, "little")


def why_hashed_otherwise(encoded: Iterable[bytes], orc: OrcType) -> str | None:
    """Why filters don't answer for values of these PLAIN bytes; None if all writers hash them alike. ORC C++ may hash
    a timestamp before 1970, with a part of a millisecond, as a millisecond later; one in the first second of 1970 as
    a second earlier, because ORC stores both alike."""
    for form in encoded if orc.kind in TIMESTAMPS else ():
        millis, nanos = divmod(int.from_bytes(form, "little", signed=True), _NANOS_PER_MILLI)
        if (millis < 0 and nanos) or 0 < millis < 1000:
            return "writers hash such timestamps about 1970 differently"
    return None


def _hashes_of(values: Values, orc: OrcType) -> bytearray:
    """The hashes of a column's values, of all kinds but timestamps, and not of indexes of a dictionary."""
    count = values.count
    if values.digest is not None:
        return bytearray(values.digest.to_bytes(_HASH_BYTES, "little"))
    out = bytearray(count * _HASH_BYTES)
    if orc.kind in FLOATS:
        kernels.orc_hash_double(values.data, FLOATS[orc.kind], 0, count, out)
    elif orc.kind == "DECIMAL":
        kernels.orc_hash_decimals(values.data, count, orc.scale, out)
    elif values.lengths is not None:
        kernels.orc_hash_lengths(values.data, values.lengths, count, out)
    else:
        kernels.orc_hash_long(values.data, 1 if orc.kind == "BYTE" else 8, 0, count, out)
    return out


def hashed_entries(leaf: LeafReader, parts: Iterator[Values] | None = None) -> bytearray:
    """The hashes of all entries of a stripe's dictionary, or of `parts` of it. Raises CorruptFile, UnsupportedError,
    Stopped."""
    table = bytearray()
    for entries in leaf.dictionary() if parts is None else parts:
        table += _hashes_of(entries, leaf.orc)
    return table


@dataclass(frozen=True, slots=True)
class HashBatch:
    """Hashes of the non-null values of some rows, at most a batch."""

    count: int
    hashes: bytearray
    has_zero: bool
    other_hashes: bytearray
    """Hashes that some readers compute for a value in place of its hash in `hashes`."""
    owners: bytearray
    """For each hash in `other_hashes`, the number of its value in the batch, as int64."""
    values: Values
    """The values, until the next batch is read."""


class ColumnHasher:
    """Hashes the values of one column of one stripe, from the first row to the last.

    Args:
        reader: the column's values.
        repeats: give hashes of other readings for each of equal neighbours, not only for the first.
        entries: the entries of the dictionary, if they are read elsewhere too.
    """

    def __init__(
        self, reader: ValueReader[Counted], *, repeats: bool = False, entries: Iterator[Values] | None = None
    ) -> None:
        self._reader = reader
        self.leaf = reader.leaf
        self._repeats = repeats
        self._table = None if self.leaf.entries is None else hashed_entries(self.leaf, entries)

    def take(self, rows: int) -> Iterator[HashBatch]:
        """Hash the non-null values of the next rows, in batches. Consume them before the next call. Raises
        CorruptFile, UnsupportedError, Stopped."""
        for values, _ in self._reader.take(rows):
            yield self._batch(values)

    def _batch(self, values: Values) -> HashBatch:
        orc, count = self.leaf.orc, values.count
        has_zero = False
        other_hashes, owners = bytearray(), bytearray()
        if self._table is not None:
            out = bytearray(count * _HASH_BYTES)
            try:
                kernels.orc_gather(self._table, values.data, count, out)
            except kernels.RunError as error:
                raise self.leaf.fault(str(error)) from None
        elif values.nanos is not None and self.leaf.zone is not None:
            out, owners, other_hashes = self._moments(values.data, values.nanos, count, self.leaf.zone)
        else:
            out = _hashes_of(values, orc)
            has_zero = orc.kind in FLOATS and kernels.has_zero(values.data, FLOATS[orc.kind], count)
        return HashBatch(count, out, has_zero, other_hashes, owners, values)

    def _moments(
        self, seconds: bytes | bytearray | memoryview, nanos: memoryview, count: int, zone: kernels.WriterZone
    ) -> tuple[bytearray, bytearray, bytearray]:
        """The hashes of timestamps, the owners of the hashes of other readings, and these hashes."""
        out = bytearray(count * _HASH_BYTES)
        try:
            differ = kernels.orc_hash_moments(seconds, nanos, count, zone, out, self._repeats)
        except kernels.RunError as error:
            raise self.leaf.fault(str(error), "SECONDARY") from None
        if not differ:
            return out, bytearray(), bytearray()
        room = differ * zone.readings * _HASH_BYTES
        owners, others = bytearray(room), bytearray(room)
        number = kernels.orc_other_moments(seconds, nanos, count, zone, owners, others, self._repeats)
        return out, owners[: number * _HASH_BYTES], others[: number * _HASH_BYTES]


def column_hasher(footer: Footer, streams: StripeFooter, orc: OrcType, stop: Stop) -> ColumnHasher:
    """Hash a column of a stripe. Raises CorruptFile, UnsupportedError."""
    return ColumnHasher(ValueReader(footer, streams, orc, Counted, stop))


def memory(streams: StripeFooter, orc: OrcType) -> int:
    """Maximum bytes of memory for reading a column of a stripe, apart from a few windows and batches: those of its
    dictionary's hashes."""
    encoding = streams.encoding(orc.id)
    return 0 if encoding is None else _HASH_BYTES * min(encoding.entries, orc_limits.DICTIONARY_MAX)
