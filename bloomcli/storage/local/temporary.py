"""Files that are being written under a name that nobody looks for, and what killed writers left of them.

A writer holds its file's lock until it is done with it, so that others can tell whether it is in use: a lock
ends with its process, however that ends. Between a file's creation and its lock somebody else may take it for one
that was left behind; its creator notices, and begins again under another name.

Checksums (see `sidecar`) are put aside under such a name while their file is replaced. When their writer is killed
then, those that fit the file are put back, and a file never has stale ones. What a killed writer had in hand while it
exchanged two files (see `exchange`) is looked at too: a file that is neither of the two is never removed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, Self

from bloomcli.errors import SourceChanged, UnreadableError
from bloomcli.storage.local import hadoop_crc
from bloomcli.storage.local.exchange import (
    CannotExchange,
    Folder,
    Marks,
    beside,
    is_temporary,
    mark,
    marks_in,
    may_be_beside,
    rename_new,
)
from bloomcli.storage.local.locks import can_lock, lock, locked, open_for_writing
from bloomcli.storage.source import LocalSource

_CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)
_SWEEPING: Final = _CLOSE_ON_EXEC | getattr(os, "O_NONBLOCK", 0)
"""One who looks whether a file is open for writing (see `locks`) isn't waited for."""

_CAN_EXCHANGE: Final = hasattr(os, "O_PATH")
"""This is Linux."""


class Temporary:
    """A new file beside the final one, locked where the file system has locks; it is gone when the block ends, unless
    it has got its final name by then.

    What is to be removed is known before it is made, so that a stop at whatever instant (Ctrl-C) leaves nothing.
    """

    fd = -1
    """Its descriptor, once it is open."""

    _made = False
    _kept = False
    _process = 0
    _identity: tuple[int, int] | None = None
    _folder: Folder | None = None
    _held = ""
    """Its name while it is exchanged: then it may be somebody else's file that has it."""

    def __init__(self, final: Path, mode: int = 0o600) -> None:
        self.path = beside(final)
        self._final = final
        self._mode = mode
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def __del__(self) -> None:
        if self._process == os.getpid():  # a stop may come before __exit__ is called
            self._remove()

    def open(self) -> int:
        """Make it; gives its descriptor.

        Raises:
            OSError: the system refused.
        """
        while True:
            self._made = True
            try:
                self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC, self._mode)
            except OSError:
                self._made = False
                raise
            with contextlib.suppress(BlockingIOError, FileNotFoundError):  # somebody who sweeps has it, or had it
                lock(self.fd)
                info = os.fstat(self.fd)
                if os.path.samestat(info, self.path.stat()):
                    self._identity = info.st_dev, info.st_ino
                    return self.fd
            self._remove()
            self.path = beside(self._final)

    @property
    def placed(self) -> bool:
        """Whether it has its final name. Raises OSError where the system can't tell."""
        return self._identity is not None and identity(self._final) == self._identity

    def keep(self) -> None:
        """Leave it under its hidden name when the block ends, for the next to sweep."""
        self._kept = True

    def may_overtake(self, source: LocalSource) -> bool:
        """Whether a source may be replaced though another writer, who may hang, is at it too.

        It may where files can be exchanged: who comes later notices. Not if the other has given its file the name and
        hasn't seen yet what came out: that may be somebody else's, and has to be put back.
        """
        if not _CAN_EXCHANGE or not self._open_folder().may_exchange:
            return False
        new = mark(source.fingerprint)
        found = (marks_in(p.name) for p in temporaries(self._final.parent))
        return all(marks is None or marks.new != new for marks in found)

    def replace(self, source: LocalSource, *, alone: bool = True) -> None:
        """Take the final name from the file that the source has open, if that still has it, and is what it was.

        Args:
            source: the file that this one was made from.
            alone: no other writer has its lock.

        Raises:
            SourceChanged: it isn't. What has the name is left as it is.
            WriteError: that needs a lock here, and somebody else has it.
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
        held, final = beside(self._final, marks), self._final.name
        self._held = held.name
        os.rename(self.path, held)  # noqa: PTH104  as above
        try:
            found = folder.swap(held.name, final, marks.old)
            written = found == marks.old and open_for_writing(source.fileno())
            if written or (found == marks.old and folder.look(held.name) not in (None, found)):
                found = folder.swap(held.name, final, marks.new)
        except CannotExchange:
            if not alone:
                raise locked(self._final) from None
            source.check_unchanged()
            os.replace(held, self._final)  # noqa: PTH105
            return
        except FileNotFoundError:
            if folder.look(final) is not None:
                raise
            error = source.changed("was removed")
            if folder.look(held.name) not in (None, *marks):
                error.hint = f"a file that had its name before it was removed is kept as {held}"
            raise error from None
        except BaseException:  # stopped midway: what has the name has to be known before it gets checksums
            _settle(folder, held.name)
            raise
        folder.remove(held.name)
        if written:
            raise SourceChanged(
                "another process has the file open for writing",
                path=source.path,
                hint="try again when it has closed it. Nothing was written",
            )
        if found != marks.old:
            raise source.changed("changed")

    def _remove(self) -> None:
        if self._made and not self._kept:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        if self._folder is not None:
            if self._held:
                with contextlib.suppress(OSError, CannotExchange):
                    _settle(self._folder, self._held)
            self._folder.close()
            self._folder = None
        self._made = False
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)  # only now: the lock tells others that the file is being written


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has a name; None where there is none. Raises OSError where the system can't tell."""
    try:
        info = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return info.st_dev, info.st_ino


