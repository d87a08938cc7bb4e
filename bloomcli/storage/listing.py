"""Resolves the files, directories and globs that a user names to files, in any store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from bloomcli.errors import BloomError, UsageError
from bloomcli.model.paths import shown
from bloomcli.storage.base import FileEntry, ManagedTable, Store, failed_entry
from bloomcli.storage.names import has_wildcard
from bloomcli.storage.os_errors import convert_os_errors
from bloomcli.storage.registry import store_of
from bloomcli.words import plural

_EMPTY: Final = "a directory without files"
"""Why a directory that is named together with other paths is skipped."""
_NAMED: Final = 3
"""Maximum number of directories without files that an error names."""


def is_dataset(paths: Sequence[str]) -> bool:
    """Whether the paths are several, or a directory or glob, not a single file.

    Raises:
        UnreadableError: the system can't tell.
    """
    if len(paths) != 1:
        return True
    (path,) = paths
    return store_of(path).is_dataset(path)


def expand(paths: Sequence[str], tables: set[ManagedTable] | None = None) -> Sequence[FileEntry]:
    """The files of the paths, each once, sorted within each path.

    `tables` gets the tables that listings of stores come across (`Store.list`).

    A file that is named but doesn't exist is listed too: the command shows a row with its error. If other files
    exist, a directory that can't be read, a glob without matches and a URI that can't be listed also become rows with
    errors, and a directory without files becomes a skipped row, which shows that the command did nothing in it.

    Raises:
        UnreadableError: a glob has no matches or a directory can't be read, and no other file exists.
        UnsupportedError: a URI's file system can't be listed, and no other file exists.
    """
    items = list(_each_once(paths, tables))
    if any(item.problem is None and item.skip_reason != _EMPTY for item in items):  # usually the first one is a file
        return items
    for item in items:
        if item.problem is not None:
            raise item.problem
    return []


def no_files(paths: Sequence[str]) -> UsageError:
    """The error for directories without files.

    Args:
        paths: the directories, as they were named; empty if the files come from a table.
    """
    hint = "files and directories whose names start with . or _ are left out; a file that is named is taken"
    if not paths:
        return UsageError("there are no files", hint=hint)
    if len(paths) == 1:
        return UsageError("the directory holds no files", path=paths[0], hint=hint)
    named = ", ".join(shown(path) for path in paths[:_NAMED])
    more = f" and {plural(len(paths) - _NAMED, 'other')}" if len(paths) > _NAMED else ""
    return UsageError(f"the directories hold no files: {named}{more}", hint=hint)


def _each_once(paths: Sequence[str], tables: set[ManagedTable] | None) -> Iterator[FileEntry]:
    """The first entry of each file, under any of its paths, and the entries of paths that can't be listed."""
    spell, names = spelling(), set[str]()

    def is_new(name: str) -> bool:
        count = len(names)
        names.add(name)
        return len(names) > count

    for path in paths:
        try:
            with convert_os_errors(path):
                store = store_of(path)
                # a single path lists no file twice, unless it is a local pattern: no need to remember names
                surely = len(paths) == 1 and (store.remote or not has_wildcard(path))
                if surely:
                    yield from store.list(path, tables)
                    continue
                nothing = len(paths) > 1
                for item in store.list(path, tables):
                    nothing = False
                    if is_new(spell(item.path)):
                        yield item
                if nothing and is_new(path):
                    name = PurePath(path).name
                    yield FileEntry(path=path, size=-1, relative=name, walked=False, skip_reason=_EMPTY)
        except BloomError as error:
            if is_new(path):
                yield failed_entry(path, error)


def spelling() -> Callable[[str], str]:
    """A function that maps all paths of a file to one spelling, in any store.

    It caches directories, so use it for one listing only.
    """
    of_store: dict[Store, Callable[[str], str]] = {}

    def spell(path: str) -> str:
        store = store_of(path)
        if store not in of_store:
            of_store[store] = store.spelling()
        return of_store[store](path)

    return spell
