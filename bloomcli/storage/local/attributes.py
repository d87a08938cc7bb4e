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
"""The file system doesn't have the attribute, or the user may not read or set it."""


def copy_attributes(fd: int, source: LocalSource | None, final: Path, *, exists: bool) -> None:
    """Give a new file the mode, owner and attributes of the file that it replaces, else those of its source.

    Without either, the file keeps what it has: `source` is None where it lies in another store.

    Raises:
        OSError: the system refused. What it doesn't have, or doesn't permit, is left out.
    """
    if source is None and not exists:
        return
    model: Path | int = final if exists or source is None else source.fileno()
    try:
        info = os.stat(model)  # noqa: PTH116  a file descriptor has no Path
    except FileNotFoundError:  # another process has removed it
        if source is None:
            return
        model = source.fileno()
        info = os.fstat(model)
    if hasattr(os, "fchown"):
        mine = os.fstat(fd)
        if (mine.st_uid, mine.st_gid) != (info.st_uid, info.st_gid):
            try:
                os.fchown(fd, info.st_uid, info.st_gid)
            except PermissionError:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, -1, info.st_gid)  # the group at least, where we are a member of it
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    if hasattr(os, "listxattr"):
        with _if_possible():
            for name in os.listxattr(model):
                with _if_possible():
                    os.setxattr(fd, name, os.getxattr(model, name))


@contextmanager
def _if_possible() -> Iterator[None]:
    """Skip what the file system doesn't have, or the user may not read or set."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTE:
            raise
