"""Stores for the suite of ``tests/storage/suite``: a store to test, and access to its files without it.

A new store gets a subclass of `Place` and an entry in `PLACES`.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from bloomcli.storage.arrow_store import ArrowStore
from bloomcli.storage.base import KeptRange, Pieces, Store
from bloomcli.storage.local import temporary
from bloomcli.storage.registry import LOCAL
from support import checksums
from support.object_stores import SCHEME, MemoryObjects

_ROOT: Final = Path(__file__).parents[2]

_KILLED_MIDWAY: Final = """
import os, signal, sys
from bloomcli.storage.base import KeptRange
from bloomcli.storage.registry import store_of

path = sys.argv[1]
store = store_of(path)

def pieces(size):
    yield KeptRange(0, size)
    yield b"new bytes"
    os.kill(os.getpid(), signal.SIGKILL)

with store.open(path) as source:
    store.replace(store.normal(path), pieces(source.size), source=source, overwrite=True)
"""


class Place(ABC):
    """A directory in a store. Its methods access the files as other programs do, without `store`."""

    store: Store
    unfinished_shows: bool = True
    """Whether other programs see in the store that a replacement is under way, while its pieces are made."""
    notices_equal_bytes: bool = True
    """Whether a file that is rewritten with the same bytes counts as changed: not if tags are hashes of contents."""
    reports_killed_runs: bool = False
    """A sweep removes nothing: it reports the commands that end the uploads of killed runs, because nothing shows
    whose they are."""

    @abstractmethod
    def path(self, name: str = "") -> str:
        """The path of a file, as a user writes it; of the directory for an empty name."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write a file as another program does: a new file gets the name."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """A file's content; None if it doesn't exist."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def names(self) -> set[str]:
        """All names in the directory, including those that listings omit: temporary files, unfinished uploads."""

    def leave_by_killed_run(self, name: str) -> None:
        """Start a run that is killed while it replaces a file in place."""
        command = [sys.executable, "-c", _KILLED_MIDWAY, self.path(name)]
        done = subprocess.run(command, cwd=_ROOT, env=os.environ | {"PYTHONPATH": str(_ROOT)}, check=False)
        assert done.returncode < 0, "it was to be killed"

    def end_upload(self, remark: str) -> None:
        """End an upload by the command in a remark of a sweep."""
        raise NotImplementedError

    def begin_run(self) -> None:
        """Begin another command: the store forgets what it has remembered."""
        self.store.sweep_for([self.store.normal(self.path("any"))])


class LocalPlace(Place):
    """A directory of this machine."""

    store: Store = LOCAL

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str = "") -> str:
        return f"{self.root}/{name}" if name else str(self.root)

    def put(self, name: str, data: bytes) -> None:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
        new.write_bytes(data)
        new.replace(target)

    def get(self, name: str) -> bytes | None:
        target = self.root / name
        return target.read_bytes() if target.is_file() else None

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def names(self) -> set[str]:
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if not p.is_dir()}


class PlaceWithChecksums(LocalPlace):
    """A directory that Hadoop's local file system writes to: each file has its checksum file."""

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        self._sums(name).write_bytes(checksums.checksums(data, 512))

    def get(self, name: str) -> bytes | None:
        data, sums = super().get(name), self._sums(name)
        if data is not None and sums.exists():
            assert sums.read_bytes() == checksums.checksums(data, 512), "Hadoop would refuse the file"
        return data

    def remove(self, name: str) -> None:
        super().remove(name)
        self._sums(name).unlink(missing_ok=True)  # a new file has none

    def names(self) -> set[str]:
        found = super().names()
        return found - {str(self._sums(name).relative_to(self.root)) for name in found}

    def _sums(self, name: str) -> Path:
        target = self.root / name
        return target.with_name(f".{target.name}.crc")


class FileUriPlace(LocalPlace):
    """A directory of this machine, as Spark and Hadoop write its path."""

    def path(self, name: str = "") -> str:
        return self.root.as_uri() + (f"/{name}" if name else "")


class ArrowPlace(FileUriPlace):
    """Files read by pyarrow's file systems: here by the local one, which needs no server."""

    store: Store = ArrowStore()


