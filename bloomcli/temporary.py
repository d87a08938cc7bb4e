"""Files that are being written under a name that nobody looks for, and what killed writers left of them.

A writer holds its file's lock until the file has its final name, so that others can tell whether it is in use: a lock
ends with its process, however that ends. Between a file's creation and its lock somebody else may take it for one
that was left behind; its creator notices, and begins again under another name.

Checksums (see `sidecar`) are put aside under such a name while their file is replaced. When their writer is killed
then, those that fit the file are put back, and a file never has stale ones.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

from bloomcli import sidecar
from bloomcli.errors import SourceChanged, UnreadableError
from bloomcli.source import LocalSource

_fcntl: Final[Any] = import_module("fcntl") if os.name == "posix" else None
_CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)
_NAME_CHARACTERS: Final = 48
_TEMPORARY: Final = re.compile(r"\.(.{1,120})\.bloom-[0-9a-f]{12}\.tmp", re.DOTALL)
"""The names that `beside` gives."""


def beside(final: Path) -> Path:
    """A hidden name that nobody else has; a long one is cut, as names end at 255 bytes."""
    return final.with_name(f".{final.name[:_NAME_CHARACTERS]}.bloom-{secrets.token_hex(6)}.tmp")


class Temporary:
    """A new file beside the final one, locked where the file system has locks; it is gone when the block ends, unless
    it has got its final name by then.

    What is to be removed is known before it is made, so that a stop at whatever instant (Ctrl-C) leaves nothing.
    """

    def __init__(self, final: Path, mode: int = 0o600) -> None:
        self.path = beside(final)
        self.fd = -1
        self._final = final
        self._mode = mode
        self._made = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
                if os.path.samestat(os.fstat(self.fd), self.path.stat()):
                    return self.fd
            self._remove()
            self.path = beside(self._final)

    def _remove(self) -> None:
        if self._made:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self._made = False
        if self.fd >= 0:
            os.close(self.fd)  # only now: the lock tells others that the file is being written
        self.fd = -1


def lock(fd: int) -> bool:
    """Take a file's lock. False: the file system has none, and nobody can tell who works on it.

    Raises:
        BlockingIOError: somebody else has it.
    """
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def temporaries(directory: Path) -> list[Path]:
    """Temporary files in a directory, being written or left behind; none where it can't be read."""
    try:
        with os.scandir(directory) as entries:
            return [Path(e.path) for e in entries if _TEMPORARY.fullmatch(e.name)]
    except OSError:
        return []


def sweep(directory: Path) -> list[Path]:
    """Remove temporary files in a directory whose writer was killed; gives what was removed.

    One that is being written is locked, and stays. Checksums that a file lacks and that fit it are put back.
    """
    removed: list[Path] = []
    if _fcntl is None:
        return removed  # nothing tells whether they are in use
    for path in temporaries(directory):
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDWR | _CLOSE_ON_EXEC)
            try:
                if lock(fd) and not _put_back(path, fd):
                    path.unlink()
                    removed.append(path)
            finally:
                os.close(fd)
    return removed


def _put_back(left: Path, fd: int) -> bool:
    """Give checksums that were put aside their name again, where their file has none and they fit it."""
    if os.pread(fd, len(sidecar.MAGIC), 0) != sidecar.MAGIC:
        return False
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    for file in _without_checksums(left):
        try:
            with LocalSource(str(file), file) as source:
                if not sidecar.fits(source, data):
                    continue
                final = sidecar.sidecar_of(file)
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
    match = _TEMPORARY.fullmatch(left.name)
    start = match[1] if match is not None else ""
    with os.scandir(left.parent) as entries:
        files = {e.name for e in entries}
    return [
        left.with_name(name)
        for name in sorted(files)
        if f".{name}.crc"[:_NAME_CHARACTERS] == start and f".{name}.crc" not in files
    ]


def appear(temporary: Path, final: Path) -> None:
    """Give a file its final name unless somebody else's has it.

    Raises:
        FileExistsError: there is such a file.
        OSError: the system refused.
    """
    try:
        os.link(temporary, final)  # fails if somebody created the name meanwhile, unlike a rename
    except FileExistsError:
        raise
    except OSError:
        os.replace(temporary, final)  # noqa: PTH105  the file system has no hard links
    else:
        temporary.unlink()
