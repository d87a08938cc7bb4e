"""Temporary files: how they are made and get their final name, and what a sweep does with those of killed runs.

A run holds the lock of its temporary file until it is done with it. The lock ends with the process, however that
ends, so that a sweep knows whether the file is in use. Between a file's creation and its lock, a sweep may take it
for one that was left behind; its creator notices that, and makes another one.

A checksum file (see `hadoop_crc`) has a temporary name while its file is replaced. If the run is killed then, the
sweep gives it its name back if it fits the file: no file gets checksums that are out of date. Of a run that was
killed while it exchanged two files (see `exchange`), the sweep removes no file that is neither of the two.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, Self

from bloomcli.errors import SourceChanged, UnreadableError
from bloomcli.storage.base import SweepResult
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.exchange import CannotExchange, Folder, rename_no_replace
from bloomcli.storage.local.locks import can_lock, lock, lock_timeout_error, open_for_writing
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.local.temporary_names import Marks, is_temporary, mark, marks_in, may_be_for, temporary_name

_CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)
_SWEEPING: Final = _CLOSE_ON_EXEC | getattr(os, "O_NONBLOCK", 0)
"""Opening doesn't wait for a process that checks whether the file is open for writing (see `locks`)."""

_CAN_EXCHANGE: Final = hasattr(os, "O_PATH")
"""This is Linux."""


class TemporaryFile:
    """A new file in the directory of the final one, locked where the file system has locks. It is removed when the
    block ends, unless it has its final name by then.

    Its name is chosen before the file is made, so that a stop at any instant (Ctrl-C) leaves nothing.
    """

    fd = -1
    """The file's descriptor; -1 before it is opened."""

    _created = False
    _kept = False
    _process = 0
    _identity: tuple[int, int] | None = None
    _folder: Folder | None = None
    _exchange_name = ""
    """Its name while it is exchanged. Another process's file may get that name."""

    def __init__(self, final: Path, mode: int = 0o600) -> None:
        self.path = temporary_name(final)
        self._final = final
        self._mode = mode
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def __del__(self) -> None:
        if self._process == os.getpid():  # a stop (Ctrl-C) may come before __exit__ is called
            self._remove()

    def open(self) -> int:
        """Make the file; gives its descriptor.

        Raises:
            OSError: the system refused.
        """
        while True:
            self._created = True
            try:
                self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC, self._mode)
            except OSError:
                self._created = False
                raise
            with contextlib.suppress(BlockingIOError, FileNotFoundError):  # a sweep has locked or removed it
                lock(self.fd)
                info = os.fstat(self.fd)
                if os.path.samestat(info, self.path.stat()):
                    self._identity = info.st_dev, info.st_ino
                    return self.fd
            self._remove()
            self.path = temporary_name(self._final)

    @property
    def placed(self) -> bool:
        """Whether it has its final name. Raises OSError where the system can't tell."""
        return self._identity is not None and file_identity(self._final) == self._identity

    def keep(self) -> None:
        """Leave the file under its temporary name when the block ends, for the next sweep."""
        self._kept = True

    def may_bypass_lock(self, source: LocalSource) -> bool:
        """Whether a source may be replaced though another process, which may hang, has its lock.

        It may where files can be exchanged, as the later one of the two notices. It may not while the other process
        has exchanged its file and not yet looked at the one that it replaced, which it may have to put back.
        """
        if not _CAN_EXCHANGE or not self._open_folder().may_exchange:
            return False
        new = mark(source.fingerprint)
        found = (marks_in(p.name) for p in temporary_files(self._final.parent))
        return all(marks is None or marks.new != new for marks in found)

    def replace(self, source: LocalSource, *, alone: bool = True) -> None:
        """Take the final name from the source's file, if that has the name and is unchanged.

        Args:
            source: the file that this one was made from.
            alone: whether no other process has its lock.

        Raises:
            SourceChanged: it hasn't, or it changed. The file that has the name is unchanged.
            WriteError: this needs the lock here, and another process has it.
            OSError: the system refused.
        """
        source.check_unchanged()
        if _CAN_EXCHANGE and self._open_folder().may_exchange:
            self._exchange(self._open_folder(), source, alone)
        else:
            os.replace(self.path, self._final)  # noqa: PTH105  the os call is the one with the documented atomicity

    def _open_folder(self) -> Folder:
        if self._folder is None:
            self._folder = Folder(self._final.parent)
        return self._folder

    def _exchange(self, folder: Folder, source: LocalSource, alone: bool) -> None:
        marks = Marks(new=mark(os.fstat(self.fd)), old=mark(source.fingerprint))
        exchange_name, final = temporary_name(self._final, marks), self._final.name
        self._exchange_name = exchange_name.name
        os.rename(self.path, exchange_name)  # noqa: PTH104  as above
        try:
            found = folder.swap(exchange_name.name, final, marks.old)
            written = found == marks.old and open_for_writing(source.fileno())
            if written or (found == marks.old and folder.look(exchange_name.name) not in (None, found)):
                found = folder.swap(exchange_name.name, final, marks.new)
        except CannotExchange:
            if not alone:
                raise lock_timeout_error(self._final) from None
            source.check_unchanged()
            os.replace(exchange_name, self._final)  # noqa: PTH105
            return
        except FileNotFoundError:
            if folder.look(final) is not None:
                raise
            error = source.changed("was removed")
            if folder.look(exchange_name.name) not in (None, *marks):
                error.hint = f"a file that had its name before it was removed is kept as {exchange_name}"
            raise error from None
        except BaseException:  # stopped midway: which file has the name has to be known before it gets checksums
            _finish_exchange(folder, exchange_name.name)
            raise
        folder.remove(exchange_name.name)
        if written:
            raise SourceChanged(
                "another process has the file open for writing",
                path=source.path,
                hint="try again when it has closed it. Nothing was written",
            )
        if found != marks.old:
            raise source.changed("changed")

    def _remove(self) -> None:
        if self._created and not self._kept:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        if self._folder is not None:
            if self._exchange_name:
                with contextlib.suppress(OSError, CannotExchange):
                    _finish_exchange(self._folder, self._exchange_name)
            self._folder.close()
            self._folder = None
        self._created = False
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)  # last, as the lock shows that the file is in use


