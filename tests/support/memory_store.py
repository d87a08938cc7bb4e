"""A store in this process's memory that behaves like an object store.

Directories exist only in names, an object is replaced as a whole or not at all, each content has a generation that
preconditions compare, and an incomplete upload remains until it is ended.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError
from bloomcli.storage.base import (
    STEP_BYTES,
    FileEntry,
    Fingerprint,
    KeptRange,
    Kind,
    ManagedTable,
    PlacedBytes,
    Replacement,
    Source,
    Status,
    Store,
    SweepResult,
    root_of_mark,
)
from bloomcli.storage.names import has_wildcard, is_hidden

SCHEME: Final = "memory"


class Object(NamedTuple):
    """An object's content."""

    data: bytes
    mtime_ns: int
    generation: int


class Upload(NamedTuple):
    """An upload that isn't completed."""

    path: str
    alive: bool
    """Whether its process is running."""


class MemorySource(Source):
    """An open object. It can't be read after it is replaced."""

    read_ahead_bytes = 1 << 20

    def __init__(self, store: MemoryStore, path: str, found: Object) -> None:
        self.path, self.size = path, len(found.data)
        self._store, self._found = store, found

    @property
    def fingerprint(self) -> Fingerprint:
        """Its size, time and generation."""
        return _fingerprint(self._found)

    def _current(self) -> Fingerprint | None:
        found = self._store.objects.get(self.path, self._found if self.path.endswith("?upload") else None)
        return None if found is None else _fingerprint(found)

    def _read(self, offset: int, length: int) -> bytes:
        self.check_unchanged()
        return self._found.data[offset : offset + length]

    def close(self) -> None:
        """Do nothing: no resource is held."""


class MemoryStore(Store):
    """Objects by their URIs."""

    remote = True

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.uploads: dict[int, Upload] = {}
        self._lock = threading.RLock()
        self._number = itertools.count(1)

    def put(self, path: str, data: bytes) -> None:
        """Write an object, or replace it."""
        self.objects[path] = Object(data, time.time_ns(), next(self._number))

    def begin(self, path: str, *, alive: bool = True) -> int:
        """Begin an upload. Returns its number."""
        number = next(self._number)
        self.uploads[number] = Upload(path, alive)
        return number

    def open(self, path: str) -> Source:
        """Open an object."""
        found = self.objects.get(path)
        if found is not None:
            return MemorySource(self, path, found)
        if self._below(path):
            raise UnreadableError("it is a directory", path=path, hint="name an object")
        raise UnreadableError("can't be read: no such file", path=path, hint="check the path")

    def status(self, path: str) -> Status | None:
        """The status of an object, or of a directory in objects' names."""
        found = self.objects.get(path)
        if found is not None:
            return Status(Kind.FILE, len(found.data), found.mtime_ns)
        return Status(Kind.DIRECTORY, 0, 0) if self._below(path) else None

    def list(self, path: str, tables: set[ManagedTable] | None = None) -> Iterator[FileEntry]:
        """An object, or the objects below a directory."""
        if has_wildcard(path):
            raise UnsupportedError("patterns can't be listed", path=path, hint="name the directory")
        below = self._below(path)
        if tables is not None:
            tables.update(table for name in below if (table := root_of_mark(name)) is not None)
        if not below:
            found = self.objects.get(path)
            yield FileEntry(path, -1 if found is None else len(found.data), path.rpartition("/")[2], walked=False)
        for name in sorted(below):
            relative = name.removeprefix(path.rstrip("/") + "/")
            if not any(map(is_hidden, relative.split("/"))):
                yield FileEntry(name, len(self.objects[name].data), relative, walked=True)

    def is_dataset(self, path: str) -> bool:
        """Whether a path is a pattern or ends with a slash."""
        return has_wildcard(path) or path.endswith("/")

    def directories_above(self, path: str, levels: int) -> Iterator[str]:
        """The directories that contain the path, up to the bucket."""
        for _ in range(levels):
            path = self.directory(path)
            if path.endswith(":/"):
                return
            yield path

    def names(self, directory: str) -> Sequence[str]:
        """The next parts of the names below."""
        return [*{name.removeprefix(directory + "/").split("/")[0] for name in self._below(directory)}]

    def destination(self, output: str, path: str) -> str:
        """The output, if it can be an object's name."""
        if output == path:
            raise UsageError("the output is the input", path=path, hint="--in-place replaces an object safely")
        if output.endswith("/"):
            raise UsageError(f"the output {output!r} names a directory", path=path, hint="name the object")
        if self._below(output):
            raise UsageError(f"the output {output!r} is a directory", path=path, hint="name the object")
        return output

    def _replace(self, wanted: Replacement) -> int:
        """Upload the pieces, and complete the upload if its preconditions hold."""
        path, overwrite = wanted.path, wanted.overwrite
        self._check_absent(path, overwrite)
        upload = self.begin(path)
        try:
            data = _content(wanted)
            new = Object(data, time.time_ns(), next(self._number))
            if wanted.verify is not None:
                wanted.verify(MemorySource(self, f"{path}?upload", new))
            with self._lock:
                self._check_absent(path, overwrite)
                wanted.source.check_unchanged()
                self.objects[path] = new
        finally:
            del self.uploads[upload]
        return len(data)

    def write_file(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """Put an object."""
        with self._lock:
            self._check_absent(path, overwrite)
            self.put(path, data)

    def sweep_for(self, paths: Iterable[str]) -> SweepResult:
        """End the uploads of dead processes."""
        directories = set(map(self.directory, paths))
        here = {n: u for n, u in self.uploads.items() if self.directory(u.path) in directories}
        dead = [n for n, upload in here.items() if not upload.alive]
        for number in dead:
            del self.uploads[number]
        return SweepResult([here[n].path for n in dead], [u.path for u in here.values() if u.alive])

    def _below(self, path: str) -> list[str]:
        return [name for name in self.objects if name.startswith(path.rstrip("/") + "/")]

    def _check_absent(self, path: str, overwrite: bool) -> None:
        if not overwrite and path in self.objects:
            raise UsageError("the output exists already", path=path, hint="--overwrite replaces it")


def _content(wanted: Replacement) -> bytes:
    new, placed = bytearray(), dict[int, bytes]()
    with closing(wanted.pieces):
        for piece in wanted.pieces:
            if isinstance(piece, PlacedBytes):
                placed[piece.offset] = bytes(piece.data)
                continue
            if isinstance(piece, KeptRange):
                end = piece.offset + piece.length
                for at in range(piece.offset, end, STEP_BYTES):
                    if wanted.cancelled is not None and wanted.cancelled():
                        break
                    step = min(STEP_BYTES, end - at)
                    new += wanted.source.read_at(at, step)
                    if wanted.progress is not None:
                        wanted.progress(step)
                continue
            while (ahead := placed.pop(len(new), None)) is not None:
                new += ahead
            new += piece
    return bytes(new)


def _fingerprint(found: Object) -> Fingerprint:
    return Fingerprint(size=len(found.data), mtime_ns=found.mtime_ns, inode=found.generation)
