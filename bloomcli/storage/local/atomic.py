"""The only place that replaces a file.

    old checksums right? -> temp beside the target -> written -> mode, owner, attributes -> fsync -> verified
    -> the lock of the file that has the name -> source unchanged?
    -> new checksums written beside, old ones put aside -> exchanged for the source, if that is unchanged (see
    `exchange`), or renamed -> old file removed -> directory fsync -> new checksums in their place

Whatever fails, at whatever instant, the target is either what it was or what it was to become. A file left
without its checksums for an instant is readable; one with stale ones is not, hence the order. Whoever is killed
leaves both beside, and the next to sweep puts those back that fit (see `temporary`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bloomcli.concurrency.signals import terminable
from bloomcli.concurrency.threads import Threads
from bloomcli.errors import UsageError, WriteError
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.copying import Copier
from bloomcli.storage.local.locks import Holding
from bloomcli.storage.local.new_checksums import has_checksums, renewed_beside
from bloomcli.storage.local.temporary import Temporary, appear, sweep
from bloomcli.storage.source import LocalSource

_FLUSH_BYTES: Final = 32 << 20

_NO_DIRECTORY_SYNC: Final = (
    errno.EACCES,
    errno.EBADF,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
)
"""Not every system opens directories, and not every file system syncs them."""

_NO_ATTRIBUTE: Final = (
    errno.EACCES,
    errno.EINVAL,
    errno.ENODATA,
    errno.ENOENT,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
)


class AtomicWriter:
    """The temporary file while it is being written."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self.position = 0
        self._reached = 0
        """Where what was placed ends."""
        self._flusher: Threads | None = None
        self._flush: Future[None] | None = None
        self._flushed = 0
        """Bytes that the disk has been given."""
        self._copier = Copier(path, fd)
        self.same = 0
        """Bytes at the start that are the source's."""

    def place(self, offset: int, data: bytes | bytearray) -> None:
        """Write bytes at an offset that the file has yet to reach: ranges are copied up to there, and `write` goes on
        behind them."""
        view = memoryview(data).cast("B")
        while view:
            count = os.pwrite(self._fd, view, offset)
            offset += count
            view = view[count:]
        self._reached = max(self._reached, offset)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        if self._reached > self.position:
            self.position = os.lseek(self._fd, self._reached, os.SEEK_SET)
        view = memoryview(data).cast("B")
        while view:
            count = os.write(self._fd, view)
            self.position += count
            view = view[count:]

    def copy_range(
        self,
        source: LocalSource,
        offset: int,
        length: int,
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Append a range of the source, by the cheapest way there is (see `copying`).

        Stops early, without an error, once `cancelled()` is true: the caller is unwinding then.
        """
        steps = self._copier.steps(source, offset, length, self.position)
        while not (cancelled is not None and cancelled()) and (step := next(steps, None)) is not None:
            count, on_disk = step
            if offset == self.position == self.same:
                self.same += count
            offset += count
            self.position += count
            if on_disk:
                self._flushed += count
            self._flush_behind()
            if progress is not None:
                progress(count)

    def _flush_behind(self) -> None:
        """Have what was written put on the disk while more is written or decoded: little is left for the end."""
        if self.position - self._flushed < _FLUSH_BYTES or not hasattr(os, "fdatasync"):
            return
        if self._flush is not None:
            if not self._flush.done():
                return
            self._flush.result()
        if self._flusher is None:
            self._flusher = Threads(1, "bloom-flush")
        self._flushed = self.position
        self._flush = self._flusher.submit(partial(os.fdatasync, self._fd))
        if self._flusher.refused:
            self._flusher.result(self._flush)  # there is no thread to do it meanwhile

    def flush(self) -> None:
        """Put everything that was written on the disk."""
        if self._flush is not None:
            self._flush.result()  # the system tells an error once: it must not be lost
        os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the file, once nothing works on it any more."""
        if self._flusher is not None:
            self._flusher.close()
        self._copier.close()


@contextmanager
def replacing(
    target: Path, *, source: LocalSource, overwrite: bool, verify: Callable[[Path], None]
) -> Iterator[AtomicWriter]:
    """Write a file that appears under its name only when it is whole and verified.

    A symbolic link is followed: what it points to is replaced. A hard link is broken: the other names keep
    the old content.

    Args:
        target: the final name.
        source: the file that the new one is made from; gives mode and owner, and must not change meanwhile.
        overwrite: whether the target may exist.
        verify: looks at the finished temporary file; what it raises stops the replacement.

    Raises:
        UsageError: the target exists and may not be overwritten, or is no regular file.
        CorruptFile: the source isn't what the checksums beside it say.
        UnreadableError: checksums can't be read.
        SourceChanged: the source changed meanwhile.
        WriteError: the system refused to write. Nothing is left behind, unless the error says so.
    """
    final, exists = _destination(target)
    if not overwrite and exists:
        raise UsageError("the output exists already", path=str(target), hint="--overwrite replaces it")
    known = hadoop_crc.verified(source)
    expected = source if Path(os.path.realpath(source.local_path)) == final else None
    with _write_errors(target, Temporary(final)) as temporary:
        fd = temporary.open()  # it may get another path in this
        writer = AtomicWriter(temporary.path, fd)
        try:
            yield writer
            _take_over(fd, source, final, exists=exists)
            writer.flush()
            verify(temporary.path)
            with Holding(final, partial(_may_overtake, temporary, final, expected)) as lock:
                source.check_unchanged()
                with renewed_beside(temporary, final, known, writer.same):
                    if expected is not None and overwrite:
                        temporary.replace(expected, alone=not lock.overtaking)
                    else:
                        source.check_unchanged()
                        _name(temporary, final, overwrite=overwrite)
                    _sync_directory(final.parent)
        finally:
            writer.close()


def place(target: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a small file of our own, such as a baseline: it is there whole, or not at all.

    Raises:
        UsageError: the target exists and may not be overwritten, or is no regular file.
        WriteError: the system refused to write. Nothing is left behind, unless the error says so.
    """
    final, exists = _destination(target)
    if not overwrite and exists:
        raise UsageError("the file exists already", path=str(target), hint="move it away, or name another")
    sweep(final.parent)
    with _write_errors(target, Temporary(final, 0o666)) as temporary:
        with os.fdopen(temporary.open(), "wb", closefd=False) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(temporary.fd)
        with (
            Holding(final, partial(_may_overtake, temporary, final, None)),
            renewed_beside(temporary, final, None, 0),
        ):
            _name(temporary, final, overwrite=overwrite)
            _sync_directory(final.parent)


@contextmanager
def _write_errors(target: Path, temporary: Temporary) -> Iterator[Temporary]:
    """Make what the system refuses a WriteError, which says whether the new file has its name."""
    try:
        with terminable(), temporary:
            yield temporary
    except OSError as error:
        placed: bool | None = None
        with contextlib.suppress(OSError):
            placed = temporary.placed
        raise _write_error(target, error, placed=placed) from None


def _destination(target: Path) -> tuple[Path, bool]:
    """What is written when that is named, the end of its links, and whether it is there.

    Raises:
        UsageError: it is nothing to replace.
        WriteError: the system can't tell.
    """
    try:
        final = Path(os.path.realpath(target, strict=True))
        mode = final.stat().st_mode
    except FileNotFoundError:  # it is to be made; if it can't, that is told then
        return Path(os.path.realpath(target)), False
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WriteError("can't be written: its symbolic link leads in a circle", path=str(target)) from None
        raise _write_error(target, error) from None
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
        raise UsageError(
            f"the output is {what}", path=str(target), hint="a finished file is renamed into place: name a file"
        )
    return final, True


def _name(temporary: Temporary, final: Path, *, overwrite: bool) -> None:
    """Give the file its name, whatever has it."""
    if overwrite:
        os.replace(temporary.path, final)  # noqa: PTH105  the os call is the one with the documented atomicity
        return
    try:
        appear(temporary.path, final)
    except FileExistsError:
        raise UsageError("the output exists already", path=str(final), hint="--overwrite replaces it") from None


def _may_overtake(temporary: Temporary, final: Path, expected: LocalSource | None) -> bool:
    """Whether a file may be replaced though somebody else, who may hang, has its lock.

    Not if it has checksums: both would be at them. And a source only if one of both will notice: see
    `Temporary.replace`.
    """
    return not has_checksums(final) and (expected is None or temporary.may_overtake(expected))


def _take_over(fd: int, source: LocalSource, final: Path, *, exists: bool) -> None:
    """Mode, owner and extended attributes: those of the file that is replaced, else of the source."""
    model: Path | int = final if exists else source.fileno()
    try:
        info = os.stat(model)  # noqa: PTH116  a file descriptor has no Path
    except FileNotFoundError:  # somebody has removed it
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
        with _not_for_us():
            for name in os.listxattr(model):
                with _not_for_us():
                    os.setxattr(fd, name, os.getxattr(model, name))


@contextmanager
def _not_for_us() -> Iterator[None]:
    """Pass over attributes that the file system hasn't got, or that aren't for everybody to read or to set."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTE:
            raise


def _sync_directory(directory: Path) -> None:
    """Put a rename on the disk, where the file system can. Raises OSError."""
    try:
        fd = os.open(directory, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def _write_error(target: Path, error: OSError, *, placed: bool | None = False) -> WriteError:
    """An error of the system; `placed`: the new file has its name, None if that can't be told."""
    reason = (error.strerror or str(error)).lower()
    if placed is None:
        return WriteError(
            f"can't be looked at any more: {reason}",
            path=str(target),
            hint="it is whole, the original or the new file: look at it when the file system answers again",
        )
    if placed:
        return WriteError(
            f"the new file is in place, but the system then reported an error: {reason}",
            path=str(target),
            hint="the file was synced and compared before it got its name; `bloom validate` looks at it again",
        )
    hints = {
        errno.ENOSPC: "the disk is full; free some room, or write elsewhere with -o",
        errno.EDQUOT: "the quota is used up; free some room, or write elsewhere with -o",
        errno.ENOENT: "the output's directory doesn't exist",
        errno.EACCES: "check who may write to the directory",
        errno.EROFS: "the file system is read-only; write elsewhere with -o",
    }
    return WriteError(
        f"can't be written: {reason}",
        path=str(target),
        hint=hints.get(error.errno or 0, "the original is whole and nothing was left behind"),
    )
