"""A source that reads an object of a store.

Opening sends one request, which reads the object's tail: it contains the footer, and the answer has the size and the
tag. Later ranges are read on the condition that the object still has this tag. No request is sent to open an object
whose size, tag and tail are in an index. Announced ranges are read ahead (`read_ahead.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bloomcli.errors import UnreadableError
from bloomcli.model.traffic import Traffic
from bloomcli.storage import traffic
from bloomcli.storage.base import Fingerprint, Range, Source
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectInfo, ObjectNotFound
from bloomcli.storage.objects.read_ahead import GAP_BYTES, PART_BYTES, STREAMS, ReadAhead, merged

TAIL_BYTES: Final = 256 << 10
"""Bytes that opening an object reads: at 100 MB/s they take an eighth of a request's 20 ms. The footer of a file
with a few hundred columns and row groups fits."""
_READ_AHEAD_BYTES: Final = 4 << 20
"""Bytes per request when a stream reads a range that wasn't announced."""


class Tail(NamedTuple):
    """An object's last bytes, its information, and the traffic of reading them."""

    data: bytes
    info: ObjectInfo
    traffic: Traffic


def read_tail(client: Client, at: Location) -> Tail | None:
    """Read an object's tail before it is opened, to find out whether it exists. None if it doesn't."""
    try:
        with traffic.counted_by(meter := traffic.Meter()):
            return Tail(*client.read_tail(at, TAIL_BYTES), meter.total)
    except ObjectNotFound:
        return None


class ObjectSource(Source):
    """A source that reads an object of a store."""

    read_ahead_bytes = _READ_AHEAD_BYTES
    streams = STREAMS
    request_bytes = GAP_BYTES
    part_bytes = PART_BYTES
    tail_bytes = TAIL_BYTES

    def __init__(
        self,
        client: Client,
        at: Location,
        path: str,
        tail: Tail | None = None,
        *,
        known_ranges: Sequence[tuple[int, bytes]] = (),
        tail_bytes: int = TAIL_BYTES,
    ) -> None:
        """Open an object.

        Args:
            client: sends the requests.
            at: the object.
            path: its name in messages.
            tail: the result of a recent `read_tail`, if any; its traffic counts as this source's.
            known_ranges: known content outside the tail, as pairs of offset and bytes.
            tail_bytes: size of the tail to read, in bytes.

        Raises:
            UnreadableError: the object doesn't exist or can't be read.
        """
        self.path, self.at, self._client, self._known_ranges = path, at, client, tuple(known_ranges)
        self._meter = traffic.current()
        try:
            if tail is None:
                self._tail, self.info = client.read_tail(at, tail_bytes)
            else:
                self._tail, self.info = tail.data, tail.info
                self._meter.add(tail.traffic)
        except ObjectNotFound:
            raise UnreadableError("can't be read: no such file", path=path, hint="check the path") from None
        self.size = self.info.size
        self._tail_at = self.size - len(self._tail)
        self._ahead = ReadAhead(self._fetch)

    @property
    def fingerprint(self) -> Fingerprint:
        """The object's size, change time and tag when it was opened."""
        return fingerprint_of(self.info)

    def will_read(self, ranges: Iterable[Range]) -> None:
        """Announce ranges: they are read ahead, and near ones are merged."""
        self._ahead.announce(self._before_tail(ranges))

    def estimate(self, ranges: Iterable[Range]) -> Traffic:
        """The traffic of reading announced ranges."""
        lengths = [length for _, length in merged(self._before_tail(ranges))]
        return Traffic(requests=len(lengths), bytes_downloaded=sum(lengths))

    def _before_tail(self, ranges: Iterable[Range]) -> list[Range]:
        """The parts of ranges before the tail, without known ranges and ranges outside the file."""
        inside = ((at, min(at + length, self._tail_at)) for at, length in ranges if at >= 0)
        return [(at, end - at) for at, end in inside if at < end and self._known_range(at, end - at) is None]

    def _known_range(self, offset: int, length: int) -> bytes | None:
        """The bytes of a range that lies within a known one; None if none contains it."""
        for start, data in self._known_ranges:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        return None

    def _current(self) -> Fingerprint | None:
        with traffic.counted_by(self._meter):
            found = self._client.head(self.at)
        return None if found is None else fingerprint_of(found)

    def _read(self, offset: int, length: int) -> bytes:
        start = max(offset - self._tail_at, 0)
        before = min(max(self._tail_at - offset, 0), length)
        behind = self._tail[start : start + length - before]
        if not before:
            return behind
        known = self._known_range(offset, length)
        if known is not None:
            return known
        data = self._ahead.read(offset, before)
        return data + behind if behind else data

    def _fetch(self, offset: int, length: int) -> bytes:
        try:
            with traffic.counted_by(self._meter):
                return self._client.read(self.at, offset, length, self.info.tag)
        except (ObjectNotFound, Conflict):
            raise self.changed("changed") from None

    def close(self) -> None:
        """Free the bytes that were read."""
        self._tail = b""
        self._tail_at = self.size
        self._ahead.close()


def object_from_parts(
    client: Client, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]], name: str | None = None
) -> ObjectSource | None:
    """Open an object without a request, for `Store.open_from_parts`.

    Args:
        client: the store's client.
        path: the object.
        fingerprint: its fingerprint.
        parts: known ranges as pairs of offset and bytes; the last one is the tail.
        name: the object's name in messages; the path by default.

    Returns:
        The source. None if the fingerprint has no tag, as a change couldn't be detected, or no range is known.
    """
    if not fingerprint.tag or not parts:
        return None
    tail = Tail(parts[-1][1], ObjectInfo(fingerprint.size, fingerprint.tag, fingerprint.mtime_ns), Traffic())
    return ObjectSource(client, client.locate(path), name or path, tail, known_ranges=parts[:-1])


def fingerprint_of(info: ObjectInfo) -> Fingerprint:
    """The fingerprint of an object."""
    return Fingerprint(size=info.size, mtime_ns=info.mtime_ns, tag=info.tag)