def _settle(folder: Folder, held: str, *, alone: bool = True) -> bool:
    """Remove what an exchange that was cut short has left. Gives whether that could be done.

    That is the new file or the old one. Somebody else's file, which came out in the place of the old one, gets its
    name back from the new one first.

    Args:
        folder: where it is.
        held: the temporary name, which tells what the files were.
        alone: the new file is the caller's own. If not, it has to be locked, as its writer may be at work.
    """
    marks, found = marks_in(held), folder.look(held)
    if marks is None or found is None:
        return False
    if found not in marks:
        there = [name for name in os.listdir(folder.path) if may_be_beside(held, name)]  # noqa: PTH208
        final = next((name for name in there if folder.look(name) == marks.new), None)
        if final is None:
            return False  # nothing tells which of them is newer
        fd = -1 if alone else os.open(folder.path / final, os.O_RDONLY | _SWEEPING)
        try:
            if not alone and not lock(fd):
                return False
            folder.swap(held, final, marks.new)
        finally:
            if fd >= 0:
                os.close(fd)
    folder.remove(held)
    return True


def temporaries(directory: Path) -> list[Path]:
    """Temporary files in a directory, being written or left behind; none where it can't be read."""
    try:
        return [Path(directory, name) for name in os.listdir(directory) if is_temporary(name)]  # noqa: PTH208  names do
    except OSError:
        return []


def sweep(directory: Path) -> list[Path]:
    """Remove temporary files in a directory whose writer was killed; gives what was removed.

    One that is being written is locked, and stays. Somebody else's file that its writer was about to put back gets
    its name back. Checksums that a file lacks and that fit it are put back.
    """
    removed: list[Path] = []
    if not can_lock():
        return removed  # nothing tells whether they are in use
    left = temporaries(directory)
    # checksums come last: what they may be for has its name then
    for path in sorted(left, key=lambda p: (marks_in(p.name) is None, p.name)):
        with contextlib.suppress(OSError, CannotExchange):
            if _sweep(path):
                removed.append(path)
    return removed


def _sweep(path: Path) -> bool:
    """Whether a temporary file was removed."""
    exchanged = marks_in(path.name) is not None
    try:
        fd = os.open(path, os.O_RDWR | _SWEEPING)
    except PermissionError:
        if not exchanged:
            raise
        fd = os.open(path, os.O_RDONLY | _SWEEPING)  # it may be of somebody who protects his files
    try:
        if not lock(fd):
            return False
        if exchanged:
            folder = Folder(path.parent)
            try:
                return _settle(folder, path.name, alone=False)
            finally:
                folder.close()
        if _put_back(path, fd):
            return False
        path.unlink()
        return True
    finally:
        os.close(fd)


def _put_back(left: Path, fd: int) -> bool:
    """Give checksums that were put aside their name again, where their file has none and they fit it."""
    if os.pread(fd, len(hadoop_crc.MAGIC), 0) != hadoop_crc.MAGIC:
        return False
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    for file in _without_checksums(left):
        try:
            with LocalSource(str(file), file) as source:
                if not hadoop_crc.fits(source, data):
                    continue
                final = hadoop_crc.sidecar_of(file)
                appear(left, final)
                try:
                    source.check_unchanged()
                except SourceChanged:  # replaced in this instant: its writer saw no checksums, and wrote none
                    final.unlink(missing_ok=True)
                return True
        except (UnreadableError, FileExistsError):
            continue
    return False


def _without_checksums(left: Path) -> list[Path]:
    """Files that the checksums may be for. Long names were cut: there may be several."""
    files = set(os.listdir(left.parent))  # noqa: PTH208
    return [
        left.with_name(name)
        for name in sorted(files)
        if may_be_beside(left.name, f".{name}.crc") and f".{name}.crc" not in files
    ]


def _same(one: Path, other: Path) -> bool:
    """Both are names of one file."""
    try:
        return os.path.samestat(one.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def appear(temporary: Path, final: Path) -> None:
    """Give a file its final name unless somebody else's has it.

    Raises:
        FileExistsError: there is such a file.
        OSError: the system refused.
    """
    try:
        os.link(temporary, final)  # fails if somebody created the name meanwhile, unlike a rename
    except OSError as error:
        if not _same(temporary, final):  # else a server did it, and its answer was lost, or said so of a second try
            if isinstance(error, FileExistsError):
                raise
            if not rename_new(temporary, final):  # the file system has no hard links
                os.replace(temporary, final)  # noqa: PTH105
            return
    temporary.unlink()
