"""Determines why files of an old index aren't listed: they don't exist any more, or the paths don't name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from bloomcli.model.paths import shown
from bloomcli.storage.base import FileEntry
from bloomcli.storage.names import has_wildcard

_PARTS: Final = re.compile(r"\[(!?[^]]+)\]|.", re.DOTALL)
_SINGLE: Final = {"*": "[^/]*", "?": "[^/]"}


class NamedPath(NamedTuple):
    """A path that a user named, and the files that it means."""

    path: str
    files: re.Pattern[str]
    """Matches the spelled paths of these files: the path itself, files below it, or files of a pattern."""


class Scope:
    """The files that paths mean.

    Args:
        paths: as the user named them.
        spell: `bloomcli.storage.listing.spelling`.
    """

    def __init__(self, paths: Sequence[str], spell: Callable[[str], str]) -> None:
        self._spell = spell
        self._named = [NamedPath(path, _files(path, spell)) for path in paths]

    def names(self, path: str) -> bool:
        """Whether one of the paths means the file with this spelled path. If the file existed, it would be listed."""
        return any(named.files.fullmatch(path) for named in self._named)

    def unseen(self, listed: Iterable[FileEntry], failed: frozenset[str]) -> tuple[str, ...]:
        """The named paths that may have files which aren't listed: they don't exist, can't be listed or are empty.

        Args:
            listed: the listing of all paths.
            failed: the paths of files that failed.
        """
        unmatched = self._named if len(self._named) > 1 else []  # a single path without files is an error
        unseen: dict[str, None] = {}
        for item in listed:
            missing = item.size < 0 and not item.walked and (item.skipped or shown(item.path) in failed)
            if item.problem is not None or missing:
                unseen[item.path] = None
            elif unmatched:
                spelled = self._spell(item.path)
                unmatched = [named for named in unmatched if not named.files.fullmatch(spelled)]
        unseen_paths = list(map(self._spell, unseen))
        for named in unmatched:
            if not any(map(named.files.fullmatch, unseen_paths)):
                unseen[named.path] = None
        return tuple(unseen)


def _files(path: str, spell: Callable[[str], str]) -> re.Pattern[str]:
    """A pattern of the spelled paths of the files that a path means."""
    steps = path.rstrip("/").split("/") if path.strip("/") else [""]
    first = next((at for at, step in enumerate(steps) if has_wildcard(step)), len(steps))
    if first == len(steps):
        directory = spell("/".join([*steps, "x"]))[:-2]
        itself = spell(path) if not path.endswith("/") else directory
        return re.compile(f"{re.escape(itself)}|{re.escape(directory)}/.*", re.DOTALL)
    base = spell("/".join([*steps[:first], "x"]))[:-1]
    pattern = "/".join(_step(step) for step in steps[first:])
    try:
        return re.compile(f"{re.escape(base)}{pattern}(/.*)?", re.DOTALL)
    except re.error:  # a character range that ends before its start
        return re.compile(f"{re.escape(base)}.*", re.DOTALL)


def _step(step: str) -> str:
    """A step of a pattern as a regular expression. It matches a directory whose name has wildcards, too."""
    return ".*" if step == "**" else _PARTS.sub(_part, step)


def _part(found: re.Match[str]) -> str:
    text = found[0]
    if text in _SINGLE:
        return _SINGLE[text]
    if found[1] is None:
        return re.escape(text)
    inside = found[1].replace("\\", "\\\\").replace("[", "\\[")
    return f"(?:{re.escape(text)}|[{'^' + inside[1:] if inside[0] == '!' else inside}])"
