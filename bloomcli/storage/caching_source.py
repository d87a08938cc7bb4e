"""A source that caches the ranges that it read: where each read is a request, a range is requested once."""

from __future__ import annotations

from typing import Final

from bloomcli.storage.base import Source
from bloomcli.storage.counting_source import CountingSource

_KEPT_BYTES: Final = 64 << 20


class CachingSource(CountingSource):
    """A wrapper of another source that returns cached bytes for ranges that are read again. Closes that source.

    It caches the first 64 MiB. Ranges are read again in the same order, so that a cache of the latest ones would
    never have the range that is needed next.
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
