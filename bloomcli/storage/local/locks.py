"""Locks of files, and whether a file is open for writing.

Locks are those of flock(2): they belong to an open file, end with the process that has it open, and don't hinder
programs that take none. Some network file systems have none, others lock only files that are open for writing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

from bloomcli.errors import WriteError
from bloomcli.storage.local.copying import file_system

_fcntl: Final[Any] = import_module("fcntl") if os.name == "posix" else None
_OPEN: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)

_NO_LOCKS: Final = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The file system has no locks, or, where it is EBADF, none for a file that is open for reading."""

WAIT_SECONDS: Final = 30.0
"""How long to wait for a lock. Another run holds it while it computes checksums and renames a file."""

_FIRST_PAUSE_SECONDS: Final = 0.001
_LONGEST_PAUSE_SECONDS: Final = 0.05

_LEASES_ON: Final = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs")
"""Local file systems, on which a read lease is refused for one reason only: the file is open for writing."""


def can_lock() -> bool:
    """Whether the operating system has locks."""
    return _fcntl is not None


def lock(fd: int) -> bool:
    """Take a file's lock. False: the file system has no locks, so that other writers can't be detected.

    Raises:
        BlockingIOError: another process has it.
        OSError: the system refused.
    """
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


class FileLock:
    """Holds the lock of the file that has a name, where there is one and its file system has locks.

    If another file gets the name during the wait, the lock of that file is taken next: only the holder of the lock of
    the file with this name may replace it.

    Args:
        path: the name.
        overtake: called when another process has had the lock for `WAIT_SECONDS`, and may hang: whether to go on
            without the lock.
    """

    bypassed = False
    """Another process has the lock."""

    _fd = -1

    def __init__(self, path: Path, bypass: Callable[[], bool] = lambda: False) -> None:
        self._path = path
        self._bypass = bypass

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            WriteError: another process had it for `WAIT_SECONDS`.
            OSError: the system refused.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        try:
            for access in (
                os.O_RDONLY,
                os.O_RDWR,
            ):  # some network file systems lock only files that are open for writing
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
        self._close()  # a stop (Ctrl-C) may come before __exit__ is called

    def _open(self, access: int) -> bool:
        self._close()
        try:
            self._fd = os.open(self._path, access | _OPEN)
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # nothing to lock, or not permitted
            return False
        return True

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing was written through it
                os.close(fd)


def lock_timeout_error(path: Path) -> WriteError:
    """The error of a file that another process has locked."""
    return WriteError(
        f"can't be replaced: another process has held its lock for {WAIT_SECONDS:g} seconds",
        path=str(path),
        hint="another bloom is replacing it, or a program has locked it; try again when that is done",
    )


def _wait(fd: int, deadline: float) -> bool:
    """Wait until a lock is taken; False where the file system has none. Raises TimeoutError."""
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
        return True  # there is none to lock any more; a later step finds that the source is gone


def open_for_writing(fd: int) -> bool:
    """Whether a process has a file open for writing; False if the system can't tell. `fd` is open for reading only.

    This takes a read lease (fcntl(2), F_SETLEASE), which Linux refuses in that case, and gives it back.
    """
    if not hasattr(_fcntl, "F_SETLEASE") or file_system(os.fstat(fd).st_dev) not in _LEASES_ON:
        return False
    try:
        # the signal to this process when another one opens the file meanwhile; SIGIO, the default, would end it
        _fcntl.fcntl(fd, _fcntl.F_SETSIG, signal.SIGURG)
        _fcntl.fcntl(fd, _fcntl.F_SETLEASE, _fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        with contextlib.suppress(OSError):
            _fcntl.fcntl(fd, _fcntl.F_SETLEASE, _fcntl.F_UNLCK)
    return False
