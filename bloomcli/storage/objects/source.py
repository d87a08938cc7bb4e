"""An object that is open for reading.

Opening it is one request, which reads its tail: footers lie there, and the answer has the size and the tag. Each
later range is read on the condition that the object still has this tag. An object whose size, tag and tail an index
has kept is opened without a request. Announced ranges are read ahead (`read_ahead.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.errors import UnreadableError
from bloomcli.model.traffic import Traffic
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage import traffic
from bloomcli.storage.base import Fingerprint, Source
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectInfo, ObjectNotFound
from bloomcli.storage.objects.read_ahead import GAP_BYTES, PART_BYTES, STREAMS, ReadAhead, merged
from bloomcli.storage.ranges import Range

TAIL_BYTES: Final = 256 << 10
"""How much of an object is read when it is opened: at 100 MB/s it takes an eighth of a request's 20 ms. Footers
of a few hundred columns and row groups fit in."""
_READ_AHEAD_BYTES: Final = 4 << 20
"""Bytes of a stream that wasn't announced, at a time: each read is a request."""


class Tail(NamedTuple):
    """An object's last bytes, what it is, and what reading them took."""

    data: bytes
    info: ObjectInfo
    traffic: Traffic


def read_tail(client: Client, at: Location) -> Tail | None:
    """Read an object's tail before it is opened, to find out whether there is one: None where there is none."""
    try:
        with traffic.counted_by(meter := traffic.Meter()):
            return Tail(*client.read_tail(at, TAIL_BYTES), meter.total)
    except ObjectNotFound:
        return None


class ObjectSource(Source):
    """An object that is open for reading."""

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
            client, at, path: the object.
            tail: what `read_tail` gave a moment ago, if it was called; its request counts as this source's.
            kept: other ranges of it that are known, each an offset and the bytes.
            tail_bytes: how much of it is read.

        Raises:
            UnreadableError: there is no such object, or it can't be read.
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
        """The object's size, time and tag when it was opened."""
        return fingerprint_of(self.info)

    def will_read(self, ranges: Iterable[Range]) -> None:
        """Announce ranges: they are read ahead, near ones together."""
        self._ahead.announce(self._before_tail(ranges))

    def estimate(self, ranges: Iterable[Range]) -> Traffic:
        """The requests that reading announced ranges takes."""
        lengths = [length for _, length in merged(self._before_tail(ranges))]
        return Traffic(requests=len(lengths), bytes_downloaded=sum(lengths))

    def _before_tail(self, ranges: Iterable[Range]) -> list[Range]:
        """The parts of ranges that the tail doesn't have; ranges that no file has, or that are kept, are left out."""
        inside = ((at, min(at + length, self._tail_at)) for at, length in ranges if at >= 0)
        return [(at, end - at) for at, end in inside if at < end and self._known_range(at, end - at) is None]

    def _known_range(self, offset: int, length: int) -> bytes | None:
        """A range that is within a kept one."""
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
        """Let go of what was read."""
        self._tail = b""
        self._tail_at = self.size
        self._ahead.close()


def object_from_parts(
    client: Client, path: str, fingerprint: Fingerprint, parts: Sequence[tuple[int, bytes]], name: str | None = None
) -> ObjectSource | None:
    """Open an object without a request, as `Store.open_from_parts`. None if a change of it couldn't be detected: its
    fingerprint has no tag, or no range is known.

    Args:
        client: of the store.
        path: the object.
        seen: its fingerprint.
        parts: ranges of it; the last one is its tail.
        name: the object in messages; the path by default.
    """
    if not fingerprint.tag or not parts:
        return None
    tail = Tail(parts[-1][1], ObjectInfo(fingerprint.size, fingerprint.tag, fingerprint.mtime_ns), Traffic())
    return ObjectSource(client, client.locate(path), name or path, tail, known_ranges=parts[:-1])


def fingerprint_of(info: ObjectInfo) -> Fingerprint:
    """The fingerprint of an object."""
    return Fingerprint(size=info.size, mtime_ns=info.mtime_ns, tag=info.tag)
