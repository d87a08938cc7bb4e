"""Finds the files that match a pattern with a shell's wildcards; ``**`` stands for any number of directories.

The standard library's glob treats a directory that can't be read as if it were empty. This module reports it to the
caller, because a check that silently left out files would let them pass.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator
from typing import Final

from bloomcli.storage.names import has_wildcard
from bloomcli.storage.os_errors import NO_FILE, is_directory, path_exists

_ANY_DEPTH: Final = "**"

Failed = Callable[[OSError], None]
"""Called with the error of a directory that can't be read; its `filename` is the directory."""


def matches(pattern: str, failed: Failed) -> Iterator[str]:
    """The paths that match a pattern, in no order. They begin as the pattern does. A path may occur twice.

    Hidden names match only if the pattern spells their dot.

    Raises:
        UnreadableError: the system can't tell whether a file exists.
    """
    return (path for path in _matches(pattern, failed, directories=False) if path)


def _matches(pattern: str, failed: Failed, *, directories: bool) -> Iterator[str]:
    folder, name = os.path.split(pattern)
    if not has_wildcard(pattern):
        if path_exists(pattern) if name else is_directory(folder):
            yield pattern
        return
    within = iter((folder,))
    if folder != pattern and has_wildcard(folder):
        within = _matches(folder, failed, directories=True)
    for each in within:
        if name == _ANY_DEPTH:
            yield from _below(each, failed, directories=directories)
        elif has_wildcard(name):
            found = {n for n, leads_on in _names(each, failed) if leads_on or not directories}
            visible = found if _hidden(name) else (n for n in found if not _hidden(n))
            yield from (_join(each, n) for n in fnmatch.filter(visible, name))
        elif path_exists(_join(each, name)) if name else is_directory(each):
            yield _join(each, name)


def _below(folder: str, failed: Failed, *, directories: bool) -> Iterator[str]:
    """A directory, and the paths below it that aren't hidden."""
    if folder and not is_directory(folder):
        return
    yield _join(folder, "")
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        for name, leads_on in _names(here, failed):
            if not _hidden(name):
                if leads_on or not directories:
                    yield _join(here, name)
                if leads_on:
                    waiting.append(_join(here, name))


def _names(folder: str, failed: Failed) -> list[tuple[str, bool]]:
    """The names in a directory, each with whether it is a directory or a link to one."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            return [(entry.name, _leads_on(entry)) for entry in entries]
    except OSError as error:
        if error.errno not in NO_FILE:  # else a wildcard matched a name that isn't a directory, or was removed
            error.filename = folder or os.curdir
            failed(error)
        return []


def _leads_on(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return True  # reading it reports the error


def _hidden(name: str) -> bool:
    return name.startswith(".")


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name) if folder else name  # noqa: PTH118  text in, text out
