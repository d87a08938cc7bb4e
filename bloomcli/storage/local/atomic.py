"""Replaces a file so that readers see the old content or the new content, and nothing in between.

`bloomcli.storage.local` describes the steps and their modules.

A file's checksum file (see `hadoop_crc`) is replaced with it:

    the new checksum file is written under a temporary name, the old one is renamed to another temporary name
    -> the file is replaced     -> the new checksum file gets its name
       the file isn't replaced  -> the old checksum file gets its name back

This order is needed because Hadoop reads a file without checksums, but not one whose checksums are out of date.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Final

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UsageError, WriteError
from bloomcli.storage.base import KeptRange, PlacedBytes, Replacement, Source, output_exists
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.attributes import copy_attributes, finish_new_file, mode_of_new_file
from bloomcli.storage.local.copying import NewFile
from bloomcli.storage.local.locks import FileLock
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.local.temporary import (
    TemporaryFile,
    file_identity,
    may_be_for,
    rename_to_free_name,
    sweep,
    temporary_files,
    temporary_name,
)
from bloomcli.storage.os_errors import reason
from bloomcli.storage.traffic import current

_NO_DIRECTORY_SYNC: Final = (
    errno.EACCES,
    errno.EBADF,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
)
"""Errors of systems that can't open directories, and of file systems that can't sync them."""


def replace(wanted: Replacement) -> int:
    """Write a file from its pieces: `Store.replace` of local files. Returns the file's size in bytes."""
    target, size = Path(wanted.path), 0

    def check(temporary: Path) -> None:
        if wanted.verify is None:
            if temporary.stat().st_size != size:
                raise WriteError("the copy is not as long as the file", path=str(target))
            return
        with LocalSource(str(temporary), temporary) as written:
            wanted.verify(written)

    with replacing(target, source=wanted.source, overwrite=wanted.overwrite, verify=check) as new:
        with closing(wanted.pieces):  # ends their threads before the file is synced
            for piece in wanted.pieces:
                if isinstance(piece, KeptRange):
                    new.copy_range(wanted.source, *piece, progress=wanted.progress, cancelled=wanted.cancelled)
                elif isinstance(piece, PlacedBytes):
                    new.write_at(*piece)
                else:
                    new.write(piece)
                del piece  # frees a filter, which may be large, before the next one is built
        size = new.size
    return size


@contextmanager
def replacing(
    target: Path,
    *,
    source: Source | None,
    overwrite: bool,
    verify: Callable[[Path], None] = lambda _: None,
    exists: UsageError | None = None,
) -> Iterator[NewFile]:
    """Write a file that gets its name only when it is complete and verified.

    Follows a symbolic link: the file that it points to is replaced. Breaks a hard link: the other names keep the old
    content.

    Args:
        target: the final name.
        source: the file that the new one is made from, in any store. It must not change during the replacement. None
            if it is made from no file.
        overwrite: whether the target may exist.
        verify: checks the finished temporary file. An exception from it cancels the replacement.
        exists: the error for a target that exists and may not be overwritten, if it isn't that of an output.

    Raises:
        UsageError: the target exists and may not be overwritten, or isn't a regular file.
        CorruptFile: the source doesn't match its checksum file.
        UnreadableError: the checksum file can't be read.
        SourceChanged: the source changed during the replacement.
        WriteError: a system call failed. No temporary file remains, unless the error says so.
    """
    final, replaces = _final_path(target)
    exists = exists or output_exists(str(target))
    if replaces and not overwrite:
        raise exists
    local = source if isinstance(source, LocalSource) else None
    checksums = None if local is None else hadoop_crc.verified_checksums(local)
    expected = local if local is not None and Path(os.path.realpath(local.local_path)) == final else None
    with _write_errors(target, TemporaryFile(final, 0o600 if replaces else mode_of_new_file(local))) as temporary:
        fd = temporary.open()  # this may change the temporary's path
        new = NewFile(temporary.path, fd)
        try:
            yield new
            if replaces:
                if (remark := copy_attributes(fd, final)) is not None:
                    current().remark(remark)
            elif local is not None:
                finish_new_file(fd, local)
            new.flush()
            verify(temporary.path)
            with FileLock(final, partial(_may_bypass_lock, temporary, final, expected)) as lock:
                if source is not None:
                    source.check_unchanged()
                with replacing_checksums(temporary, final, checksums, new.prefix):
                    if expected is not None and overwrite:
                        temporary.replace(expected, alone=not lock.bypassed)
                    else:
                        if source is not None:
                            source.check_unchanged()
                        _place(temporary, final, None if overwrite else exists)
                    _sync_directory(final.parent)
        finally:
            new.close()


