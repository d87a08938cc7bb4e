"""Creates temporary files, gives them their final names, and sweeps those of killed runs.

A run holds the lock of its temporary file as long as it uses the file. The lock ends with the process, however that
ends, so a sweep can determine whether the file is in use. Between a file's creation and its lock, a sweep may remove
the file; its creator detects that, and makes another one.

A checksum file (see `hadoop_crc`) has a temporary name while its file is replaced. If the run is killed then, the
sweep gives it its name back only if it matches the file, so that no file gets checksums that are out of date. If a
run was killed while it exchanged two files (see below), the sweep removes only these two, never a third file.

The names of temporary files are

    .NAME.bloom-RANDOM.tmp            a new file, or a checksum file during the replacement of its file
    .NAME.bloom-RANDOM-NEW-OLD.tmp    a file that is exchanged with another one (see `Folder`)

NEW and OLD are marks (see `mark`) of the two files. A long NAME is cut, because names have at most 255 bytes.

An exchange replaces a file only if it is still the file that the new one was made from.

    .NAME.bloom-RANDOM-NEW-OLD.tmp  <- exchanged ->  NAME      renameat2(2), RENAME_EXCHANGE: both names in one step
    the temporary name has OLD?    yes: the old file is removed
                                   no: another process has replaced the file; both are exchanged again

If a third file got the name in between, the second exchange gives that file the temporary name. It is newer than the
file that just got the name back, so they are exchanged again, until the file with the temporary name is the one that
the previous exchange gave the name.

A run that is killed between the steps leaves one of
three files under the temporary name. The marks show the next sweep which one: the new file, which never had the name;
the old file, which lost it; or another process's file, which gets its name back.

Linux exchanges names on file systems such as ext4, xfs, btrfs and tmpfs. Other systems have no call that compares and
renames in one step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple, Self

from bloomcli import kernels
from bloomcli.errors import SourceChanged, UnreadableError
from bloomcli.storage.base import Fingerprint, SweepResult
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.copying import file_system
from bloomcli.storage.local.locks import lock, lock_timeout_error, open_for_writing
from bloomcli.storage.local.source import LocalSource

_CAN_EXCHANGE: Final = hasattr(os, "O_PATH")
"""Whether the system is Linux."""


class TemporaryFile:
    """A new file in the directory of the final one, locked if the file system has locks. It is removed when the block
    ends, unless it has its final name by then.

    Its name is chosen before the file is made, so that Ctrl-C at any time leaves no file.
    """

    fd = -1
    """The file's descriptor; -1 before it is opened."""

    _created = False
    _kept = False
    _process = 0
    _identity: tuple[int, int] | None = None
    _folder: Folder | None = None
    _exchange_name = ""
    """Its name during an exchange. Another process's file may get that name."""

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
        if self._process == os.getpid():  # Ctrl-C may come before __exit__ is called
            self._remove()

    def open(self) -> int:
        """Make the file, and return its descriptor.

        Raises:
            OSError: a system call failed.
        """
        while True:
            self._created = True
            try:
                self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, self._mode)
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
        """Whether it has its final name. Raises OSError if the system can't tell."""
        return self._identity is not None and file_identity(self._final) == self._identity

    def keep(self) -> None:
        """Keep the file under its temporary name when the block ends, for the next sweep."""
        self._kept = True

    def may_bypass_lock(self, source: LocalSource) -> bool:
        """Whether a source may be replaced although another process, which may hang, holds its lock.

        It may if files can be exchanged, because the later of the two processes detects the other's replacement. It
        may not while the other process has exchanged its file but not yet checked which file it replaced, because it
        may have to put that file back.
        """
        if not _CAN_EXCHANGE or not self._open_folder().may_exchange:
            return False
        new = mark(source.fingerprint)
        all_marks = (marks_in(p.name) for p in temporary_files(self._final.parent))
        return all(marks is None or marks.new != new for marks in all_marks)

    def replace(self, source: LocalSource, *, alone: bool = True) -> None:
        """Give this file the final name, if the source has that name and is unchanged.

        Args:
            source: the file that this one was made from.
            alone: whether no other process holds the source's lock.

        Raises:
            SourceChanged: the source doesn't have the name, or changed. The file that has the name is unchanged.
            WriteError: files can't be exchanged, so the lock is needed, and another process holds it.
            OSError: another system call failed.
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
            file_mark = folder.swap(exchange_name.name, final, marks.old)
            written = file_mark == marks.old and open_for_writing(source.fileno())
            if written or (file_mark == marks.old and folder.look(exchange_name.name) not in (None, file_mark)):
                file_mark = folder.swap(exchange_name.name, final, marks.new)
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
        except BaseException:  # interrupted: checksums depend on which file has the name
            _finish_exchange(folder, exchange_name.name)
            raise
        folder.remove(exchange_name.name)
        if written:
            raise SourceChanged(
                "another process has the file open for writing",
                path=source.path,
                hint="try again when it has closed it. Nothing was written",
            )
        if file_mark != marks.old:
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
            os.close(fd)  # last, because the lock shows that the file is in use


def file_identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of the file that has a name; None if no file has it. Raises OSError."""
    try:
        info = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return info.st_dev, info.st_ino


