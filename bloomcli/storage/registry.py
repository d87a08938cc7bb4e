"""Finds the store of a path."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Final

from bloomcli.errors import UsageError
from bloomcli.model.paths import shown
from bloomcli.storage import os_errors
from bloomcli.storage.base import Source, Store, SweepResult
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.local.store import LocalStore
from bloomcli.storage.names import is_uri

LOCAL: Final = LocalStore()


@cache
def known_stores() -> dict[str, Store]:
    """The stores of URI schemes. They are imported for the first URI. pyarrow reads the URIs of other schemes."""
    from bloomcli.storage.arrow_store import ArrowStore
    from bloomcli.storage.remote_stores import AzureStore, GcsStore, HttpStore, S3Store

    return {
        **dict.fromkeys(("s3", "s3a", "s3n"), S3Store()),
        **dict.fromkeys(("az", "abfs", "abfss"), AzureStore()),
        **dict.fromkeys(("gs", "gcs"), GcsStore()),
        **dict.fromkeys(("https", "http"), HttpStore()),
        "": ArrowStore(),
    }


def store_of(path: str | os.PathLike[str]) -> Store:
    """Find the store of a path: the local file system, unless the path is a URI that no local file has as its name.

    Raises:
        UsageError: the URI's scheme has capital letters. By RFC 3986 they mean the same, but policies, indexes,
            baselines and other programs compare URIs as text.
    """
    text = os.fspath(path)
    if LOCAL.has(text):
        return LOCAL
    scheme, _, rest = text.partition("://")
    stores, lower = known_stores(), scheme.lower()
    if lower != scheme and (lower in stores or lower == "file"):
        right = shown(f"{lower}://{rest}")
        raise UsageError("the URI's scheme is in capital letters", path=text, hint=f"write it as {right}")
    return stores.get(scheme) or stores[""]


def system_name(path: str) -> bytes | None:
    """The bytes of a local path, for a system call; None for a URI, and for a name that no file can have."""
    if is_uri(path) or path.startswith("file:") or "\0" in path:
        return None
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        return None


def open_source(path: str | os.PathLike[str], end_bytes: int | None = None) -> Source:
    """Open a local path, a ``file:`` URI or a URI of another scheme for reading.

    Args:
        path: the file.
        end_bytes: number of bytes at its end that will be read; a remote store reads them with the request that
            opens the file; by default the store itself.

    Raises:
        UnreadableError: it doesn't exist, isn't a regular file, or may not be read.
        UnsupportedError: no store reads URIs of that scheme.
    """
    store, text = store_of(path), os.fspath(path)
    return store.open(text) if end_bytes is None else store.open_end(text, end_bytes)


def sweep_for(paths: Iterable[str]) -> SweepResult:
    """Remove the temporary files of killed runs from the directories of files to write. Returns the remaining ones.

    The paths are iterated over several times.
    """
    return SweepResult.joined(
        store.sweep_for(store.normal(path) for path in paths if store_of(path) is store)
        for store in dict.fromkeys(map(store_of, paths))
    )


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """The content of a small file that an option names, or its first `most` bytes.

    Raises:
        OSError, ValueError: a local file can't be read, as for `os_errors.read_file`.
        UnreadableError, UnsupportedError, UsageError: a file in another store can't be read.
    """
    text = os.fspath(path)
    store = store_of(text)
    if store is LOCAL:
        return os_errors.read_file(local_path(text), most)
    with store.open(text) as source:
        return source.read_at(0, source.size if most is None else min(source.size, most))


def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether a path exists, even as a broken link. Raises UnreadableError."""
    text = os.fspath(path)
    store = store_of(text)
    return os_errors.path_exists(local_path(text)) if store is LOCAL else store.kind(text) is not None


def write_file(path: str | os.PathLike[str], data: bytes, *, overwrite: bool) -> None:
    """Write a small file, such as a baseline, completely or not at all. Raises UsageError, WriteError."""
    store_of(path).write_file(os.fspath(path), data, overwrite=overwrite)


def preload_writing() -> None:
    """Import the modules that replace files before processes are forked, so that each process needn't."""
    from bloomcli.storage.local import atomic  # noqa: F401
