"""Resolves the files, directories, globs and lists that a user names to files, in any store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bloomcli.errors import BloomError
from bloomcli.storage.base import Listed, Store, unlisted
from bloomcli.storage.os_errors import refused
from bloomcli.storage.registry import store_of


def is_dataset(paths: Sequence[str]) -> bool:
    """Whether the paths mean more than one named file: several, a directory, a glob.

    Raises:
        UnreadableError: the system can't tell.
    """
    if len(paths) != 1:
        return True
    (path,) = paths
    return store_of(path).is_dataset(path)


def expand(paths: Sequence[str]) -> list[Listed]:
    """The files that the paths mean, each once, in order of their paths within each.

    A file that is named but isn't there is listed all the same: it becomes a row with its error. Where there are
    other files, so does a directory that can't be read, a glob that matches nothing, a URI that can't be listed.

    Raises:
        UnreadableError: a glob matches nothing, or a directory can't be read, and there is nothing else.
        UnsupportedError: a URI's file system can't be listed here, and there is nothing else.
    """
    found: dict[str, Listed] = {}
    spell = spelling()
    for path in paths:
        try:
            with refused(path):
                for item in store_of(path).list(path):
                    found.setdefault(spell(item.path), item)
        except BloomError as error:
            found.setdefault(path, unlisted(path, error))
    problems = [item.problem for item in found.values() if item.problem is not None]
    if problems and len(problems) == len(found):
        raise problems[0]
    return list(found.values())


def spelling() -> Callable[[str], str]:
    """A function that gives one spelling for all paths of a file, in whatever store. It remembers directories: don't
    keep it."""
    of_store: dict[Store, Callable[[str], str]] = {}

    def spell(path: str) -> str:
        store = store_of(path)
        if store not in of_store:
            of_store[store] = store.spelling()
        return of_store[store](path)

    return spell
