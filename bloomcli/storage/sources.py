"""Sources over other sources: one counts the bytes read, one caches ranges, one keeps those that are read twice, one
replaces the file's end in memory.

A further change can be planned on the last one. The pieces of that change refer to ranges of this source, and
`pieces` converts them to ranges of the file and new bytes.

`check_not_written` detects that another program wrote to a source while it was read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Fingerprint, KeptRange, Pieces, PlacedBytes, Source
from bloomcli.storage.local.source import fingerprint_of
from bloomcli.storage.os_errors import cannot_read


class CountingSource(Source):
    """A wrapper of another source that counts bytes. Closes that source.

    Attributes:
        bytes_read: bytes that were read so far. Bytes that a store's client reads ahead count when they are used.
    """

    def __init__(self, original: Source) -> None:
        self._original = original
        self._lock = threading.Lock()
        self.path, self.size, self.fingerprint = original.path, original.size, original.fingerprint
        self.read_ahead_bytes, self.request_bytes = original.read_ahead_bytes, original.request_bytes
        self.part_bytes, self.tail_bytes = original.part_bytes, original.tail_bytes
        self.bytes_read = 0

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce ranges."""
        self._original.will_read(ranges)

    def estimate(self, ranges: Iterable[tuple[int, int]]) -> Traffic:
        """Estimate the requests for reading ranges."""
        return self._original.estimate(ranges)

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


class RereadSource(CountingSource):
    """A wrapper of another source that keeps what is read in a block for the next reader of the same ranges, so that
    they are requested once. Closes that source."""

    def __init__(self, original: Source) -> None:
        super().__init__(original)
        self._kept: dict[tuple[int, int], bytes] = {}
        self._keeps = False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the ranges that the block reads, until they are read again or another block begins."""
        self._kept.clear()
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False

    def _read(self, offset: int, length: int) -> bytes:
        if not self._keeps:
            return self._kept.pop((offset, length), None) or super()._read(offset, length)
        data = self._kept[offset, length] = super()._read(offset, length)
        return data


class ExtendedSource(Source):
    """The first `kept` bytes of a file, followed by new bytes. Closing it leaves the file open."""

    def __init__(self, original: Source, kept: int, new: bytes) -> None:
        self.original = original
        self.kept = kept
        self.new = new
        self.path, self.size, self.fingerprint = original.path, kept + len(new), original.fingerprint
        self.read_ahead_bytes = original.read_ahead_bytes

    @property
    def stored(self) -> Source:
        """The file without the new bytes."""
        return self.original

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce the parts of ranges that are in the file."""
        self.original.will_read(self._within(ranges))

    def pieces(self, pieces: Pieces) -> Pieces:
        """Convert pieces: what this source adds to the file is new."""
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
        """Convert an outline."""
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

    def _current(self) -> Fingerprint | None:
        return self.original._current()

    def _read(self, offset: int, length: int) -> bytes:
        own = b"".join(self.original.read_at(*part) for part in self._within([(offset, length)]))
        return own + self._new(offset, length)


def check_not_written(source: Source) -> None:
    """Raise SourceChanged if the size or the modification time of an open local file changed after it was opened.

    A file that was renamed over it doesn't matter: it isn't the open one. Other stores return the bytes of one
    version, or raise.

    Raises:
        SourceChanged: the file changed.
        UnreadableError: the system can't look it up.
    """
    descriptor = source.fileno()
    if descriptor is None:
        return
    try:
        same = fingerprint_of(os.fstat(descriptor)) == source.fingerprint
    except OSError as error:
        raise cannot_read(source.path, error) from None
    if not same:
        raise source.changed("changed")
