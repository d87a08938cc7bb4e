"""Appends ranges of one file to another in the cheapest way that the file systems support.

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
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

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


class Copier:
    """Appends ranges to one new file."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd
        self._direct_fd: int | None = None
        self._may_direct = hasattr(os, "O_DIRECT")
        self._in_kernel = hasattr(os, "copy_file_range")

    def steps(self, source: Source, offset: int, length: int, position: int) -> Iterator[tuple[int, bool]]:
        """Append a range at `position`, which is the end of the file and the offset of its descriptor.

        Yields for each step the number of bytes copied, and whether they are on the disk, not only in the cache.
        """
        end = offset + length
        if not isinstance(source, LocalSource):
            yield from self._copy_from_store(source, offset, end)
            return
        direct = length >= DIRECT_LEAST and offset % BLOCK == position % BLOCK and self._can_direct()
        while offset < end:
            size = min(end - offset, STEP_BYTES)
            count, on_disk = 0, False
            if direct and self._may_direct and size >= BLOCK:
                if position % BLOCK:
                    size = BLOCK - position % BLOCK
                else:
                    count = self._write_direct(source, offset, size - size % BLOCK, position)
                    on_disk = count > 0
            if not count:
                count = self._copy_in_cache(source, offset, size)
            offset += count
            position += count
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
                data = data[os.write(self._fd, data) :]
            yield count, False

    def _can_direct(self) -> bool:
        if self._may_direct and self._direct_fd is None:
            try:
                if file_system(os.fstat(self._fd).st_dev) in _DIRECT_ON:
                    self._direct_fd = os.open(self._path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
            except OSError:
                pass
            self._may_direct = self._direct_fd is not None
        return self._may_direct

    def _write_direct(self, source: LocalSource, offset: int, size: int, position: int) -> int:
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
                count = os.pwrite(self._direct_fd, range_, position)  # only the kernel looks at the mapped bytes
        except ValueError:  # the source was truncated
            count = 0
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            count = 0
        self._may_direct = count > 0
        os.lseek(self._fd, position + count, os.SEEK_SET)
        return count

    def _copy_in_cache(self, source: LocalSource, offset: int, size: int) -> int:
        if self._in_kernel:
            try:
                count = os.copy_file_range(source.fileno(), self._fd, size, offset_src=offset)
            except OSError as error:
                if error.errno not in _NO_COPY_RANGE:
                    raise
                count = 0
            if count:
                return count
            self._in_kernel = False  # procfs and some FUSE file systems copy nothing, without an error
        return os.write(self._fd, source.read_at(offset, min(size, READ_BYTES)))

    def close(self) -> None:
        """Close the descriptor for direct writes."""
        if self._direct_fd is not None:
            os.close(self._direct_fd)
            self._direct_fd = None


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
