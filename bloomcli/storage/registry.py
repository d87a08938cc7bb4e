"""Finds the store of a path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.storage.arrow_store import ArrowStore
from bloomcli.storage.base import Source, Store
from bloomcli.storage.local.store import LocalStore

LOCAL: Final = LocalStore()
_ARROW: Final = ArrowStore()

BY_SCHEME: Final[dict[str, Store]] = {}
"""The stores of URIs with these schemes. Those of other schemes are what pyarrow reads."""


def store_of(path: str | os.PathLike[str]) -> Store:
    """The store of a path: the local file system, unless it is a URI and no local file has such a name."""
    text = os.fspath(path)
    return LOCAL if LOCAL.has(text) else BY_SCHEME.get(text.partition("://")[0], _ARROW)


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a local path, a ``file:`` URI or a URI of another scheme for reading.

    Raises:
        UnreadableError: it doesn't exist, isn't a regular file, or may not be read.
        UnsupportedError: nothing here can read URIs of that kind.
    """
    return store_of(path).open(os.fspath(path))


def sweep_for(paths: Iterable[str]) -> Sequence[str]:
    """Remove what killed runs have left in the directories of files to write, each directory once.

    Returns the remaining temporary files: those of running writers, and those of unknown origin.
    """
    directories: dict[tuple[Store, str], str] = {}
    for path in paths:
        store = store_of(path)
        normal = store.normal(path)
        directories.setdefault((store, store.directory(normal)), normal)
    return [name for (store, _), path in directories.items() for name in store.sweep(path).left]


def write_file(path: str | os.PathLike[str], data: bytes, *, overwrite: bool) -> None:
    """Write a small file of bloom's own, such as a baseline, whole or not at all. Raises UsageError, WriteError."""
    store_of(path).write_file(os.fspath(path), data, overwrite=overwrite)


def preload_writing() -> None:
    """Import what replaces files: once, before processes are forked that each would have to."""
    from bloomcli.storage.local import atomic  # noqa: F401
