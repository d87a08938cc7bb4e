"""Reads a local file with pread(2).

Threads can read at the same time, as they share no seek position. Neither pyarrow nor fsspec is imported.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from bloomcli.errors import UnreadableError
from bloomcli.storage.base import Fingerprint, Source
from bloomcli.storage.os_errors import cannot_read


class LocalSource(Source):
    """A local regular file.

    Attributes:
        local_path: its path, without a scheme.
    """

    def __init__(self, path: str, local_path: Path) -> None:
        self.path = path
        self.local_path = local_path
        try:
            # O_NONBLOCK: opening a FIFO must not wait for a writer; regular files ignore it
            self._fd = os.open(local_path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise cannot_read(path, error) from None
        except ValueError as error:  # a null byte
            raise UnreadableError(f"can't be read: {error}", path=path, hint="check the path") from None
        try:
            info = os.fstat(self._fd)
        except OSError as error:
            self.close()
            raise cannot_read(path, error) from None
        if not stat.S_ISREG(info.st_mode):
            os.close(self._fd)
            what = "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise UnreadableError(f"it is {what}", path=path, hint="name a regular file")
        self.size = info.st_size
        self.fingerprint = fingerprint_of(info)

    def fileno(self) -> int:
        """The file descriptor, for copying."""
        return self._fd

    def _current(self) -> Fingerprint | None:
        try:
            if fingerprint_of(os.fstat(self._fd)) != self.fingerprint:
                return None
            return fingerprint_of(self.local_path.stat())  # another file may have been renamed over it
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise cannot_read(self.path, error) from None

    def _read(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._fd, length, offset)
            while len(data) < length:  # one call reads at most 2 GiB, and may be interrupted
                more = os.pread(self._fd, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise cannot_read(self.path, error) from None
        return data

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # the file was only read: no byte is lost
                os.close(fd)


def fingerprint_of(info: os.stat_result) -> Fingerprint:
    """The fingerprint of a file, from its status."""
    return Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino, device=info.st_dev)
