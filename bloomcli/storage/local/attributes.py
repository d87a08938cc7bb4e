"""Mode, owner and extended attributes of a file that replaces another one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bloomcli.storage.local.source import LocalSource

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


def copy_attributes(fd: int, source: LocalSource | None, final: Path, *, exists: bool) -> None:
    """Copy mode, owner and extended attributes to a new file from the file that it replaces, else from its source.

    Does nothing if neither exists: `source` is None if it is in another store. Skips attributes that the file system
    doesn't have, or that the user may not read or set.

    Raises:
        OSError: another system call failed.
    """
    if source is None and not exists:
        return
    model: Path | int = final if exists or source is None else source.fileno()
    try:
        info = os.stat(model)  # noqa: PTH116  a file descriptor has no Path
    except FileNotFoundError:  # another process removed it
        if source is None:
            return
        model = source.fileno()
        info = os.fstat(model)
    if hasattr(os, "fchown"):
        current = os.fstat(fd)
        if (current.st_uid, current.st_gid) != (info.st_uid, info.st_gid):
            try:
                os.fchown(fd, info.st_uid, info.st_gid)
            except PermissionError:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, -1, info.st_gid)  # the group only, which its members may set
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    if hasattr(os, "listxattr"):
        with _if_possible():
            for name in os.listxattr(model):
                with _if_possible():
                    os.setxattr(fd, name, os.getxattr(model, name))


@contextmanager
def _if_possible() -> Iterator[None]:
    """Ignore the errors in `_NO_ATTRIBUTE`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTE:
            raise
