"""The only place that replaces a file.

    temp beside the target -> written -> mode, owner, attributes -> fsync -> verified -> source unchanged?
    -> old checksum sidecar away -> rename -> directory fsync -> new sidecar

Whatever fails, at whatever instant, the target is either what it was or what it was to become. A file left
without its sidecar for an instant is readable; one with a stale sidecar is not, hence the order.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import signal
import stat
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final

from bloomcli import kernels
from bloomcli.copying import Copier
from bloomcli.errors import UsageError, WriteError
from bloomcli.source import LocalSource

_FLUSH_BYTES: Final = 32 << 20
_READ_BYTES: Final = 4 << 20

_fcntl: Final[Any] = import_module("fcntl") if os.name == "posix" else None
_TEMPORARY: Final = re.compile(r"\..{1,120}\.bloom-[0-9a-f]{12}\.tmp", re.DOTALL)
"""The names that `_beside` gives."""

CHECKSUM_MAGIC: Final = b"crc\0"
_CHECKSUM_HEAD: Final = 8
_BYTES_PER_CHECKSUM: Final = 512


class AtomicWriter:
    """The temporary file while it is being written."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self.position = 0
        self._flusher: ThreadPoolExecutor | None = None
        self._flush: Future[None] | None = None
        self._flushed = 0
        """Bytes that the disk has been given."""
        self._copier = Copier(path, fd)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
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
            self._flusher = ThreadPoolExecutor(1, thread_name_prefix="bloom-flush")
        self._flushed = self.position
        self._flush = self._flusher.submit(os.fdatasync, self._fd)

    def flush(self) -> None:
        """Put everything that was written on the disk."""
        if self._flush is not None:
            self._flush.result()  # the system tells an error once: it must not be lost
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file, once nothing works on it any more."""
        if self._flusher is not None:
            self._flusher.shutdown()
        self._copier.close()
        os.close(self._fd)


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
        UsageError: the target exists and may not be overwritten.
        SourceChanged: the source changed meanwhile.
        WriteError: the system refused to write. Nothing is left behind.
    """
    final = Path(os.path.realpath(target))
    if os.path.islink(final):  # noqa: PTH114  unlike Path.is_symlink it never raises
        raise WriteError("can't be written: its symbolic link leads in a circle", path=str(target))
    if not overwrite and os.path.exists(final):  # noqa: PTH110  unlike Path.exists it never raises
        raise UsageError("the output exists already", path=str(target), hint="--overwrite replaces it")
    temporary = _beside(final)
    with terminable():
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise _write_error(target, error) from None
        writer = AtomicWriter(temporary, fd)
        try:
            _lock(fd)
            yield writer
            _take_over(fd, source, final)
            writer.flush()
            verify(temporary)
            source.check_unchanged()
            _commit(temporary, final, overwrite=overwrite)
        except BaseException as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _write_error(target, error) from None
            raise
        finally:
            writer.close()  # only now: until the rename the lock tells others that the file is being written


def place(target: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a small file of our own, such as a baseline: it is there whole, or not at all.

    Raises:
        UsageError: the target exists and may not be overwritten.
        WriteError: the system refused to write. Nothing is left behind.
    """
    final = Path(os.path.realpath(target))
    if not overwrite and os.path.lexists(final):
        raise UsageError("the file exists already", path=str(target), hint="move it away, or name another")
    temporary = _beside(final)
    with terminable():
        try:
            with temporary.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            _commit(temporary, final, overwrite=overwrite)
        except BaseException as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _write_error(target, error) from None
            raise


def _lock(fd: int) -> bool:
    """Take the file's lock, which ends with its writer however that ends.

    False: somebody else has it, or the file system has no locks and nobody can tell.
    """
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sweep(directory: Path) -> list[Path]:
    """Remove temporary files in a directory whose writer was killed; gives what was removed.

    One that is being written is locked, and stays.
    """
    removed: list[Path] = []
    if _fcntl is None:
        return removed  # nothing tells whether they are in use
    for path in temporaries(directory):
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _lock(fd):
                    path.unlink()
                    removed.append(path)
            finally:
                os.close(fd)
    return removed


def temporaries(directory: Path) -> list[Path]:
    """Temporary files in a directory, being written or left behind; none where it can't be read."""
    try:
        with os.scandir(directory) as entries:
            return [Path(e.path) for e in entries if _TEMPORARY.fullmatch(e.name)]
    except OSError:
        return []


def _beside(final: Path) -> Path:
    """A hidden name that nobody else has; a long one is cut, as names end at 255 bytes."""
    return final.with_name(f".{final.name[:48]}.bloom-{secrets.token_hex(6)}.tmp")


def _commit(temporary: Path, final: Path, *, overwrite: bool) -> None:
    sidecar = final.with_name(f".{final.name}.crc")
    checksums = _new_sidecar(temporary, final, sidecar)
    if overwrite:
        if checksums is not None:
            sidecar.unlink()
        os.replace(temporary, final)  # noqa: PTH105  the os call is the one with the documented atomicity
    else:
        try:
            os.link(temporary, final)  # fails if somebody created the name meanwhile, unlike a rename
        except FileExistsError:
            raise UsageError("the output exists already", path=str(final), hint="--overwrite replaces it") from None
        except OSError:
            os.replace(temporary, final)  # noqa: PTH105  the file system has no hard links
        else:
            temporary.unlink()
    _sync_directory(final.parent)
    if checksums is not None:
        _write_sidecar(sidecar, checksums, final)


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


def _new_sidecar(temporary: Path, final: Path, sidecar: Path) -> bytes | None:
    """The Hadoop checksum file that belongs to the new content; None where there was none before.

    Layout (hadoop-common, ChecksumFileSystem): "crc\\0", u32 BE bytes per checksum, then a u32 BE checksum of
    each chunk of that many bytes. CRC32, which is what Hadoop's local file system reads, unless the old one is
    recognisably CRC32C.
    """
    try:
        old = sidecar.read_bytes()
    except OSError:
        return None
    per_checksum = _BYTES_PER_CHECKSUM
    algorithm: Callable[[bytes, int], bytes] = _crc32_chunks
    if old[:4] == CHECKSUM_MAGIC and len(old) >= _CHECKSUM_HEAD:
        (claimed,) = struct.unpack(">I", old[4:8])
        if 1 <= claimed <= _READ_BYTES:
            per_checksum = claimed
            with contextlib.suppress(OSError), final.open("rb") as file:
                first = file.read(per_checksum)
                if first and old[8:12] == kernels.crc32c_chunks(first, per_checksum):
                    algorithm = kernels.crc32c_chunks
    parts = [CHECKSUM_MAGIC, struct.pack(">I", per_checksum)]
    step = max(_READ_BYTES // per_checksum, 1) * per_checksum
    with temporary.open("rb") as file:
        while data := file.read(step):
            parts.append(algorithm(data, per_checksum))
    return b"".join(parts)


def _crc32_chunks(data: bytes, size: int) -> bytes:
    return b"".join(zlib.crc32(data[at : at + size]).to_bytes(4, "big") for at in range(0, len(data), size))


def _write_sidecar(sidecar: Path, checksums: bytes, final: Path) -> None:
    """Put the sidecar in its place, or have none: the file is in its own already, and readable without."""
    temporary = _beside(sidecar)
    try:
        temporary.write_bytes(checksums)
        temporary.chmod(stat.S_IMODE(final.stat().st_mode) & 0o666)
        os.replace(temporary, sidecar)  # noqa: PTH105
    except BaseException as error:
        for path in (temporary, sidecar):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that temporary files are removed."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    ):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
