"""Keeps the hashes of a column chunk, to build its filter at several sizes."""

from __future__ import annotations

from bloomcli.filters.split_block import SplitBlockFilter


class HashBuffer:
    """The hashes of a column chunk, up to a maximum size.

    Args:
        most: the maximum number of bytes. If there are more hashes, all are dropped.

    Attributes:
        complete: all inserted hashes are in the buffer.
    """

    def __init__(self, most: int) -> None:
        self.complete = most > 0
        self._most = most
        self._parts: list[tuple[bytes | bytearray, int]] = []
        self._bytes = 0

    def insert_hashes(self, hashes: bytes | bytearray, count: int) -> None:
        """Keep `count` hashes, little-endian uint64s. The buffer isn't copied, so it must not change afterwards."""
        self._bytes += len(hashes)
        if self._bytes > self._most:
            self.complete = False
            self._parts.clear()
        if self.complete:
            self._parts.append((hashes, count))

    def filter(self, nbytes: int) -> SplitBlockFilter:
        """A filter of `nbytes` bytes with all hashes."""
        bits = SplitBlockFilter.empty(nbytes)
        for hashes, count in self._parts:
            bits.insert_hashes(hashes, count)
        return bits
