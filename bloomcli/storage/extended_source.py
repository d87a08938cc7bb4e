"""A file whose end is replaced in memory, as a source. A further change can be planned on it.

The pieces of that change refer to ranges of this source. `pieces` converts them to ranges of the file and new bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Fingerprint, KeptRange, Pieces, PlacedBytes, Source


class ExtendedSource(Source):
    """The first `kept` bytes of a file, followed by new bytes. Closing it leaves the file open."""

    def __init__(self, original: Source, kept: int, new: bytes) -> None:
        self.original = original
        self.kept = kept
        self.new = new
        self.path = original.path
        self.size = kept + len(new)
        self.read_ahead_bytes = original.read_ahead_bytes
        self.streams = original.streams

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce the parts of ranges that are in the file."""
        self.original.will_read(self._within(ranges))

    def pieces(self, pieces: Pieces) -> Pieces:
        """Convert pieces with kept ranges of this source to pieces with kept ranges of the file."""
        copied = 0
        with closing(pieces):
            for piece in pieces:
                if not isinstance(piece, KeptRange):
                    yield piece
                    continue
                for own in self._within([piece]):
                    yield KeptRange(*own)
                    copied += own[1]
                if new := self._new(*piece):
                    yield PlacedBytes(copied, new)
                    copied += len(new)

    def outline(self, outline: Iterable[KeptRange | int]) -> Iterator[KeptRange | int]:
        """Convert an outline as `pieces` converts pieces."""
        for piece in outline:
            if isinstance(piece, KeptRange):
                yield from (KeptRange(*own) for own in self._within([piece]))
                yield len(self._new(*piece))
            else:
                yield piece

    def estimate(self, ranges: Iterable[tuple[int, int]]) -> Traffic:
        """Estimate the requests for the parts of ranges that are in the file."""
        return self.original.estimate(self._within(ranges))

    def _within(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        for offset, length in ranges:
            if offset < self.kept:
                yield offset, min(length, self.kept - offset)

    def _new(self, offset: int, length: int) -> bytes:
        """The new bytes in a range."""
        return self.new[max(offset - self.kept, 0) : max(offset + length - self.kept, 0)]

    @property
    def fingerprint(self) -> Fingerprint:
        """The file's fingerprint."""
        return self.original.fingerprint

    def _current(self) -> Fingerprint | None:
        return self.original._current()

    def _read(self, offset: int, length: int) -> bytes:
        own = b"".join(self.original.read_at(*part) for part in self._within([(offset, length)]))
        return own + self._new(offset, length)

    def close(self) -> None:
        """Do nothing: the caller closes the file that it opened."""
