"""A source that counts the bytes that are read from it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Fingerprint, Source


class CountingSource(Source):
    """A wrapper of another source that counts bytes. Closes that source.

    Attributes:
        bytes_read: bytes that were read so far. Bytes that a store's client reads ahead count when they are used.
    """

    def __init__(self, original: Source) -> None:
        self._original = original
        self._lock = threading.Lock()
        self.path, self.size = original.path, original.size
        self.read_ahead_bytes, self.streams = original.read_ahead_bytes, original.streams
        self.request_bytes, self.part_bytes = original.request_bytes, original.part_bytes
        self.tail_bytes = original.tail_bytes
        self.bytes_read = 0

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce ranges."""
        self._original.will_read(ranges)

    def estimate(self, ranges: Iterable[tuple[int, int]]) -> Traffic:
        """Estimate the requests for reading ranges."""
        return self._original.estimate(ranges)

    @property
    def fingerprint(self) -> Fingerprint:
        """The file's fingerprint."""
        return self._original.fingerprint

    def _current(self) -> Fingerprint | None:
        return self._original._current()

    def _read(self, offset: int, length: int) -> bytes:
        data = self._original.read_at(offset, length)
        with self._lock:
            self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self._original.close()
