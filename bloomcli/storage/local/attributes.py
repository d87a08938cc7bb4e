"""Access rights, owner and extended attributes of a new file.

A file that replaces another one gets that file's access rights: owner, group, mode and access control list (POSIX
ACL). Until then only its owner can read it. The rights are set in an order that never lets anybody read it who
couldn't read the old one: owner and group, then the list, then the mode. The list that a directory gives to its new
files (its default ACL) is removed, because the mode would put it into force. If the system doesn't let the user
keep a right, the new file has less of it.

A file with a new name obeys the umask, or its directory's default ACL, as copies by cp(1) do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bloomcli.storage.local.source import LocalSource

_ACL: Final = "system.posix_acl_access"
_ACCESS: Final = "system."
"""The prefix of access control lists: of POSIX, NFS 4 and others."""
_USER: Final = "user."

_NO_ATTRIBUTE: Final = (
    errno.EACCES,
    errno.EINVAL,
    errno.ENODATA,
    errno.ENOENT,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
)
"""Errors of a file system without the attribute, and of a user who may not read or set it."""


def mode_of_new_file(source: LocalSource | None) -> int:
    """The mode to create an output with a new name with: that of its source, readable and writable by the owner.

    The system takes away what the umask or the directory's default ACL doesn't allow.
    """
    return 0o666 if source is None else os.fstat(source.fileno()).st_mode & 0o777 | 0o600


def finish_new_file(fd: int, source: LocalSource) -> None:
    """Take from an output the rights that its source's owner doesn't have, and copy the user's extended attributes.

    Raises:
        OSError: a system call failed.
    """
    _copy_extended(fd, source.fileno(), [name for name in _extended(source.fileno()) if name.startswith(_USER)])
    _set_mode(fd, _mode(fd) & os.fstat(source.fileno()).st_mode)


def copy_attributes(fd: int, model: Path) -> str | None:
    """Give a new file, which only its owner can read, the access rights and attributes of the file that it replaces.

    Does nothing if another process has removed that file. Returns a remark on the rights that couldn't be kept.

    Raises:
        OSError: a system call failed for another reason than that the file system doesn't have the attribute, or that
            the user may not read or set it.
    """
    try:
        old = model.stat()
    except FileNotFoundError:
        return None
    lost_owner, lost_group = _give_away(fd, old)
    lost = [f"{name} {id_}" for name, id_ in (("owner", lost_owner), ("group", lost_group)) if id_ is not None]
    no_group = lost_group is not None
    mode = stat.S_IMODE(old.st_mode)
    names = _extended(model)
    has_list = _ACL in names
    _copy_extended(
        fd, model, [name for name in names if name != _ACL and not (no_group and name.startswith(_ACCESS))]
    )
    if _ACL in _extended(fd):
        os.removexattr(fd, _ACL)
    if has_list and (no_group or not _copy_extended(fd, model, [_ACL])):
        lost.append("access control list")
        mode &= ~0o077  # the list may give the group and others less than the mode
    elif no_group:
        shared = mode >> 3 & mode & 0o007  # the old group's members are others now, and the new group's were
        mode = mode & ~0o077 | shared << 3 | shared
    if lost and mode & (stat.S_ISUID | stat.S_ISGID):
        lost.append("setuid and setgid bits")
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    _set_mode(fd, mode)
    if not lost:
        return None
    return f"these access rights of the old file couldn't be kept: {', '.join(lost)}; nobody has gained any"


def _give_away(fd: int, old: os.stat_result) -> tuple[int | None, int | None]:
    """Set owner and group, or the group only, which its members may set. Returns those that couldn't be set."""
    for owner in (old.st_uid, -1):
        new = os.fstat(fd)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            with _if_possible():
                os.fchown(fd, owner, old.st_gid)
    new = os.fstat(fd)  # some file systems ignore the call
    lost_owner = old.st_uid if new.st_uid != old.st_uid else None
    return lost_owner, old.st_gid if new.st_gid != old.st_gid else None


def _mode(fd: int) -> int:
    return stat.S_IMODE(os.fstat(fd).st_mode)


def _set_mode(fd: int, mode: int) -> None:
    if _mode(fd) != mode:  # on NFS, setting the mode would simplify a list
        os.fchmod(fd, mode)


def _extended(file: Path | int) -> list[str]:
    """The names of a file's extended attributes; none if the system has none, or the user may not list them."""
    if hasattr(os, "listxattr"):
        with _if_possible():
            return os.listxattr(file)
    return []


def _copy_extended(fd: int, model: Path | int, names: list[str]) -> bool:
    """Copy extended attributes. Returns whether all of them could be copied."""
    copied = 0
    for name in names:
        with _if_possible():
            os.setxattr(fd, name, os.getxattr(model, name))
            copied += 1
    return copied == len(names)


@contextmanager
def _if_possible() -> Iterator[None]:
    """Ignore the errors in `_NO_ATTRIBUTE`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTE:
            raise
