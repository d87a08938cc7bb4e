"""An object that is open for reading.

Opening it is one request, which reads its tail: footers lie there, and the answer has the size and the tag. Each
later range is read on the condition that the object still has this tag.
"""

from __future__ import annotations

from typing import Final

from bloomcli.errors import UnreadableError
from bloomcli.storage import traffic
from bloomcli.storage.base import Fingerprint, Source
from bloomcli.storage.objects.client import Absent, Client, Conflict, Location, ObjectInfo

TAIL_BYTES: Final = 256 << 10
"""How much of an object is read when it is opened: at 100 MB/s it takes an eighth of a request's 20 ms."""
_READ_AHEAD_BYTES: Final = 4 << 20
"""Each read is a request, which takes its time."""


class ObjectSource(Source):
    """An object that is open for reading."""

    read_ahead_bytes = _READ_AHEAD_BYTES

    def __init__(self, client: Client, at: Location, path: str) -> None:
        self.path, self.at, self._client = path, at, client
        self._meter = traffic.current()
        try:
            self._tail, self.info = client.read_tail(at, TAIL_BYTES)
        except Absent:
            raise UnreadableError("can't be read: no such file", path=path, hint="check the path") from None
        self.size = self.info.size
        self._tail_at = self.size - len(self._tail)

    @property
    def fingerprint(self) -> Fingerprint:
        """The object's size, time and tag when it was opened."""
        return _fingerprint(self.info)

    def _current(self) -> Fingerprint | None:
        with traffic.counted_by(self._meter):
            found = self._client.head(self.at)
        return None if found is None else _fingerprint(found)

    def _read(self, offset: int, length: int) -> bytes:
        if offset >= self._tail_at:
            start = offset - self._tail_at
            return self._tail[start : start + length]
        try:
            with traffic.counted_by(self._meter):
                return self._client.read(self.at, offset, length, self.info.tag)
        except (Absent, Conflict):
            raise self.changed("changed") from None

    def close(self) -> None:
        """Let go of the tail."""
        self._tail = b""
        self._tail_at = self.size


def _fingerprint(info: ObjectInfo) -> Fingerprint:
    return Fingerprint(size=info.size, mtime_ns=info.mtime_ns, tag=info.tag)
