"""Globs of paths in a policy: what they mean in a ``.gitignore`` file, they mean here.

A glob with a slash at its start or within is about the policy's folder (``orders/**``), one without is about names
at any depth (``*.tmp``); ``!`` makes an exception from the globs before it, and the last glob that matches decides.
Files outside that folder, and URIs, have no place in it: they are matched whole, by globs that are whole themselves
(``/data/lake/**``, ``s3://bucket/lake/**``) or that hold at any depth (``*.tmp``, ``**/staging/**``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SPECIAL: Final = re.compile(r"([\\*?\[\]!# ])")


def place(path: str, base: str) -> tuple[str, bool]:
    """A file's name for `Globs.match`: from the policy's folder on, or whole; and whether it lies in that folder.

    Links to the folder or above it don't matter. Relative paths are taken from the working folder.
    """
    if _URI.match(path):
        return path, False
    folder, name = os.path.split(path)
    start, inside = _folder(os.path.abspath(folder), base)  # noqa: PTH100  Path.absolute keeps `..`
    return start + name, inside


@lru_cache(maxsize=4096)
def _folder(folder: str, base: str) -> tuple[str, bool]:
    """The same of a folder, with a slash at the end. There are far fewer of them than files."""
    for start, spelled in ((base, folder), (os.path.realpath(base), os.path.realpath(folder))):
        if spelled == start:
            return "", True
        if spelled.startswith(start.rstrip("/") + "/"):
            return spelled[len(start.rstrip("/")) + 1 :] + "/", True
    return folder.rstrip("/") + "/", False


class Globs:
    """Compiled globs of one list."""

    __slots__ = ("_inside", "_outside")

    def __init__(self, globs: Sequence[str], base: str) -> None:
        self._inside = _compile(tuple(_from_base(glob, base) for glob in globs))
        self._outside = _compile(tuple(glob for glob in globs if _whole(glob)))

    def match(self, place: str, inside: bool) -> bool:
        """Whether the list is about a file, by what `place` gives for it."""
        return (self._inside if inside else self._outside).match_file(place)


@lru_cache(maxsize=1024)
def _compile(globs: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(globs)


def _from_base(glob: str, base: str) -> str:
    """A glob that spells the policy's folder out, or as ``./``, from that folder on."""
    exception, bare = _split(glob)
    if bare.startswith("./"):
        return exception + bare[1:]
    if base and bare.startswith(base.rstrip("/") + "/"):
        return exception + bare[len(base.rstrip("/")) :]
    return glob


def _whole(glob: str) -> bool:
    """Whether a glob may be about files outside of the policy's folder."""
    _, bare = _split(glob)
    return bare.startswith(("/", "**/")) or _URI.match(bare) is not None or "/" not in bare.rstrip("/")


def _split(glob: str) -> tuple[str, str]:
    return ("!", glob[1:]) if glob.startswith("!") else ("", glob)


def problem(glob: str) -> str | None:
    """Why a glob can't be meant; None where it can."""
    _, bare = _split(glob)
    if not bare.strip():
        return "it is empty"
    if bare.startswith("#"):
        return "it starts with #, which makes it a comment: write \\# for a name that does"
    rest = _URI.sub("", bare)
    pieces = rest.removeprefix("./").removeprefix("/").split("/")
    if {".", ".."} & set(pieces):
        return "it has . or .. within: globs start at the policy's folder, files outside are named by whole paths"
    if "" in pieces[:-1] or pieces == [""]:
        return "a name between two slashes is empty"
    try:
        (pattern,) = _compile((glob,)).patterns
    except (ValueError, re.error) as error:
        return f"it is no glob: {error}"
    return "its brackets are not closed" if getattr(pattern, "regex", None) is None else None


def escape(path: str) -> str:
    """A path as a glob that means it alone."""
    return _SPECIAL.sub(r"\\\1", path)
