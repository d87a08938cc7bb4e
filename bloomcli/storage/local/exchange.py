"""A file takes the place of another one only if that is still the one that it was made from.

    .NAME.bloom-RANDOM-NEW-OLD.tmp  <- exchanged ->  NAME      renameat2(2), RENAME_EXCHANGE: both names in one step
    what came out is OLD?  yes: it is removed
                           no: it is somebody else's, who was faster; it is put back the same way, and NEW comes out

What comes out while that is put back may be somebody else's again: then it is newer than what was put back, and takes
its place, until what comes out is what was put there last.

NEW and OLD are marks of both files (see `mark`). Whoever is killed between the steps leaves one of three files under
that name, and the next to sweep tells by the marks which: the new one, which never got its place; the old one, which
has lost its place; or somebody else's, which gets its place back.

Linux has that, on file systems such as ext4, xfs, btrfs, tmpfs; elsewhere nothing can look and rename in one step.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.storage.local.copying import file_system
from bloomcli.storage.source import Fingerprint

_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
"""Flags of renameat2(2)."""

_HERE: Final = -100
"""AT_FDCWD: the name is a path."""

_CANNOT: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.EPERM)
"""The system, or the file system, has no such rename. A rename that isn't permitted at all says so again."""

_UNSTABLE: Final = ("overlay",)
"""File systems that copy a file before they rename it, which may give it another inode."""

_NAME_CHARACTERS: Final = 48
_MARK_CHARACTERS: Final = 12
_NAME: Final = re.compile(
    r"\.(?P<start>.{1,120})\.bloom-[0-9a-f]{12}(?:-(?P<new>[0-9a-f]{12})-(?P<old>[0-9a-f]{12}))?\.tmp", re.DOTALL
)
"""The names that `beside` gives."""


class Marks(NamedTuple):
    """What a temporary name says of the files that are exchanged."""

    new: str
    old: str


def mark(info: os.stat_result | Fingerprint) -> str:
    """A file, as it is now, in few characters: its inode, size and modification time.

    Renames don't change it, nor does a restart of the machine.
    """
    if isinstance(info, os.stat_result):
        info = Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino)
    text = f"{info.inode} {info.size} {info.mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_CHARACTERS]


def beside(final: Path, marks: Marks | None = None) -> Path:
    """A hidden name that nobody else has; a long one is cut, as names end at 255 bytes."""
    told = "" if marks is None else f"-{marks.new}-{marks.old}"
    return final.with_name(f".{final.name[:_NAME_CHARACTERS]}.bloom-{secrets.token_hex(6)}{told}.tmp")


def is_temporary(name: str) -> bool:
    """Whether a name is one that `beside` gives."""
    return _NAME.fullmatch(name) is not None


def may_be_beside(name: str, final: str) -> bool:
    """Whether a temporary name may have been given for a file. Long names were cut: it may be so for several."""
    match = _NAME.fullmatch(name)
    return match is not None and final[:_NAME_CHARACTERS] == match["start"]


def marks_in(name: str) -> Marks | None:
    """The marks in a temporary name; None where it is for no exchange."""
    match = _NAME.fullmatch(name)
    return None if match is None or match["new"] is None else Marks(match["new"], match["old"])


class CannotExchange(Exception):
    """The system, or the file system, can't do it. Nothing was changed."""


class Folder:
    """A directory that is held open, so that its files can be found if somebody renames it meanwhile.

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
        """Let go of it."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing is written by it
                os.close(fd)

    @property
    def may_exchange(self) -> bool:
        """Whether an exchange here leaves files what they are."""
        return file_system(os.fstat(self.fd).st_dev) not in _UNSTABLE

    def look(self, name: str) -> str | None:
        """The mark of what has a name; None where nothing has."""
        try:
            return mark(os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file. Raises OSError, but not where it isn't there."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return

    def swap(self, held: str, final: str, expected: str) -> str:
        """Give a file a name that is taken. What comes out stays under the name `held`; gives its mark.

        Comes out what isn't `expected`, it is put back: it came there later. What stays then may be removed.

        Raises:
            CannotExchange: it can't be done here.
            FileNotFoundError: nothing has the name any more.
            OSError: the system refused.
        """
        while True:
            placed = self.look(held)
            self._exchange(held, final)
            found = self.look(held)
            if found is None or placed is None:  # a file system that took no notice of the flag, and renamed
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


def rename_new(one: Path, other: Path) -> bool:
    """Give a file a name that nothing has, in one step. False: that can't be done here.

    Raises:
        FileExistsError: something has the name.
        OSError: the system refused.
    """
    code = _rename(_HERE, one, _HERE, other, _NO_REPLACE)
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), str(one), None, str(other))
    return not code


def _rename(from_fd: int, one: Path, to_fd: int, other: Path, flags: int) -> int:
    sys.audit("os.rename", str(one), str(other), from_fd, to_fd)
    names = [os.fsencode(path.name if fd != _HERE else path) for fd, path in ((from_fd, one), (to_fd, other))]
    return kernels.rename_with(from_fd, names[0], to_fd, names[1], flags)
