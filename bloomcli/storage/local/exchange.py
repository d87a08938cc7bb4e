"""Replaces a file only if it is still the one that the new file was made from.

    .NAME.bloom-RANDOM-NEW-OLD.tmp  <- exchanged ->  NAME      renameat2(2), RENAME_EXCHANGE: both names in one step
    the temporary name has OLD?    yes: the old file is removed
                                   no: another process has replaced the file; both are exchanged once more

If a third file has come meanwhile, the second exchange gives that one the temporary name. It is newer than the file
that was put back, and is exchanged in turn, until the file with the temporary name is the one that was
put back last.

NEW and OLD are marks of the two files (see `temporary_names`). A run that is killed between the steps leaves one of
three files under the temporary name. The marks show the next sweep which: the new file, which never had the name; the
old file, which has lost it; or another process's file, which gets its name back.

Linux can exchange names on file systems such as ext4, xfs, btrfs, tmpfs. Elsewhere no call compares and renames in
one step.
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
"""AT_FDCWD: the name is a path."""

_CANNOT: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.EPERM)
"""The system, or the file system, has no such rename. Where no rename is permitted, the next one fails likewise."""

_UNSTABLE: Final = ("overlay",)
"""File systems that copy a file before they rename it, which may give it another inode."""


class CannotExchange(Exception):
    """The system, or the file system, can't exchange files. Nothing was changed."""


class Folder:
    """A directory that is held open, so that its files are found even if it is renamed meanwhile.

    Raises:
        OSError: it can't be opened.
    """

    fd = -1
    """Its descriptor."""

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
        """Whether files keep their inodes when they are exchanged here."""
        return file_system(os.fstat(self.fd).st_dev) not in _UNSTABLE

    def look(self, name: str) -> str | None:
        """The mark of the file that has a name; None where there is none."""
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

        If the file that was named `final` isn't the `expected` one, another process has put it there, and it gets its
        name back. Returns the mark of the file that is named `exchange_name` at the end. The caller may remove it.

        Raises:
            CannotExchange: the system can't exchange files here.
            FileNotFoundError: no file is named `final` any more.
            OSError: the system refused.
        """
        while True:
            placed = self.look(exchange_name)
            self._exchange(exchange_name, final)
            found = self.look(exchange_name)
            if found is None or placed is None:  # a file system that ignored the flag, and renamed
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
    """Rename a file to a name that no file has. False: the system can't do that in one step here.

    Raises:
        FileExistsError: a file has the name.
        OSError: the system refused.
    """
    code = _rename(_AT_FDCWD, one, _AT_FDCWD, other, _NO_REPLACE)
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), str(one), None, str(other))
    return not code


def _rename(from_fd: int, one: Path, to_fd: int, other: Path, flags: int) -> int:
    sys.audit("os.rename", str(one), str(other), from_fd, to_fd)
    names = [os.fsencode(path.name if fd != _AT_FDCWD else path) for fd, path in ((from_fd, one), (to_fd, other))]
    return kernels.rename_with(from_fd, names[0], to_fd, names[1], flags)