class MemoryPlace(Place):
    """A directory in a store that behaves like an object store."""

    def __init__(self) -> None:
        self.memory = MemoryObjects()
        self.store = self.memory

    def path(self, name: str = "") -> str:
        return f"{SCHEME}://bucket/lake" + (f"/{name}" if name else "")

    def put(self, name: str, data: bytes) -> None:
        self.memory.client.store(self.path(name), data)

    def get(self, name: str) -> bytes | None:
        found = self.memory.client.objects.get(self.path(name))
        return None if found is None else found.data

    def remove(self, name: str) -> None:
        del self.memory.client.objects[self.path(name)]

    def names(self) -> set[str]:
        uploads = {f"upload {number}" for number in self.memory.client.uploads}
        return {name.removeprefix(self.path() + "/") for name in self.memory.client.objects} | uploads

    def leave_by_killed_run(self, name: str) -> None:
        self.memory.client.begin(self.path(name), alive=False)


def append(
    place: Place,
    name: str,
    tail: bytes,
    *,
    cut: int = 0,
    target: str | None = None,
    overwrite: bool = True,
    during: Callable[[], object] = lambda: None,
) -> None:
    """Replace the last `cut` bytes of a file by a tail, or write `target`, a name or a URI, from it. `during` is
    called before the tail is written."""

    def pieces(size: int) -> Pieces:
        yield KeptRange(0, size - cut)
        during()
        yield tail

    path = target if target is not None and "://" in target else place.path(target or name)
    with place.store.open(place.path(name)) as source:
        place.store.replace(place.store.normal(path), pieces(source.size), source=source, overwrite=overwrite)


def _without_exchange(root: Path, patched: pytest.MonkeyPatch) -> Place:
    """A file system on which two files can't be exchanged."""
    patched.setattr(temporary, "file_system", lambda _: "overlay")
    return LocalPlace(root)


def _azurite(_: Path, patched: pytest.MonkeyPatch) -> Place:
    """A container of Azurite."""
    from support.azure_place import AzurePlace
    from support.servers import running

    return AzurePlace(running.azurite(), patched)


def _in_s3(**options: Any) -> Callable[[Path, pytest.MonkeyPatch], Place]:
    def make(root: Path, patched: pytest.MonkeyPatch) -> Place:
        from support.s3_place import s3

        return s3(**options)(root, patched)

    return make


def _fake_gcs(_: Path, patched: pytest.MonkeyPatch) -> Place:
    """A bucket of fake-gcs-server, behind a proxy that checks preconditions."""
    from support.gcs_place import GcsPlace, guarded

    return GcsPlace(guarded().url, patched)


def _https(patched: pytest.MonkeyPatch) -> Place:
    """A web server of this process."""
    from support.http_place import HttpPlace

    return HttpPlace(patched)


PLACES: Final[dict[str, Callable[[Path, pytest.MonkeyPatch], Place]]] = {
    "local": lambda root, _: LocalPlace(root),
    "local-with-checksums": lambda root, _: PlaceWithChecksums(root),
    "local-without-exchange": _without_exchange,
    "file-uri": lambda root, _: FileUriPlace(root),
    "object-store": lambda _, __: MemoryPlace(),
    "azurite": _azurite,
    "fake-gcs-server": _fake_gcs,
    "https": lambda _, patched: _https(patched),
    "pyarrow": lambda root, _: ArrowPlace(root),
    "s3": _in_s3(),
    "s3-in-parts": _in_s3(put_most=0),
}
"""The stores that the suite runs on, made for an empty directory."""

READ_ONLY: Final = frozenset({"https", "pyarrow"})
"""The stores whose files can't be changed."""

UNLISTED: Final = frozenset({"https"})
"""The stores without directories."""

WRITE_DIFFERENTLY: Final = frozenset({"local-with-checksums", "local-without-exchange", "s3-in-parts"})
"""The stores that read as another one does."""

SERVED: Final = {"azurite": "azurite", "fake-gcs-server": "fake-gcs-server", "s3": "minio", "s3-in-parts": "minio"}
"""The stores that start servers, each with the server to install."""

READ_WITHOUT: Final = frozenset({"s3"})
"""The stores that can be read without that server: by moto, which ignores preconditions, so nothing is written."""
