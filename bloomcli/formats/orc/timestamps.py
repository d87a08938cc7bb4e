"""Hashes timestamps from their two streams.

    DATA        seconds from 2015-01-01 00:00 in the writer's time zone, rounded towards zero
    SECONDARY   nanoseconds; the lowest three bits say how many zeros were cut off the end

Writers hash the milliseconds on their wall clock as if it showed UTC, rounded down. Readers differ in two ways. The
sign of a timestamp decides whether a second is subtracted, because seconds are rounded towards zero: orc-core takes
the sign of the instant, ORC C++ that of the wall clock. And each reader has its own time zone data (see `zones`). The
hashes that other readers compute are returned too.

Source: the Apache ORC specification, Timestamp Columns; orc-core, TreeReaderFactory.TimestampTreeReader.
"""

from __future__ import annotations

from bloomcli import kernels
from bloomcli.formats.orc.streams import ByteStream, integers


class TimestampHasher:
    """Hashes timestamps, also as other readers read them."""

    def __init__(
        self, seconds: ByteStream, nanos: ByteStream, version: int, zone: kernels.WriterZone, *, repeats: bool = False
    ) -> None:
        """`repeats`: give hashes of other readings for each of equal neighbours, not only for the first."""
        self._repeats = repeats
        self._seconds = integers(seconds, version, signed=True)
        self._nanos = integers(nanos, version, signed=False)
        self._fault = nanos.fault
        self._zone = zone
        self._count = 0
        self._other_hashes: list[tuple[bytearray, bytearray]] = []

    def hash_next(self, count: int, out: bytearray) -> bool:
        """Hash the next `count` timestamps, as a `column_reader.Hasher`."""
        seconds, nanos = self._seconds.take(count), self._nanos.take(count)
        try:
            differ = kernels.orc_hash_moments(seconds, nanos, count, self._zone, out, self._repeats)
        except kernels.RunError as error:
            raise self._fault(str(error)) from None
        if differ:
            room = differ * self._zone.readings * 8
            owners, other_hashes = bytearray(room), bytearray(room)
            found = kernels.orc_other_moments(
                seconds, nanos, count, self._zone, self._count, owners, other_hashes, self._repeats
            )
            self._other_hashes.append((owners[: found * 8], other_hashes[: found * 8]))
        self._count += count
        return False

    def other_hashes(self) -> tuple[bytearray, bytearray]:
        """(numbers of values, hashes of other readings of them) since the last call, as int64s."""
        found, self._other_hashes, self._count = self._other_hashes, [], 0
        return bytearray().join(o for o, _ in found), bytearray().join(h for _, h in found)
