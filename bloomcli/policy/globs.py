"""Globs of column names, as `--columns` takes them, and path globs with the semantics of ``.gitignore``.

A path glob with a slash at its start or in its middle is relative to the policy's directory (``orders/**``); a glob
without one matches names at any depth (``*.tmp``). ``!`` excludes files from the globs before it, and the last glob
that matches decides. Files outside the policy's directory are matched by their full path or URI, by globs that are
absolute (``/data/lake/**``, ``s3://bucket/lake/**``) or apply at any depth (``*.tmp``, ``**/staging/**``). A store's
schemes mean the same: ``s3a://`` is ``s3://``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import escape as escape_name
from typing import TYPE_CHECKING, Final

from bloomcli.storage.names import usual_scheme
from bloomcli.values import variant_paths

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def matches(names: Iterable[str], column: str) -> bool:
    """Return whether any of the names is the column's leaf path, a glob that matches it, or its path in a VARIANT."""
    return any(
        column == name
        or fnmatchcase(column, name)
        or (variant_paths.ROOT in name and fnmatchcase(column, variant_paths.leaf(name)))
        for name in names
    )


def is_glob(name: str) -> bool:
    """Return whether a column's name is a glob, which may match no column. Brackets of a VARIANT's path make none."""
    return bool(_WILDCARDS & set(name)) and not variant_paths.is_path(name)


def only(column: str) -> str:
    """Return a glob that matches exactly one column. With a glob, files without the column, and columns that can't
    have a filter, are no error."""
    return f"[{column[0]}]{escape_name(column[1:])}" if column[0] not in "!^]" else escape_name(column)


_WILDCARDS: Final = frozenset("*?[")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SPECIAL: Final = re.compile(r"([\\*?\[\]!# ])")


def relative_to_base(path: str, base: str) -> tuple[str, bool]:
    """Return a file's path relative to the policy's directory, and True; its full path and False if it is outside.

    Symbolic links in the directories' paths are resolved if necessary. Relative paths start at the working directory.
    """
    if _URI.match(path):
        whole = usual_scheme(path)  # Spark and its tables name s3:// as s3a://
        below = whole.removeprefix(usual_scheme(base) + "/")
        return (below, True) if below != whole else (path, False)
    folder, name = os.path.split(path)
    start, inside = _folder(os.path.abspath(folder), base)  # noqa: PTH100  Path.absolute keeps `..`
    return start + name, inside


@lru_cache(maxsize=4096)
def _folder(folder: str, base: str) -> tuple[str, bool]:
    """Do the same for a directory, with a trailing slash. Cached, because there are far fewer directories than
    files."""
    for start, path in ((base, folder), (os.path.realpath(base), os.path.realpath(folder))):
        if path == start:
            return "", True
        if path.startswith(start.rstrip("/") + "/"):
            return path[len(start.rstrip("/")) + 1 :] + "/", True
    return folder.rstrip("/") + "/", False


class Globs:
    """A compiled list of globs."""

    __slots__ = ("_inside", "_outside")

    def __init__(self, globs: Sequence[str], base: str) -> None:
        self._inside = _compile(tuple(_from_base(glob, base) for glob in globs))
        self._outside = _compile(tuple("".join(_split(glob)) for glob in globs if _matches_outside(glob)))

    def match(self, path: str, inside: bool) -> bool:
        """Return whether the list matches a file. The arguments are the results of `relative_to_base`."""
        return self._inside.match_file(path) if inside else self._outside.match_file(usual_scheme(path))


@lru_cache(maxsize=1024)
def _compile(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(globs)


def _from_base(glob: str, base: str) -> str:
    """Make a glob that starts with the policy's directory, or with ``./``, relative to that directory."""
    exception, bare = _split(glob)
    if bare.startswith("./"):
        return exception + bare[1:]
    base = usual_scheme(base)
    if base and bare.startswith(base.rstrip("/") + "/"):
        return exception + bare[len(base.rstrip("/")) :]
    return exception + bare


def _matches_outside(glob: str) -> bool:
    """Return whether a glob can match files outside the policy's directory."""
    _, bare = _split(glob)
    return bare.startswith(("/", "**/")) or _URI.match(bare) is not None or "/" not in bare.rstrip("/")


def _split(glob: str) -> tuple[str, str]:
    """The ``!`` of an exception, and the glob without it, with the usual scheme of its store."""
    return ("!", usual_scheme(glob[1:])) if glob.startswith("!") else ("", usual_scheme(glob))


def problem(glob: str) -> str | None:
    """Return why a glob is invalid; None if it is valid."""
    _, bare = _split(glob)
    if not bare.strip():
        return "it is empty"
    if bare.startswith("#"):
        return "it starts with #, which makes it a comment: write \\# for a name that starts with #"
    rest = _URI.sub("", bare)
    pieces = rest.removeprefix("./").removeprefix("/").split("/")
    if {".", ".."} & set(pieces):
        return "it contains . or ..: globs start at the policy's directory, and files outside need absolute paths"
    if "" in pieces[:-1] or pieces == [""]:
        return "a name between two slashes is empty"
    try:
        (pattern,) = _compile((glob,)).patterns
    except (ValueError, re.error) as error:
        return f"it doesn't compile: {error}"
    return "its brackets are not closed" if getattr(pattern, "regex", None) is None else None


def escape(path: str) -> str:
    """Return a glob that matches only this path."""
    return _SPECIAL.sub(r"\\\1", path)
