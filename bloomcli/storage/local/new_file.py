"""The content of a new file: ranges copied from its source, and new bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from bloomcli.concurrency.threads import Future, Threads
from bloomcli.storage.base import Source
from bloomcli.storage.local.copying import Copier

_FLUSH_BYTES: Final = 32 << 20
"""Bytes that are synced at a time while the file is written."""


class NewFile:
    """A temporary file while it is being written.

    Attributes:
        path: its path.
        position: number of bytes appended.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self.position = 0
        self._placed_end = 0
        """The end of the bytes that `write_at` wrote."""
        self._flusher: Threads | None = None
        self._flush: Future[None] | None = None
        self._flushed = 0
        """Number of bytes that are on the disk, or being synced."""
        self._copier = Copier(path, fd)
        self.prefix = 0
        """Number of bytes at the start that are the same as the source's."""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return max(self.position, self._placed_end)

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """Write bytes at an offset that copying hasn't reached. Ranges are copied up to there; `write` appends after
        these bytes."""
        view = memoryview(data).cast("B")
        while view:
            count = os.pwrite(self._fd, view, offset)
            offset += count
            view = view[count:]
        self._placed_end = max(self._placed_end, offset)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        if self._placed_end > self.position:
            self.position = os.lseek(self._fd, self._placed_end, os.SEEK_SET)
        view = memoryview(data).cast("B")
        while view:
            count = os.write(self._fd, view)
            self.position += count
            view = view[count:]

    def copy_range(
        self,
        source: Source,
        offset: int,
        length: int,
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Append a range of the source in the cheapest way that the file systems support (see `copying`).

        Stops early, without an error, once `cancelled()` is true: the caller raises the error.
        """
        steps = self._copier.steps(source, offset, length, self.position)
        while not (cancelled is not None and cancelled()) and (step := next(steps, None)) is not None:
            count, on_disk = step
            if offset == self.position == self.prefix:
                self.prefix += count
            offset += count
            self.position += count
            if on_disk:
                self._flushed += count
            self._flush_behind()
            if progress is not None:
                progress(count)

    def _flush_behind(self) -> None:
        """Sync written bytes in another thread, so that little is left for `flush`."""
        if self.position - self._flushed < _FLUSH_BYTES or not hasattr(os, "fdatasync"):
            return
        if self._flush is not None:
            if not self._flush.done():
                return
            self._flush.result()
        if self._flusher is None:
            self._flusher = Threads(1, "bloom-flush")
        self._flushed = self.position
        self._flush = self._flusher.submit(partial(os.fdatasync, self._fd))
        if self._flusher.refused:
            self._flusher.result(self._flush)  # no thread was started: this one syncs

    def flush(self) -> None:
        """Sync all bytes. Raises OSError."""
        if self._flush is not None:
            self._flush.result()  # the system reports an error only once
        os.fsync(self._fd)

    def close(self) -> None:
        """End the thread that syncs, and close the descriptor for direct writes. The file's own stays open."""
        if self._flusher is not None:
            self._flusher.close()
        self._copier.close()
