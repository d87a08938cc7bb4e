"""Replaces a file only if it is still the file that the new one was made from.

    .NAME.bloom-RANDOM-NEW-OLD.tmp  <- exchanged ->  NAME      renameat2(2), RENAME_EXCHANGE: both names in one step
    the temporary name has OLD?    yes: the old file is removed
                                   no: another process has replaced the file; both are exchanged again

If a third file got the name in between, the second exchange gives that file the temporary name. It is newer than the
file that just got the name back, so they are exchanged again, until the file with the temporary name is the one that
the previous exchange gave the name.

NEW and OLD are marks of the two files (see `temporary_names`). A run that is killed between the steps leaves one of
three files under the temporary name. The marks show the next sweep which one: the new file, which never had the name;
the old file, which lost it; or another process's file, which gets its name back.

Linux exchanges names on file systems such as ext4, xfs, btrfs and tmpfs. Other systems have no call that compares and
renames in one step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import Final

from bloomcli import kernels
from bloomcli.storage.local.copying import file_system
from bloomcli.storage.local.temporary_names import mark

_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
"""Flags of renameat2(2)."""

_AT_FDCWD: Final = -100
"""Instead of a directory's descriptor: the name is a path."""

_CANNOT: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.EPERM)
"""Errors of a system or file system without these flags. If no rename is permitted, the plain one fails too."""

_UNSTABLE: Final = ("overlay",)
"""File systems that may copy a file before they rename it, which changes its inode."""


class CannotExchange(Exception):
    """The system or the file system can't exchange files. Nothing was changed."""


class Folder:
    """An open directory: its files are found even if it is renamed.

    Raises:
        OSError: it can't be opened.
    """

    fd = -1
    """The directory's descriptor; -1 if it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing is written through it
                os.close(fd)

    @property
    def may_exchange(self) -> bool:
        """Whether files in this directory keep their inodes when they are exchanged."""
        return file_system(os.fstat(self.fd).st_dev) not in _UNSTABLE

    def look(self, name: str) -> str | None:
        """The mark of the file that has a name; None if no file has it."""
        try:
            return mark(os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file, if it exists. Raises OSError."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return

    def swap(self, exchange_name: str, final: str, expected: str) -> str:
        """Exchange the files named `exchange_name` and `final`.

        If the file named `final` doesn't have the mark `expected`, it is another process's, and gets its name back.
        Returns the mark of the file that is named `exchange_name` at the end. The caller may remove that file.

        Raises:
            CannotExchange: the system can't exchange files in this directory.
            FileNotFoundError: no file is named `final`.
            OSError: another system call failed.
        """
        while True:
            placed = self.look(exchange_name)
            self._exchange(exchange_name, final)
            found = self.look(exchange_name)
            if found is None or placed is None:  # the file system ignored the flag, and renamed
                return expected
            if found == expected:
                return found
            expected = placed

    def _exchange(self, one: str, other: str) -> None:
        code = _rename(self.fd, self.path / one, self.fd, self.path / other, _EXCHANGE)
        if code in _CANNOT:
            raise CannotExchange
        if code:
            raise OSError(code, os.strerror(code), str(self.path / one), None, str(self.path / other))


def rename_no_replace(one: Path, other: Path) -> bool:
    """Rename a file to a name that no file has. Returns False if the system can't do that in one step.

    Raises:
        FileExistsError: a file has the name.
        OSError: another system call failed.
    """
    code = _rename(_AT_FDCWD, one, _AT_FDCWD, other, _NO_REPLACE)
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), str(one), None, str(other))
    return not code


def _rename(from_fd: int, one: Path, to_fd: int, other: Path, flags: int) -> int:
    sys.audit("os.rename", str(one), str(other), from_fd, to_fd)
    names = [os.fsencode(path.name if fd != _AT_FDCWD else path) for fd, path in ((from_fd, one), (to_fd, other))]
    return kernels.rename_with(from_fd, names[0], to_fd, names[1], flags)
