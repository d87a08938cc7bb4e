"""The content of a new file: ranges of another file, and new bytes.

    in the kernel   copy_file_range: a reflink or a copy by the file server if possible, else from cache to cache
    read and write  the fallback, and the only way from another store, to which the next reads are announced

A new file is synced before it gets its name. Most of its bytes are synced in another thread while it is written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from bloomcli.concurrency.threads import Future, Threads
from bloomcli.storage.base import STEP_BYTES, Source
from bloomcli.storage.local.source import LocalSource

READ_BYTES: Final = 4 << 20
"""Bytes per read where ranges are read and written."""

_AHEAD: Final = 4
"""Number of reads from another store that are announced at a time."""

_NO_COPY_RANGE: Final = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF)
_MOUNTS: Final = Path("/proc/self/mountinfo")


@lru_cache(maxsize=64)
def file_system(device: int) -> str:
    """The type of the file system with a device number, such as ``ext4``; "" if it is unknown.

    Layout (proc_pid_mountinfo(5)): id, parent, major:minor, root, mount point, options, tags until "-", type, ...
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for fields in (line.split(" ") for line in mounts):
        if len(fields) > 3 and fields[2] == number and "-" in fields[3:-1]:
            return fields[fields.index("-", 3) + 1]
    return ""


_FLUSH_BYTES: Final = 32 << 20
"""Bytes that are synced at a time while the file is written."""


class NewFile:
    """A temporary file while it is being written.

    Attributes:
        position: number of bytes appended.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.position = 0
        self._placed_end = 0
        """The end of the bytes that `write_at` wrote."""
        self._flusher: Threads | None = None
        self._flush: Future[None] | None = None
        self._flushed = 0
        """Number of bytes that are on the disk, or being synced."""
        self._in_kernel = hasattr(os, "copy_file_range")
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
        """Append a range of the source.

        Stops early, without an error, once `cancelled()` is true: the caller raises the error.
        """
        steps = (self._copied if isinstance(source, LocalSource) else self._copied_from_store)(source, offset, length)
        while not (cancelled is not None and cancelled()) and (count := next(steps, None)) is not None:
            if offset == self.position == self.prefix:
                self.prefix += count
            offset += count
            self.position += count
            self._flush_behind()
            if progress is not None:
                progress(count)

    def _copied(self, source: Source, offset: int, length: int) -> Iterator[int]:
        """Append a range of a local file. Yields the number of bytes of each step."""
        end = offset + length
        while offset < end:
            count = self._copy_step(source, offset, min(end - offset, STEP_BYTES))
            offset += count
            yield count

    def _copy_step(self, source: Source, offset: int, size: int) -> int:
        descriptor = source.fileno()
        if self._in_kernel and descriptor is not None:
            try:
                count = os.copy_file_range(descriptor, self._fd, size, offset_src=offset)
            except OSError as error:
                if error.errno not in _NO_COPY_RANGE:
                    raise
                count = 0
            if count:
                return count
            self._in_kernel = False  # procfs and some FUSE file systems copy nothing, without an error
        return os.write(self._fd, source.read_at(offset, min(size, READ_BYTES)))

    def _copied_from_store(self, source: Source, offset: int, length: int) -> Iterator[int]:
        """Append a range of another store's file. Yields the number of bytes of each step."""
        end = offset + length
        announced = offset
        while offset < end:
            if offset == announced:
                announced = min(end, offset + _AHEAD * READ_BYTES)
                starts = range(offset, announced, READ_BYTES)
                source.will_read([(start, min(READ_BYTES, announced - start)) for start in starts])
            data = memoryview(source.read_at(offset, min(READ_BYTES, announced - offset)))
            offset += len(data)
            count = len(data)
            while data:
                data = data[os.write(self._fd, data) :]
            yield count

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
        """End the thread that syncs. The file's descriptor stays open."""
        if self._flusher is not None:
            self._flusher.close()
