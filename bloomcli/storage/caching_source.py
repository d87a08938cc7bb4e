"""A source that keeps what was read: where each read is a request, the same ranges are requested once."""

from __future__ import annotations

from typing import Final

from bloomcli.storage.base import Source
from bloomcli.storage.counting_source import CountingSource

_KEPT_BYTES: Final = 64 << 20


class CachingSource(CountingSource):
    """Another source, which it closes. It gives the bytes that it read before of ranges that are read again.

    It keeps the first ones, up to 64 MiB: what is read again is read in the same order, and the latest ones would be
    gone whenever they are needed.
    """

    def __init__(self, original: Source) -> None:
        super().__init__(original)
        self._kept: dict[tuple[int, int], bytes] = {}
        self._left = _KEPT_BYTES

    def _read(self, offset: int, length: int) -> bytes:
        key = offset, length
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        data = super()._read(offset, length)
        with self._lock:
            if key not in self._kept and length <= self._left:
                self._kept[key] = data
                self._left -= length
        return data