def _finish_exchange(folder: Folder, exchange_name: str, *, alone: bool = True) -> bool:
    """Remove the file that an interrupted exchange left. Returns whether that was possible.

    Removes the new file or the old one. If another process's file has the temporary name, it is first exchanged with
    the new one, and so gets its name back.

    Args:
        folder: the directory of the files.
        exchange_name: the temporary name, which contains the marks of the two files.
        alone: whether the new file is the caller's own. If not, it has to be locked, because its run may be active.
    """
    marks, file_mark = marks_in(exchange_name), folder.look(exchange_name)
    if marks is None or file_mark is None:
        return False
    if file_mark not in marks:
        names = [name for name in os.listdir(folder.path) if may_be_for(exchange_name, name)]  # noqa: PTH208
        final = next((name for name in names if folder.look(name) == marks.new), None)
        if final is None:
            return False  # unknown which file is newer
        fd = -1 if alone else _open_to_sweep(folder.path / final, os.O_RDONLY)
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
    """The temporary files in a directory, whether in use or not; none if it can't be read."""
    try:
        return [Path(directory, name) for name in os.listdir(directory) if _NAME.fullmatch(name)]  # noqa: PTH208  names do
    except OSError:
        return []


def sweep(directory: Path) -> SweepResult:
    """Remove the temporary files of killed runs in a directory.

    Files in use are locked, and stay. Another process's file that a killed run had to put back gets its name back. A
    checksum file gets its name back if it matches a file without one.
    """
    paths = temporary_files(directory)
    removed: list[str] = []
    remaining: list[str] = []
    # checksum files last: by then, the files that they may belong to have their names
    for path in sorted(paths, key=lambda p: (marks_in(p.name) is None, p.name)):
        done = False
        with contextlib.suppress(OSError, CannotExchange):
            done = _sweep(path)
        if done:
            removed.append(str(path))
        elif os.path.lexists(path):
            remaining.append(str(path))
    return SweepResult(removed, remaining)


def _open_to_sweep(path: Path, access: int) -> int:
    return os.open(path, access | os.O_NONBLOCK)  # doesn't wait for the end of another process's lease: see `locks`


def _sweep(path: Path) -> bool:
    """Remove a temporary file if it isn't in use. Returns whether it was removed."""
    exchanged = marks_in(path.name) is not None
    try:
        fd = _open_to_sweep(path, os.O_RDWR)
    except PermissionError:
        if not exchanged:
            raise
        fd = _open_to_sweep(path, os.O_RDONLY)  # another user's file, which a killed run exchanged
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


def _restore_checksums(temporary: Path, fd: int) -> bool:
    """Give a checksum file its name back if it matches a file without one. Returns whether it did."""
    if os.pread(fd, len(hadoop_crc.MAGIC), 0) != hadoop_crc.MAGIC:
        return False
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    for file in _without_checksums(temporary):
        try:
            with LocalSource(str(file), file) as source:
                if not hadoop_crc.fits(source, data):
                    continue
                final = hadoop_crc.checksum_file_of(file)
                rename_to_free_name(temporary, final)
                try:
                    source.check_unchanged()
                except SourceChanged:  # replaced by a run that saw no checksums, and wrote none
                    final.unlink(missing_ok=True)
                return True
        except (UnreadableError, FileExistsError):
            continue
    return False