def file_identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of the file that has a name; None if no file has it. Raises OSError."""
    try:
        info = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return info.st_dev, info.st_ino


def _finish_exchange(folder: Folder, exchange_name: str, *, alone: bool = True) -> bool:
    """Remove the file that an interrupted exchange has left. Gives whether that was possible.

    It is the new file or the old one. Another process's file gets its name back from the new one first.

    Args:
        folder: its directory.
        held: its temporary name, which has the marks of the two files.
        alone: whether the new file is the caller's own. If not, it has to be locked, as its run may be at work.
    """
    marks, found = marks_in(exchange_name), folder.look(exchange_name)
    if marks is None or found is None:
        return False
    if found not in marks:
        there = [name for name in os.listdir(folder.path) if may_be_for(exchange_name, name)]  # noqa: PTH208
        final = next((name for name in there if folder.look(name) == marks.new), None)
        if final is None:
            return False  # it isn't known which of them is newer
        fd = -1 if alone else os.open(folder.path / final, os.O_RDONLY | _SWEEPING)
        try:
            if not alone and not lock(fd):
                return False
            folder.swap(exchange_name, final, marks.new)
        finally:
            if fd >= 0:
                os.close(fd)
    folder.remove(exchange_name)
    return True


def temporary_files(directory: Path) -> list[Path]:
    """Temporary files in a directory, in use or left behind; none if it can't be read."""
    try:
        return [Path(directory, name) for name in os.listdir(directory) if is_temporary(name)]  # noqa: PTH208  names do
    except OSError:
        return []


def sweep(directory: Path) -> SweepResult:
    """Remove the temporary files of killed runs in a directory.

    A file that is in use is locked, and stays. Another process's file that a killed run was about to put back gets
    its name back, and so does a checksum file that fits a file which has none.
    """
    found = temporary_files(directory)
    if not can_lock():
        return SweepResult(remaining=[str(path) for path in found])  # it isn't known whether files are in use
    removed: list[str] = []
    left: list[str] = []
    # checksum files come last: the files that they may belong to have their names then
    for path in sorted(found, key=lambda p: (marks_in(p.name) is None, p.name)):
        done = False
        with contextlib.suppress(OSError, CannotExchange):
            done = _sweep(path)
        if done:
            removed.append(str(path))
        elif os.path.lexists(path):
            left.append(str(path))
    return SweepResult(removed, left)


def _sweep(path: Path) -> bool:
    """Remove a temporary file that isn't in use; gives whether it was removed."""
    exchanged = marks_in(path.name) is not None
    try:
        fd = os.open(path, os.O_RDWR | _SWEEPING)
    except PermissionError:
        if not exchanged:
            raise
        fd = os.open(path, os.O_RDONLY | _SWEEPING)  # another user's file, whose name a killed run took
    try:
        if not lock(fd):
            return False
        if exchanged:
            folder = Folder(path.parent)
            try:
                return _finish_exchange(folder, path.name, alone=False)
            finally:
                folder.close()
        if _restore_checksums(path, fd):
            return False
        path.unlink()
        return True
    finally:
        os.close(fd)


def _restore_checksums(left: Path, fd: int) -> bool:
    """Give a checksum file its name back if it fits a file that has none. False: it fits none."""
    if os.pread(fd, len(hadoop_crc.MAGIC), 0) != hadoop_crc.MAGIC:
        return False
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    for file in _without_checksums(left):
        try:
            with LocalSource(str(file), file) as source:
                if not hadoop_crc.fits(source, data):
                    continue
                final = hadoop_crc.checksum_file_of(file)
                rename_to_free_name(left, final)
                try:
                    source.check_unchanged()
                except SourceChanged:  # replaced meanwhile by a run that saw no checksums, and wrote none
                    final.unlink(missing_ok=True)
                return True
        except (UnreadableError, FileExistsError):
            continue
    return False


def _without_checksums(left: Path) -> list[Path]:
    """Files without checksums that a checksum file may belong to. Long names were cut, so there may be several."""
    files = set(os.listdir(left.parent))  # noqa: PTH208
    return [
        left.with_name(name)
        for name in sorted(files)
        if may_be_for(left.name, f".{name}.crc") and f".{name}.crc" not in files
    ]


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether both are names of one file."""
    try:
        return os.path.samestat(one.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def rename_to_free_name(temporary: Path, final: Path) -> None:
    """Give a file its final name unless another file has it.

    Raises:
        FileExistsError: another file has it.
        OSError: the system refused.
    """
    try:
        os.link(temporary, final)  # unlike a rename, this fails if a file has the name meanwhile
    except OSError as error:
        if not _is_same_file(
            temporary, final
        ):  # else a server did it, and its answer was lost, or is that of a second try
            if isinstance(error, FileExistsError):
                raise
            if not rename_no_replace(temporary, final):  # the file system has no hard links
                os.replace(temporary, final)  # noqa: PTH105
            return
    temporary.unlink()
