"""Reading ranges of a file, local or remote. Every range is checked against the file before it is read.

Local files are read with pread: no seek position is shared, so threads may read at once, and neither
pyarrow nor fsspec is imported. URIs go through pyarrow's file systems.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from bloomcli.errors import CorruptFile, SourceChanged, UnreadableError, UnsupportedError
from bloomcli.storage.listing import local_path

_HINTS: Final = {
    FileNotFoundError: "check the path",
    PermissionError: "check who may read it",
    IsADirectoryError: "name a file in it",
}


class Fingerprint(NamedTuple):
    """What tells that a file is still the one that was opened. Inode and device are 0 for remote files."""

    size: int
    mtime_ns: int
    inode: int = 0
    device: int = 0


class Source(ABC):
    """A file that is open for reading.

    Attributes:
        path: the file, as the user named it.
        size: bytes, when it was opened.
        local_path: where it lies, if on this machine.
    """

    path: str
    size: int
    local_path: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset` on.

        Raises:
            CorruptFile: the range isn't inside the file; nothing was allocated.
            SourceChanged: the file has become shorter since it was opened.
            UnreadableError: the system can't read it.
        """
        if offset < 0 or length < 0 or offset > self.size - length:
            raise CorruptFile(
                f"{length} bytes were looked for at {offset}, the file has {self.size}",
                path=self.path,
                offset=offset,
                hint="the file is cut off or damaged; get it from its source again",
            )
        data = self._read(offset, length) if length else b""
        if len(data) != length:
            raise self.changed("became shorter")
        return data

    def check_unchanged(self) -> None:
        """Raise SourceChanged if size, modification time or identity differ from when it was opened."""
        if self._current() != self.fingerprint:
            raise self.changed("changed")

    def changed(self, how: str) -> SourceChanged:
        """The error of a file that changed."""
        return SourceChanged(
            f"the file {how} while it was being worked on",
            path=self.path,
            hint="something else writes to it; try again when it is done. Nothing was written",
        )

    @property
    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """As it was when the file was opened."""

    @abstractmethod
    def _current(self) -> Fingerprint | None: ...

    @abstractmethod
    def _read(self, offset: int, length: int) -> bytes: ...

    @abstractmethod
    def close(self) -> None:
        """Release the file."""


class LocalSource(Source):
    """A regular file on this machine."""

    def __init__(self, path: str, local_path: Path) -> None:
        self.path = path
        self.local_path: Path = local_path
        try:
            # O_NONBLOCK: opening a FIFO must not wait for a writer; it means nothing for regular files
            self._fd = os.open(local_path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise _unreadable(path, error) from None
        except ValueError as error:  # a null byte
            raise UnreadableError(f"can't be read: {error}", path=path, hint="check the path") from None
        try:
            info = os.fstat(self._fd)
        except OSError as error:
            self.close()
            raise _unreadable(path, error) from None
        if not stat.S_ISREG(info.st_mode):
            os.close(self._fd)
            what = "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise UnreadableError(f"it is {what}", path=path, hint="name a regular file")
        self.size = info.st_size
        self._fingerprint = _fingerprint(info)

    @property
    def fingerprint(self) -> Fingerprint:
        """As it was when the file was opened."""
        return self._fingerprint

    def fileno(self) -> int:
        """The file descriptor, for copying."""
        return self._fd

    def _current(self) -> Fingerprint | None:
        try:
            if _fingerprint(os.fstat(self._fd)) != self._fingerprint:
                return None
            return _fingerprint(self.local_path.stat())  # another file may have been renamed over it
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def _read(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._fd, length, offset)
            while len(data) < length:  # the kernel reads at most 2 GiB at once, and may be interrupted
                more = os.pread(self._fd, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _unreadable(self.path, error) from None
        return data

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # it was only read, and what was read is known
                os.close(fd)


class RemoteSource(Source):
    """A file behind a URI, read through pyarrow's file systems."""

    def __init__(self, uri: str) -> None:
        import pyarrow as pa
        from pyarrow import fs

        self.path = uri
        try:
            self._fs, self._name = fs.FileSystem.from_uri(uri)
            info = self._fs.get_file_info(self._name)
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(2, "No such file", uri)
            if info.type != fs.FileType.File:
                raise UnreadableError("it is not a file", path=uri, hint="name a file")
            self._file: Any = self._fs.open_input_file(self._name)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise UnsupportedError(
                f"URIs of this kind can't be read here ({error})",
                path=uri,
                hint="copy the file to this machine, or mount it",
            ) from None
        except OSError as error:
            raise _unreadable(uri, error) from None
        self._lock = threading.Lock()
        self.size = info.size
        self._fingerprint = Fingerprint(size=info.size, mtime_ns=info.mtime_ns or 0)

    @property
    def fingerprint(self) -> Fingerprint:
        """As it was when the file was opened."""
        return self._fingerprint

    def _current(self) -> Fingerprint | None:
        info = self._fs.get_file_info(self._name)
        return Fingerprint(size=info.size, mtime_ns=info.mtime_ns or 0)

    def _read(self, offset: int, length: int) -> bytes:
        try:
            with self._lock:
                return bytes(self._file.read_at(length, offset))
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a local path, a ``file:`` URI or a URI of another scheme for reading.

    Raises:
        UnreadableError: it isn't there, isn't a regular file, or may not be read.
        UnsupportedError: nothing here can read URIs of that kind.
    """
    text = os.fspath(path)
    scheme = text.partition("://")[0] if "://" in text else ""
    if text.startswith("file:"):
        local = local_path(text)
        if local == text:
            host = text.removeprefix("file://").partition("/")[0]
            raise UnsupportedError(f"a file: URI of another machine, {host}", path=text)
        return LocalSource(text, Path(local))
    if scheme.isidentifier() and len(scheme) > 1 and not os.path.exists(text):  # noqa: PTH110  unlike Path.exists it never raises
        return RemoteSource(text)
    return LocalSource(text, Path(text))


def _fingerprint(info: os.stat_result) -> Fingerprint:
    return Fingerprint(size=info.st_size, mtime_ns=info.st_mtime_ns, inode=info.st_ino, device=info.st_dev)


def _unreadable(path: str, error: OSError) -> UnreadableError:
    hint = next((text for kind, text in _HINTS.items() if isinstance(error, kind)), None)
    reason = (error.strerror or str(error).partition("\n")[0]).lower()
    return UnreadableError(f"can't be read: {reason}", path=path, hint=hint)