def write_file(target: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a small file, such as a baseline, completely or not at all.

    Raises:
        UsageError: the target exists and may not be overwritten, or isn't a regular file.
        WriteError: a system call failed. No temporary file remains, unless the error says so.
    """
    exists = UsageError("the file exists already", path=str(target), hint="move it away, or name another")
    with _atomic_writer(target, overwrite=overwrite, exists=exists) as stream:
        stream.write(data)


def new_file(target: Path, hint: str) -> AbstractContextManager[IO[bytes]]:
    """Open a file to write. It gets its name when the block ends without an exception.

    Args:
        target: the final name.
        hint: the hint of the UsageError, which is raised before the block or at its end.

    Raises:
        UsageError: the target exists. That file is unchanged.
        WriteError: a system call failed. No temporary file remains, unless the error says so.
    """
    return _atomic_writer(target, overwrite=False, exists=output_exists(str(target), hint=hint))


@contextmanager
def _atomic_writer(target: Path, *, overwrite: bool, exists: UsageError) -> Iterator[IO[bytes]]:
    sweep(_final_path(target)[0].parent)
    with (
        replacing(target, source=None, overwrite=overwrite, exists=exists) as new,
        os.fdopen(new.fd, "wb", closefd=False) as stream,
    ):
        yield stream


def _place(temporary: TemporaryFile, final: Path, exists: UsageError | None) -> None:
    """Give the file its final name. If a file has the name, raise `exists`, or replace the file if that is None."""
    if exists is None:
        os.replace(temporary.path, final)  # noqa: PTH105  the os call is the one with the documented atomicity
        return
    try:
        rename_to_free_name(temporary.path, final)
    except FileExistsError:
        raise exists from None


def _may_bypass_lock(temporary: TemporaryFile, final: Path, expected: LocalSource | None) -> bool:
    """Whether a file may be replaced although another process, which may hang, holds its lock.

    A file with checksums may not, as both processes would replace the checksums. A source may if one of the two
    processes is sure to detect the other's replacement: see `TemporaryFile.may_bypass_lock`.
    """
    checksums = hadoop_crc.checksum_file_of(final)
    if os.path.lexists(checksums):
        return False
    if any(may_be_for(p.name, checksums.name) for p in temporary_files(final.parent)):
        return False  # another run is replacing them
    return expected is None or temporary.may_bypass_lock(expected)


def _sync_directory(directory: Path) -> None:
    """Sync a rename, if the file system supports that. Raises OSError."""
    try:
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


@contextmanager
def replacing_checksums(
    temporary: TemporaryFile, final: Path, source_checksums: hadoop_crc.Checksums | None, prefix: int
) -> Iterator[None]:
    """Replace the checksum file of a file, if it has one, while the block replaces the file itself.

    Args:
        temporary: the new file.
        final: its final name. The caller holds the lock of the file that has it.
        source_checksums: verified checksums of the file that the new one was made from.
        prefix: number of bytes at the start that are the same in both.

    Raises:
        UnreadableError: the checksum file exists, and can't be read.
        WriteError: neither checksum file could get the name. Both are left for a sweep.
        OSError: another system call failed. The old checksum file has its name.
    """
    checksums = hadoop_crc.checksum_file_of(final)
    old = hadoop_crc.load(checksums)
    if old is None:
        yield
        return
    before = file_identity(final)
    old_name = temporary_name(checksums)

    def settle() -> None:
        if temporary.placed:
            _place_checksums(new, checksums, temporary)
        elif file_identity(final) == before or _differs(old_name, old):
            _restore(old_name, checksums)
        with contextlib.suppress(OSError):  # a sweep will remove it
            old_name.unlink(missing_ok=True)

    with TemporaryFile(checksums) as new, contextlib.ExitStack() as locks:
        try:
            with os.fdopen(new.open(), "wb", closefd=False) as stream:
                stream.write(hadoop_crc.new_checksum_file(old, final, temporary.path, source_checksums, prefix))
                stream.flush()
                copy_attributes(new.fd, temporary.path)  # who may read the file may read its checksums
                os.fchmod(new.fd, os.fstat(new.fd).st_mode & 0o666)
                os.fsync(new.fd)
            locks.enter_context(FileLock(checksums))
            with contextlib.suppress(FileNotFoundError):  # another process is replacing the same file
                os.replace(checksums, old_name)  # noqa: PTH105
            yield
        finally:
            try:
                settle()
            except OSError as error:  # unknown which checksums match; a sweep compares them
                new.keep()
                raise WriteError(
                    f"the checksums can't be put in place: {reason(error)}",
                    path=str(checksums),
                    hint="they have temporary names; the next bloom that writes to the directory restores those that "
                    "match",
                ) from None
            except WriteError:
                raise
            except BaseException:  # interrupted
                settle()
                raise


def _place_checksums(new: TemporaryFile, checksums: Path, temporary: TemporaryFile) -> None:
    """Give the new checksum file its name, unless it has it already."""
    try:
        try:
            if not new.placed:
                rename_to_free_name(new.path, checksums)
        except FileExistsError:
            if temporary.placed:
                os.replace(new.path, checksums)  # noqa: PTH105
    except OSError as error:
        new.keep()
        raise WriteError(
            f"the checksums can't be written: {reason(error)}; the new file is in place",
            path=str(checksums),
            hint=f"they are kept as {new.path}; the next bloom that writes to the directory puts them in place",
        ) from None
    if not temporary.placed and new.placed:  # another run, which may have seen no checksums, replaced the file
        with contextlib.suppress(OSError):
            checksums.unlink()


def _restore(old_name: Path, checksums: Path) -> None:
    """Give the old checksum file its name back."""
    try:
        rename_to_free_name(old_name, checksums)
    except (FileExistsError, FileNotFoundError):  # another process made one, or the old one was never renamed
        return
    except OSError as error:
        raise WriteError(
            f"the checksums can't be put back: {reason(error)}; their file is unchanged",
            path=str(checksums),
            hint=f"they are kept as {old_name}; the next bloom that writes to the directory puts them in place",
        ) from None


def _differs(path: Path, content: bytes) -> bool:
    """Whether a checksum file has changed since it was read; False if it can't be read."""
    try:
        return path.read_bytes() != content
    except OSError:
        return False


@contextmanager
def _write_errors(target: Path, temporary: TemporaryFile) -> Iterator[TemporaryFile]:
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
        raise _write_error(target, error, placed=placed) from None


def _final_path(target: Path) -> tuple[Path, bool]:
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
        raise _write_error(target, error) from None
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
    final, exists = _final_path(target)
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
        raise _write_error(target, error) from None


def _write_error(target: Path, error: OSError, *, placed: bool | None = False) -> WriteError:
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
        errno.ENOSPC: "the disk is full; free some room, or write to another place",
        errno.EDQUOT: "the quota is used up; free some room, or write to another place",
        errno.ENOENT: "create the output's directory first",
        errno.EACCES: "check who may write to the directory",
        errno.EROFS: "the file system is read-only; write to another place",
    }
    return WriteError(
        f"can't be written: {why}",
        path=str(target),
        hint=hints.get(error.errno or 0, "the original is whole and nothing was left behind"),
    )
