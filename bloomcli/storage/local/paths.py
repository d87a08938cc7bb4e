"""Local paths: ``file:`` URIs, the names that links give a file, and shell wildcards.

``**`` stands for any number of directories. The standard library's glob treats a directory that can't be read as if
it were empty. This module reports it to the caller, because a check that silently left out files would let them pass.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from bloomcli.storage.names import has_wildcard
from bloomcli.storage.os_errors import NO_FILE, is_directory, is_link, path_exists

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
            names = {n for n, leads_on in _names(each, failed) if leads_on or not directories}
            visible = names if _hidden(name) else (n for n in names if not _hidden(n))
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


_MOST_NAMES: Final = 40
"""Maximum number of names of one file; Linux follows as many links."""


def local_path(path: str) -> str:
    """Return the path of a ``file:`` URI of this machine, and any other text unchanged.

    As in Hadoop's ``Path``, everything after the scheme is the path: ``#`` and ``?`` are part of it, and so is
    ``%3A``, which Spark writes into the names of partitions. If this path doesn't exist, but the percent-decoded one
    does, the latter is returned, because other programs encode URIs.
    """
    if not path.startswith("file:"):
        return path
    rest = path.removeprefix("file:")
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            return path
        rest = slash + below
    decoded = unquote(rest)
    return decoded if decoded != rest and not _is_there(rest) and _is_there(decoded) else rest


def _is_there(path: str) -> bool:
    """Whether a path exists or, if it is a pattern, matches a file."""
    return path_exists(path) or (has_wildcard(path) and any(matches(path, lambda _: None)))


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern: it has wildcards, and no file has it as its name. Raises UnreadableError."""
    return has_wildcard(path) and not path_exists(path)


def names_of(path: Path) -> Iterator[Path]:
    """The absolute paths of a file: the given one, one for each link in it that is followed, and the resolved one."""
    waiting = [Path(os.path.abspath(path))]  # noqa: PTH100  Path.absolute leaves .. in
    names: set[Path] = set()
    while waiting and len(names) < _MOST_NAMES:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        yield name
        for part in (name, *name.parents):
            if is_link(part):
                target = os.path.normpath(part.parent.resolve() / part.readlink())
                waiting.append(Path(target, name.relative_to(part)))
    yield path.resolve()
