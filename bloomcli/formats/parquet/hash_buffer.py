"""The hashes of a column chunk, kept so that its filter can be built at several sizes."""

from __future__ import annotations

from bloomcli.filters.split_block import SplitBlockFilter


class HashBuffer:
    """Hashes, as pages give them, up to a ceiling.

    Args:
        most: bytes of the hashes that are kept at most. If there are more, all are let go of.

    Attributes:
        complete: every hash that was inserted is kept.
    """

    def __init__(self, most: int) -> None:
        self.complete = most > 0
        self._most = most
        self._parts: list[tuple[bytes | bytearray, int]] = []
        self._bytes = 0

    def insert_hashes(self, hashes: bytes | bytearray, count: int) -> None:
        """Keep `count` hashes, little-endian uint64s. The buffer isn't copied: it must not change any more."""
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
