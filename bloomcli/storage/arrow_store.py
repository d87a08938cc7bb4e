"""Reads and lists files at URIs through pyarrow's file systems, such as HDFS. It doesn't change files.

Imports pyarrow when the first URI is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.model.paths import without_secrets
from bloomcli.storage.base import (
    FileEntry,
    Fingerprint,
    Kind,
    ManagedTable,
    ReadOnlyStore,
    Source,
    root_of_mark,
)
from bloomcli.storage.names import has_wildcard, is_hidden
from bloomcli.storage.os_errors import cannot_read

if TYPE_CHECKING:
    from pyarrow import fs

_READ_AHEAD_BYTES: Final = 4 << 20
"""Bytes per read: each read is a request, which takes long however little it reads."""


class ArrowSource(Source):
    """A file at a URI."""

    read_ahead_bytes = _READ_AHEAD_BYTES

    def __init__(self, uri: str) -> None:
        from pyarrow import fs

        self.path = uri
        self._fs, self._name = _file_system(uri)
        try:
            info = self._fs.get_file_info(self._name)
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(2, "No such file", uri)
            if info.type != fs.FileType.File:
                raise UnreadableError("it is not a file", path=uri, hint="name a file")
            self._file: Any = self._fs.open_input_file(self._name)
        except (ValueError, NotImplementedError) as error:
            raise _not_here(uri, error) from None
        except OSError as error:
            raise cannot_read(uri, error) from None
        self._lock = threading.Lock()
        self.size = info.size
        self.fingerprint = _fingerprint(info)

    def _current(self) -> Fingerprint | None:
        return _fingerprint(self._fs.get_file_info(self._name))

    def _read(self, offset: int, length: int) -> bytes:
        try:
            with self._lock:
                return bytes(self._file.read_at(length, offset))
        except OSError as error:
            raise cannot_read(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ArrowStore(ReadOnlyStore):
    """The store of URIs that only pyarrow's file systems read."""

    remote = True

    def open(self, path: str) -> Source:
        """Open a URI. Raises UnreadableError, UnsupportedError."""
        return ArrowSource(path)

    def kind(self, path: str) -> Kind | None:
        """The type of a URI; None if it doesn't exist. Raises UnreadableError, UnsupportedError."""
        kinds = {"NotFound": None, "File": Kind.FILE, "Directory": Kind.DIRECTORY}
        return kinds.get(_info(path).type.name, Kind.OTHER)

    def fingerprint(self, path: str) -> Fingerprint | None:
        """A file's size and change time; None if it doesn't exist. Raises UnreadableError, UnsupportedError."""
        info = _info(path)
        return None if info.type.name == "NotFound" else _fingerprint(info)

    def is_dataset(self, path: str) -> bool:
        """Whether a URI has wildcards or ends with a slash. Sends no request to a server."""
        return has_wildcard(path) or path.endswith("/")

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """The file itself, or the files below a directory. Raises UnsupportedError, also for patterns."""
        import pyarrow as pa
        from pyarrow import fs

        if has_wildcard(path):
            raise UnsupportedError("patterns in URIs can't be listed", path=path, hint="name the directory")
        try:
            system, name = fs.FileSystem.from_uri(path)
            info = system.get_file_info(name)
            if info.type != fs.FileType.Directory:
                size = -1 if info.size is None else info.size
                yield FileEntry(path=path, size=size, relative=PurePosixPath(name).name, walked=False)
                return
            below = system.get_file_info(fs.FileSelector(name, recursive=True))
        except (pa.ArrowException, OSError, ValueError, ImportError) as error:
            reason = without_secrets(str(error), path).partition("\n")[
                0
            ]  # libhdfs adds the list of directories that it searched for Java
            raise UnsupportedError(
                f"can't be listed here ({reason})", path=path, hint="mount it, or copy it"
            ) from None
        for item in sorted(below, key=lambda i: i.path):
            relative = PurePosixPath(item.path).relative_to(name)
            if tables is not None and (table := root_of_mark(self.join(path, str(relative)))) is not None:
                tables.add(table)
            if item.type == fs.FileType.File and not any(map(is_hidden, relative.parts)):
                yield FileEntry(
                    path=self.join(path, str(relative)), size=item.size, relative=str(relative), walked=True
                )


def _info(uri: str) -> fs.FileInfo:
    """The information on a URI. Raises UnsupportedError, UnreadableError."""
    system, name = _file_system(uri)
    try:
        return system.get_file_info(name)
    except OSError as error:
        raise cannot_read(uri, error) from None


def _fingerprint(info: fs.FileInfo) -> Fingerprint:
    return Fingerprint(size=info.size or 0, mtime_ns=info.mtime_ns or 0)


def _file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and the file's path in it. Raises UnsupportedError, UnreadableError."""
    from pyarrow import fs

    try:
        system, name = fs.FileSystem.from_uri(uri)
    except (ValueError, NotImplementedError, ImportError) as error:  # pyarrow's errors are subclasses of these
        raise _not_here(uri, error) from None
    except OSError as error:
        raise cannot_read(uri, error) from None
    return system, name


def _not_here(uri: str, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"URIs of this kind can't be read here ({without_secrets(str(error), uri)})",
        path=uri,
        hint="bloom reads s3://, abfss://, gs:// and https:// URIs; copy other files to this machine, or mount them",
    )
