"""The only place that replaces a file.

    old checksums right? -> temp beside the target -> written -> mode, owner, attributes -> fsync -> verified
    -> source unchanged? -> new checksums written beside, old ones put aside -> rename -> directory fsync
    -> new checksums in their place

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

from bloomcli import sidecar
from bloomcli.copying import Copier
from bloomcli.errors import UsageError, WriteError
from bloomcli.signals import terminable
from bloomcli.source import LocalSource
from bloomcli.temporary import Temporary, appear, beside, lock
from bloomcli.threads import Threads

_FLUSH_BYTES: Final = 32 << 20


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
        WriteError: the system refused to write. Nothing is left behind.
    """
    final = _destination(target)
    if not overwrite and os.path.exists(final):  # noqa: PTH110  unlike Path.exists it never raises
        raise UsageError("the output exists already", path=str(target), hint="--overwrite replaces it")
    known = sidecar.verified(source)
    with terminable(), Temporary(final) as temporary:
        try:
            fd = temporary.open()
            writer = AtomicWriter(temporary.path, fd)
            try:
                yield writer
                _take_over(fd, source, final)
                writer.flush()
                verify(temporary.path)
                source.check_unchanged()
                with _checksums(temporary.path, final, known, writer.same):
                    _commit(temporary.path, final, overwrite=overwrite)
            finally:
                writer.close()
        except OSError as error:
            raise _write_error(target, error) from None


def place(target: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a small file of our own, such as a baseline: it is there whole, or not at all.

    Raises:
        UsageError: the target exists and may not be overwritten, or is no regular file.
        WriteError: the system refused to write. Nothing is left behind.
    """
    final = _destination(target)
    if not overwrite and os.path.lexists(final):
        raise UsageError("the file exists already", path=str(target), hint="move it away, or name another")
    with terminable(), Temporary(final, 0o666) as temporary:
        try:
            with os.fdopen(temporary.open(), "wb", closefd=False) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(temporary.fd)
                with _checksums(temporary.path, final, None, 0):
                    _commit(temporary.path, final, overwrite=overwrite)
        except OSError as error:
            raise _write_error(target, error) from None


def _destination(target: Path) -> Path:
    """What is written when that is named: the end of its links. Raises where that is nothing to replace."""
    final = Path(os.path.realpath(target))
    if os.path.islink(final):  # noqa: PTH114  unlike Path.is_symlink it never raises
        raise WriteError("can't be written: its symbolic link leads in a circle", path=str(target))
    try:
        mode = final.stat().st_mode
    except OSError:
        return final  # it is to be made; if it can't, that is told then
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
        raise UsageError(
            f"the output is {what}", path=str(target), hint="a finished file is renamed into place: name a file"
        )
    return final


def _commit(temporary: Path, final: Path, *, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, final)  # noqa: PTH105  the os call is the one with the documented atomicity
    else:
        try:
            appear(temporary, final)
        except FileExistsError:
            raise UsageError("the output exists already", path=str(final), hint="--overwrite replaces it") from None
    _sync_directory(final.parent)


@contextmanager
def _checksums(temporary: Path, final: Path, known: sidecar.Checksums | None, same: int) -> Iterator[None]:
    """Give the file new checksums if it has some, with the rename in the middle.

    Before it both, old and new, lie beside under names of their own; after it one of them gets its name.
    """
    place_of = sidecar.sidecar_of(final)
    old = sidecar.load(place_of)
    if old is None:
        yield
        return
    before, made = _identity(final), _identity(temporary)
    aside = beside(place_of)
    held: list[int] = []

    def settle() -> None:
        found = _identity(final)
        fitting = new.path if found == made else aside if found == before else None
        with contextlib.suppress(OSError):  # the file is whole, and readable without
            if fitting is not None:
                os.replace(fitting, place_of)  # noqa: PTH105
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)

    with Temporary(place_of) as new:
        try:
            with os.fdopen(new.open(), "wb", closefd=False) as stream:
                stream.write(sidecar.renewed(old, final, temporary, known, same))
                stream.flush()
                os.fchmod(new.fd, stat.S_IMODE(temporary.stat().st_mode) & 0o666)
                os.fsync(new.fd)
            held = _locked(place_of)
            with contextlib.suppress(FileNotFoundError):  # somebody else is at it, at the same file
                os.replace(place_of, aside)  # noqa: PTH105
            yield
        finally:
            try:
                settle()
            except BaseException:  # stopped in the middle of it
                settle()
                raise
            for each in held:
                os.close(each)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has the name; None where there is none."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _locked(path: Path) -> list[int]:
    """A descriptor that holds a file's lock, if that can be."""
    for access in (os.O_RDWR, os.O_RDONLY):  # network file systems lock what may be written only
        with contextlib.suppress(OSError):
            fd = os.open(path, access | getattr(os, "O_CLOEXEC", 0))
            try:
                lock(fd)
            except BaseException:
                os.close(fd)
                raise
            return [fd]
    return []


def _take_over(fd: int, source: LocalSource, final: Path) -> None:
    """Mode, owner and extended attributes: those of the file that is replaced, else of the source."""
    model: Path | int = final if final.exists() else source.fileno()
    info = os.stat(model)  # noqa: PTH116  a file descriptor has no Path
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
        with contextlib.suppress(OSError):
            for name in os.listxattr(model):
                with contextlib.suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(model, name))


def _sync_directory(directory: Path) -> None:
    try:
        fd = os.open(directory, os.O_RDONLY)
    except OSError:
        return  # not every system opens directories; the rename is done either way
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)


def _write_error(target: Path, error: OSError) -> WriteError:
    hints = {
        errno.ENOSPC: "the disk is full; free some room, or write elsewhere with -o",
        errno.EDQUOT: "the quota is used up; free some room, or write elsewhere with -o",
        errno.ENOENT: "the output's directory doesn't exist",
        errno.EACCES: "check who may write to the directory",
        errno.EROFS: "the file system is read-only; write elsewhere with -o",
    }
    return WriteError(
        f"can't be written: {(error.strerror or str(error)).lower()}",
        path=str(target),
        hint=hints.get(error.errno or 0, "the original is whole and nothing was left behind"),
    )
