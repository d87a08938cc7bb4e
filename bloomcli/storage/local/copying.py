"""The content of a new file: ranges, each copied in the cheapest way that the file systems support, and new bytes.

    direct          the disk reads the bytes from the source's page cache; the processor copies none
    in the kernel   copy_file_range: a reflink or a copy by the file server if possible, else from cache to cache
    read and write  the fallback, and the only way from another store, to which the next reads are announced

A new file is synced before it gets its name, so its bytes have to reach the disk in any case. A copy through the page
cache takes 0.4 s of processor time per GB (more if memory has to be freed first), which decoding columns could use,
and evicts other files from the cache. Direct writes take a fifth of that. They are used for large ranges only, so
that a small file is in the cache for its next reader, and only on file systems that are known to do them well and
have no reflinks. On a network file system, the server copies without sending the data.
"""

from __future__ import annotations

import errno
import mmap
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

DIRECT_LEAST: Final = 32 << 20
"""Minimum size in bytes of a range that is written directly."""

BLOCK: Final = 4096
"""Direct writes begin and end at multiples of this number of bytes, which suffices for every disk."""

_DIRECT_ON: Final = ("ext4",)
_NO_DIRECT: Final = (errno.EINVAL, errno.EFAULT, errno.ENOMEM, errno.EOPNOTSUPP)
"""After these errors, the range is copied in another way, which reports the cause: EFAULT means that the source can't
be read, or was truncated."""

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
        path: its path.
        fd: its descriptor.
        position: number of bytes appended.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.position = 0
        self._placed_end = 0
        """The end of the bytes that `write_at` wrote."""
        self._flusher: Threads | None = None
        self._flush: Future[None] | None = None
        self._flushed = 0
        """Number of bytes that are on the disk, or being synced."""
        self._direct_fd: int | None = None
        self._may_direct = hasattr(os, "O_DIRECT")
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
            count = os.pwrite(self.fd, view, offset)
            offset += count
            view = view[count:]
        self._placed_end = max(self._placed_end, offset)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        if self._placed_end > self.position:
            self.position = os.lseek(self.fd, self._placed_end, os.SEEK_SET)
        view = memoryview(data).cast("B")
        while view:
            count = os.write(self.fd, view)
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
        steps = self._steps(source, offset, length)
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

    def _steps(self, source: Source, offset: int, length: int) -> Iterator[tuple[int, bool]]:
        """Append a range at the descriptor's offset, which is `position`. The caller counts each step there.

        Yields for each step the number of bytes copied, and whether they are on the disk, not only in the cache.
        """
        end = offset + length
        if not isinstance(source, LocalSource):
            yield from self._copy_from_store(source, offset, end)
            return
        direct = length >= DIRECT_LEAST and offset % BLOCK == self.position % BLOCK and self._can_direct()
        while offset < end:
            size = min(end - offset, STEP_BYTES)
            count, on_disk = 0, False
            if direct and self._may_direct and size >= BLOCK:
                if self.position % BLOCK:
                    size = BLOCK - self.position % BLOCK
                else:
                    count = self._write_direct(source, offset, size - size % BLOCK)
                    on_disk = count > 0
            if not count:
                count = self._copy_in_cache(source, offset, size)
            offset += count
            yield count, on_disk

    def _copy_from_store(self, source: Source, offset: int, end: int) -> Iterator[tuple[int, bool]]:
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
                data = data[os.write(self.fd, data) :]
            yield count, False

    def _can_direct(self) -> bool:
        if self._may_direct and self._direct_fd is None:
            try:
                if file_system(os.fstat(self.fd).st_dev) in _DIRECT_ON:
                    self._direct_fd = os.open(self.path, os.O_WRONLY | os.O_DIRECT)
            except OSError:
                pass
            self._may_direct = self._direct_fd is not None
        return self._may_direct

    def _write_direct(self, source: LocalSource, offset: int, size: int) -> int:
        """Write directly. Returns the number of bytes written; 0 if direct writes aren't possible."""
        assert self._direct_fd is not None  # noqa: S101  _can_direct opened it
        base = offset - offset % mmap.ALLOCATIONGRANULARITY
        try:
            # the system reads the next step's bytes from the disk during this write
            os.posix_fadvise(source.fileno(), offset, size + STEP_BYTES, os.POSIX_FADV_WILLNEED)
            with (
                mmap.mmap(source.fileno(), offset + size - base, prot=mmap.PROT_READ, offset=base) as mapped,
                memoryview(mapped) as whole,
                whole[offset - base :] as range_,
            ):
                count = os.pwrite(self._direct_fd, range_, self.position)  # only the kernel looks at the mapped bytes
        except ValueError:  # the source was truncated
            count = 0
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            count = 0
        self._may_direct = count > 0
        os.lseek(self.fd, self.position + count, os.SEEK_SET)
        return count

    def _copy_in_cache(self, source: LocalSource, offset: int, size: int) -> int:
        if self._in_kernel:
            try:
                count = os.copy_file_range(source.fileno(), self.fd, size, offset_src=offset)
            except OSError as error:
                if error.errno not in _NO_COPY_RANGE:
                    raise
                count = 0
            if count:
                return count
            self._in_kernel = False  # procfs and some FUSE file systems copy nothing, without an error
        return os.write(self.fd, source.read_at(offset, min(size, READ_BYTES)))

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
        self._flush = self._flusher.submit(partial(os.fdatasync, self.fd))
        if self._flusher.refused:
            self._flusher.result(self._flush)  # no thread was started: this one syncs

    def flush(self) -> None:
        """Sync all bytes. Raises OSError."""
        if self._flush is not None:
            self._flush.result()  # the system reports an error only once
        os.fsync(self.fd)

    def close(self) -> None:
        """End the thread that syncs, and close the descriptor for direct writes. The file's own stays open."""
        if self._flusher is not None:
            self._flusher.close()
        if self._direct_fd is not None:
            os.close(self._direct_fd)
            self._direct_fd = None
