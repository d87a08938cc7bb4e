"""Local paths: ``file:`` URIs, the names that links give a file, and the paths of outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from errno import EACCES, ELOOP
from functools import cache
from pathlib import Path
from stat import S_ISDIR
from typing import Final
from urllib.parse import unquote

from bloomcli.errors import UsageError, WriteError
from bloomcli.model.paths import shown
from bloomcli.storage.local.patterns import matches
from bloomcli.storage.names import has_wildcard
from bloomcli.storage.os_errors import is_link, path_exists, reason

_MOST_NAMES: Final = 40
"""Maximum number of names of one file; Linux follows as many links."""

_SEPARATORS: Final = tuple(filter(None, (os.sep, os.altsep)))


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


def spelling() -> Callable[[str], str]:
    """A function that maps all paths of a file to one spelling. Links to files aren't followed."""

    @cache
    def real(folder: str) -> str:
        return os.path.join(os.path.realpath(folder), "")  # noqa: PTH118  there are thousands of files

    def spell(path: str) -> str:
        end = max(map(path.rfind, _SEPARATORS)) + 1
        return real(path[:end]) + path[end:]

    return spell


def names_of(path: Path) -> Iterator[Path]:
    """The absolute paths of a file: the given one, one for each link in it that is followed, and the resolved one."""
    waiting = [Path(os.path.abspath(path))]  # noqa: PTH100  Path.absolute leaves .. in
    seen: set[Path] = set()
    while waiting and len(seen) < _MOST_NAMES:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        for part in (name, *name.parents):
            if is_link(part):
                target = os.path.normpath(part.parent.resolve() / part.readlink())
                waiting.append(Path(target, name.relative_to(part)))
    yield path.resolve()


def destination(output: str, path: str) -> str:
    """The path to write for a file, from the output that the user named.

    Raises:
        UsageError: it is the file itself or a directory, or no file can have this name.
        WriteError: the system can't tell.
    """
    try:
        info = Path(output).stat()
    except (FileNotFoundError, NotADirectoryError):
        info = None
    except OSError as error:
        if error.errno == ELOOP:
            return str(Path(output))  # links that form a circle: writing reports them
        raise WriteError(
            f"can't be written: {reason(error)}",
            path=str(Path(output)),
            hint="check who may search the directories above it" if error.errno == EACCES else None,
        ) from None
    except ValueError as error:  # a null byte
        raise UsageError(f"the output can't have such a name: {error}", path=path) from None
    if info is not None and _is_file(Path(path), info):
        raise UsageError("the output is the input", path=path, hint="--in-place replaces a file safely")
    if info is not None and S_ISDIR(info.st_mode):
        raise UsageError(f"the output {str(Path(output))!r} is a directory", path=path, hint="name the file to write")
    if output.endswith(_SEPARATORS):
        raise UsageError(f"the output {shown(output)!r} names a directory", path=path, hint="name the file to write")
    return str(Path(output))


def _is_file(path: Path, info: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), info)
    except OSError:
        return False  # the input is open; whether it still has its name is checked before a replacement
