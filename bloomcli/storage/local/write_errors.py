"""Converts the system's errors during a replacement, and checks whether targets can be written."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UsageError, WriteError
from bloomcli.storage.base import output_exists
from bloomcli.storage.local.temporary import TemporaryFile
from bloomcli.storage.os_errors import reason


@contextmanager
def write_errors(target: Path, temporary: TemporaryFile) -> Iterator[TemporaryFile]:
    """Convert an OSError of the block to a WriteError that says whether the new file has its final name.

    SIGTERM and SIGHUP raise SystemExit in the block, so that the temporary file is removed.
    """
    try:
        with terminable(), temporary:
            yield temporary
    except OSError as error:
        placed: bool | None = None
        with contextlib.suppress(OSError):
            placed = temporary.placed
        raise write_error(target, error, placed=placed) from None


def final_path(target: Path) -> tuple[Path, bool]:
    """The file that a target's links lead to, and whether it exists.

    Raises:
        UsageError: it isn't a regular file.
        WriteError: the system can't tell.
    """
    try:
        final = Path(os.path.realpath(target, strict=True))
        mode = final.stat().st_mode
    except FileNotFoundError:  # writing reports it if it can't be made
        return Path(os.path.realpath(target)), False
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WriteError("can't be written: its symbolic link leads in a circle", path=str(target)) from None
        raise write_error(target, error) from None
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
        raise UsageError(
            f"the output is {what}", path=str(target), hint="a finished file is renamed into place: name a file"
        )
    return final, True


def check_output(target: Path, *, overwrite: bool, makes_directories: bool = False) -> None:
    """Raise the first error that writing a file would raise, without writing. Arguments: as for `Store.check_output`.

    Raises:
        UsageError: the target exists and may not be overwritten, or isn't a regular file.
        WriteError: its directory doesn't exist or isn't writable.
    """
    final, exists = final_path(target)
    if exists and not overwrite:
        raise output_exists(str(target))
    folder = final.parent
    if makes_directories:
        folder = next((above for above in (folder, *folder.parents) if os.path.lexists(above)), folder)
    try:
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise write_error(target, error) from None


def write_error(target: Path, error: OSError, *, placed: bool | None = False) -> WriteError:
    """The error for a replacement that failed because of a system error.

    Args:
        target: the file to write.
        error: the system's error.
        placed: whether the new file has its final name; None if the system can't tell.
    """
    why = reason(error)
    if placed is None:
        return WriteError(
            f"its state can't be determined: {why}",
            path=str(target),
            hint="it is whole, either the original or the new file: check it when the file system responds again",
        )
    if placed:
        return WriteError(
            f"the new file is in place, but the system then reported an error: {why}",
            path=str(target),
            hint="the file was synced and compared before it got its name; `bloom validate` checks it again",
        )
    hints = {
        errno.ENOSPC: "the disk is full; free some room, or write elsewhere with -o",
        errno.EDQUOT: "the quota is used up; free some room, or write elsewhere with -o",
        errno.ENOENT: "create the output's directory first",
        errno.EACCES: "check who may write to the directory",
        errno.EROFS: "the file system is read-only; write elsewhere with -o",
    }
    return WriteError(
        f"can't be written: {why}",
        path=str(target),
        hint=hints.get(error.errno or 0, "the original is whole and nothing was left behind"),
    )