def _without_checksums(temporary: Path) -> list[Path]:
    """The files without checksums that a checksum file may belong to: several, if their long names were cut."""
    files = set(os.listdir(temporary.parent))  # noqa: PTH208
    return [
        temporary.with_name(name)
        for name in sorted(files)
        if may_be_for(temporary.name, f".{name}.crc") and f".{name}.crc" not in files
    ]


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether both paths are names of one file."""
    try:
        return os.path.samestat(path.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def rename_to_free_name(temporary: Path, final: Path) -> None:
    """Give a file its final name unless another file has it.

    Raises:
        FileExistsError: another file has it.
        OSError: another system call failed.
    """
    try:
        os.link(temporary, final)  # unlike a rename, this fails if a file has the name
    except OSError as error:
        # else a file server made the link: its answer was lost, or is the answer to a second request
        if not _is_same_file(temporary, final):
            if isinstance(error, FileExistsError):
                raise
            if not rename_no_replace(temporary, final):  # the file system has no hard links
                os.replace(temporary, final)  # noqa: PTH105
            return
    temporary.unlink()


_NAME_CHARACTERS: Final = 48
_MARK_CHARACTERS: Final = 12
_NAME: Final = re.compile(
    r"\.(?P<start>.{1,120})\.bloom-[0-9a-f]{12}(?:-(?P<new>[0-9a-f]{12})-(?P<old>[0-9a-f]{12}))?\.tmp", re.DOTALL
)
"""Matches the names that `temporary_name` makes."""


class Marks(NamedTuple):
    """Marks of two files that are exchanged, from a temporary name."""

    new: str
    old: str


def mark(info: os.stat_result | Fingerprint) -> str:
    """A hash of a file's inode, size and modification time: 12 hexadecimal digits.

    A rename of the file and a restart of the machine don't change it.
    """
    import hashlib  # takes 2 ms to import; only an exchange needs it

    if isinstance(info, os.stat_result):
        info = Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino)
    text = f"{info.inode} {info.size} {info.mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_CHARACTERS]


def temporary_name(final: Path, marks: Marks | None = None) -> Path:
    """A new random hidden name in the directory of a file."""
    marked = "" if marks is None else f"-{marks.new}-{marks.old}"
    return final.with_name(f".{final.name[:_NAME_CHARACTERS]}.bloom-{os.urandom(6).hex()}{marked}.tmp")


def may_be_for(name: str, final: str) -> bool:
    """Whether a temporary name may belong to a file: to several, if their long names were cut."""
    match = _NAME.fullmatch(name)
    return match is not None and final[:_NAME_CHARACTERS] == match["start"]


def marks_in(name: str) -> Marks | None:
    """The marks in a temporary name; None if it isn't the name of an exchange."""
    match = _NAME.fullmatch(name)
    return None if match is None or match["new"] is None else Marks(match["new"], match["old"])


_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
"""Flags of renameat2(2)."""

_AT_FDCWD: Final = -100
"""Instead of a directory's descriptor: the name is a path."""

_CANNOT: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.EPERM)
"""Errors of a system or file system without these flags. If no rename is permitted, the plain one fails too."""

_UNSTABLE: Final = ("overlay",)
"""File systems that may copy a file before they rename it, which changes its inode."""


class CannotExchange(Exception):
    """The system or the file system can't exchange files. Nothing was changed."""


class Folder:
    """An open directory: its files are found even if it is renamed.

    Raises:
        OSError: it can't be opened.
    """

    fd = -1
    """The directory's descriptor; -1 if it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, getattr(os, "O_PATH", os.O_RDONLY))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing is written through it
                os.close(fd)

    @property
    def may_exchange(self) -> bool:
        """Whether files in this directory keep their inodes when they are exchanged."""
        return file_system(os.fstat(self.fd).st_dev) not in _UNSTABLE

    def look(self, name: str) -> str | None:
        """The mark of the file that has a name; None if no file has it."""
        try:
            return mark(os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file, if it exists. Raises OSError."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return

    def swap(self, exchange_name: str, final: str, expected: str) -> str:
        """Exchange the files named `exchange_name` and `final`.

        If the file named `final` doesn't have the mark `expected`, it is another process's, and gets its name back.
        Returns the mark of the file that is named `exchange_name` at the end. The caller may remove that file.

        Raises:
            CannotExchange: the system can't exchange files in this directory.
            FileNotFoundError: no file is named `final`.
            OSError: another system call failed.
        """
        while True:
            placed = self.look(exchange_name)
            self._exchange(exchange_name, final)
            file_mark = self.look(exchange_name)
            if file_mark is None or placed is None:  # the file system ignored the flag, and renamed
                return expected
            if file_mark == expected:
                return file_mark
            expected = placed

    def _exchange(self, name: str, other: str) -> None:
        code = _rename(self.fd, self.path / name, self.fd, self.path / other, _EXCHANGE)
        if code in _CANNOT:
            raise CannotExchange
        if code:
            raise OSError(code, os.strerror(code), str(self.path / name), None, str(self.path / other))


def rename_no_replace(source: Path, other: Path) -> bool:
    """Rename a file to a name that no file has. Returns False if the system can't do that in one step.

    Raises:
        FileExistsError: a file has the name.
        OSError: another system call failed.
    """
    code = _rename(_AT_FDCWD, source, _AT_FDCWD, other, _NO_REPLACE)
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), str(source), None, str(other))
    return not code


def _rename(from_fd: int, source: Path, to_fd: int, other: Path, flags: int) -> int:
    sys.audit("os.rename", str(source), str(other), from_fd, to_fd)
    names = [os.fsencode(path.name if fd != _AT_FDCWD else path) for fd, path in ((from_fd, source), (to_fd, other))]
    return kernels.rename_with(from_fd, names[0], to_fd, names[1], flags)
