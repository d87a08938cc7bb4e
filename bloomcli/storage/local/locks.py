"""Locks files, and finds out whether a file is open for writing.

The locks are those of flock(2): they belong to an open file, end with the process that has it open, and don't affect
programs that don't lock. Some network file systems have no locks, others lock only files that are open for writing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from bloomcli.errors import WriteError
from bloomcli.storage.local.copying import file_system

_NO_LOCKS: Final = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system without locks. EBADF: it has none for a file that is open for reading only."""

WAIT_SECONDS: Final = 30.0
"""Maximum wait for a lock. Another run holds it while it computes checksums and renames a file."""

_FIRST_PAUSE_SECONDS: Final = 0.001
_LONGEST_PAUSE_SECONDS: Final = 0.05

_LEASES_ON: Final = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs")
"""Local file systems that refuse a read lease for one reason only: the file is open for writing."""


def lock(fd: int) -> bool:
    """Take a file's lock. Returns False if the file system has no locks: other writers can't be detected then.

    Raises:
        BlockingIOError: another process holds it.
        OSError: another system call failed.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


class FileLock:
    """Holds the lock of the file that has a name, if the file exists and its file system has locks.

    If another file gets the name during the wait, that file's lock is taken next: only the holder of the lock of the
    file with this name may replace it.

    Args:
        path: the name.
        bypass: called when another process has held the lock for `WAIT_SECONDS`, and may hang. Returns whether to
            continue without the lock.
    """

    bypassed = False
    """Whether another process holds the lock, and the block runs without it."""

    _fd = -1

    def __init__(self, path: Path, bypass: Callable[[], bool] = lambda: False) -> None:
        self._path = path
        self._bypass = bypass

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            WriteError: another process held it for `WAIT_SECONDS`.
            OSError: another system call failed.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        try:
            # some network file systems lock only files that are open for writing
            for access in (os.O_RDONLY, os.O_RDWR):
                while self._open(access) and _wait(self._fd, deadline):
                    if _has_name(self._fd, self._path) or time.monotonic() > deadline:
                        return self
                if self._fd < 0:
                    break
        except TimeoutError:
            if not self._bypass():
                raise lock_timeout_error(self._path) from None
            self.bypassed = True
        self._close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __del__(self) -> None:
        self._close()  # Ctrl-C may come before __exit__ is called

    def _open(self, access: int) -> bool:
        self._close()
        try:
            self._fd = os.open(self._path, access | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # no file to lock, or not permitted
            return False
        return True

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing was written through it
                os.close(fd)


def lock_timeout_error(path: Path) -> WriteError:
    """The error for a file that another process has locked."""
    return WriteError(
        f"can't be replaced: another process has held its lock for {WAIT_SECONDS:g} seconds",
        path=str(path),
        hint="another bloom is replacing it, or a program has locked it; try again when that is done",
    )


def _wait(fd: int, deadline: float) -> bool:
    """Wait for a lock, and take it. Returns False if the file system has no locks. Raises TimeoutError."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return lock(fd)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _has_name(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return True  # no file to lock; a later step reports that the source is missing


def open_for_writing(fd: int) -> bool:
    """Whether a process has a file open for writing; False if the system can't tell.

    Takes a read lease (fcntl(2), F_SETLEASE), which Linux refuses in that case, and releases it.

    Args:
        fd: a descriptor that is open for reading only.
    """
    if not hasattr(fcntl, "F_SETLEASE") or file_system(os.fstat(fd).st_dev) not in _LEASES_ON:
        return False
    try:
        # sent to this process if another one opens the file during the lease; the default, SIGIO, would end it
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
