"""The content of a new object, assembled from pieces: ranges of the source, and new bytes.

New bytes are kept until the object is written, so that the object can be verified before it replaces the old one and
compared with the stored one afterwards. Beyond `_IN_MEMORY_BYTES`, they are kept in an unnamed temporary file.
"""

from __future__ import annotations

import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bloomcli.errors import SourceChanged, WriteError
from bloomcli.storage.base import Fingerprint, KeptRange, Piece, PlacedBytes, Source

_IN_MEMORY_BYTES: Final = 8 << 20


class Segment(NamedTuple):
    """A contiguous range of the source or of the new bytes, at its place in the new object."""

    start: int
    """Offset in the new object."""
    length: int
    offset: int
    """Offset in the source or in the new bytes."""
    kept: bool
    """True for a range of the source, False for new bytes."""

    @property
    def end(self) -> int:
        """Offset of its end in the new object."""
        return self.start + self.length


def outline_segments(outline: Iterable[KeptRange | int]) -> list[Segment]:
    """The segments of a planned object, from its kept ranges and numbers of new bytes."""
    segments: list[Segment] = []
    end = new = 0
    for piece in outline:
        if isinstance(piece, KeptRange):
            segment = Segment(end, piece.length, piece.offset, kept=True)
        else:
            segment = Segment(end, piece, new, kept=False)
            new += piece
        if segment.length:
            segments.append(segment)
        end += segment.length
    return segments


class Content:
    """The content of a new object. One thread may add pieces while others read those already added.

    Attributes:
        source: the file that kept ranges are read from.
        segments: the segments added so far, in order; contiguous ones are merged.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.segments: list[Segment] = []
        self._placed: dict[int, Segment] = {}
        self._new = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115  `close` closes it
        self._new_size = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes added so far, without placed bytes behind a gap."""
        return self.segments[-1].end if self.segments else 0

    def add(self, piece: Piece) -> None:
        """Add a piece.

        Raises:
            CorruptFile: the source doesn't have the range.
            WriteError: placed bytes leave a gap.
        """
        if isinstance(piece, KeptRange):
            if piece.length:
                self.source.check_range(piece.offset, piece.length)
                self._append(Segment(self.size, piece.length, piece.offset, kept=True))
        elif isinstance(piece, PlacedBytes):
            self._placed[piece.offset] = self._store(piece.offset, piece.data)
        else:
            if piece:
                self._append_placed()
                self._append(self._store(self.size, piece))

    def finish(self) -> None:
        """Complete the content after the last piece. Raises WriteError if placed bytes leave a gap."""
        self._append_placed()
        if self._placed:
            raise WriteError(f"nothing was written between byte {self.size} and byte {min(self._placed)}")

    def read(self, start: int, length: int) -> bytes:
        """Read a range of the new object. Raises the errors of `Source.read_at`."""
        parts = []
        for segment in within(self.segments, start, start + length):
            if segment.kept:
                parts.append(self.source.read_at(segment.offset, segment.length))
            else:
                with self._lock:
                    self._new.seek(segment.offset)
                    parts.append(self._new.read(segment.length))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Delete the new bytes."""
        self._new.close()

    def _store(self, start: int, data: bytes | bytearray) -> Segment:
        with self._lock:
            self._new.seek(self._new_size)
            self._new.write(data)
            segment = Segment(start, len(data), self._new_size, kept=False)
            self._new_size += len(data)
        return segment

    def _append_placed(self) -> None:
        while (segment := self._placed.pop(self.size, None)) is not None:
            self._append(segment)

    def _append(self, segment: Segment) -> None:
        if not segment.length:
            return
        if self.segments:
            last = self.segments[-1]
            if last.kept == segment.kept and last.offset + last.length == segment.offset:
                self.segments[-1] = last._replace(length=last.length + segment.length)
                return
        self.segments.append(segment)


def within(segments: Sequence[Segment], start: int, end: int) -> list[Segment]:
    """The segments in a range of the new object, cut to it."""
    parts = []
    for number in range(max(bisect_right(segments, start, key=_start) - 1, 0), len(segments)):
        segment = segments[number]
        if segment.start >= end:
            break
        first, last = max(segment.start, start), min(segment.end, end)
        if first < last:
            skipped = first - segment.start
            parts.append(segment._replace(start=first, length=last - first, offset=segment.offset + skipped))
    return parts


def _start(segment: Segment) -> int:
    return segment.start


class PlannedSource(Source):
    """The content of an object that isn't written yet, as a source for `Verify`."""

    def __init__(self, path: str, content: Content) -> None:
        self.path, self.size = path, content.size
        self.fingerprint = Fingerprint(self.size, 0)  # only the size is known
        self._content = content
        self.read_ahead_bytes = content.source.read_ahead_bytes

    def _current(self) -> Fingerprint | None:
        return self.fingerprint

    def _read(self, offset: int, length: int) -> bytes:
        return self._content.read(offset, length)

    def changed(self, how: str) -> SourceChanged:
        """The error for a source that changed."""
        return self._content.source.changed(how)
