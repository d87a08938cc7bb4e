"""Matches keys of objects against wildcard patterns, as `bloomcli.storage.local` does for files.

``*``, ``?`` and ``[...]`` match characters within one name, ``**`` matches any number of directories. A hidden name
matches only if the pattern spells its dot or underscore. A key below a matching directory matches too.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from bloomcli.storage.names import has_wildcard, is_hidden

_ANY_DEPTH: Final = "**"


class Match(Enum):
    """How a key matches."""

    NAME = auto()
    """The pattern matches the whole key."""
    BELOW = auto()
    """The pattern matches a directory above the key."""


class Pattern:
    """A wildcard pattern for keys.

    Attributes:
        directory: the directory that contains the first wildcard, with a slash at its end; empty for the bucket.
        prefix: the common prefix of all keys that can match.
    """

    def __init__(self, pattern: str) -> None:
        parts = pattern.split("/")
        fixed = next(number for number, part in enumerate(parts) if has_wildcard(part))
        self.directory = "".join(f"{part}/" for part in parts[:fixed])
        self.prefix = self.directory + re.split(r"[*?\[]", parts[fixed])[0]
        wild = parts[fixed:]
        if wild[-1] == "":  # matches directories, not objects
            wild.pop()
            self._directories = True
        else:
            self._directories = False
        self._parts = [part if part == _ANY_DEPTH else re.compile(fnmatch.translate(part)) for part in wild]
        self._dotted = [part.startswith(".") for part in wild]
        self._spelled = {part[0] for part in wild if part}

    def match(self, key: str) -> Match | None:
        """How a key matches; None if it doesn't."""
        if not key.startswith(self.directory):
            return None
        names = key[len(self.directory) :].split("/")
        for count in range(len(names), 0, -1):
            whole = count == len(names)
            if whole and self._directories:
                continue
            if self._matches(names[:count], 0, 0) and self._is_meant(names[:count]):
                if whole:
                    return Match.NAME
                if not any(map(is_hidden, names[count:])):
                    return Match.BELOW
        return None

    def _matches(self, names: Sequence[str], name: int, part: int) -> bool:
        if part == len(self._parts):
            return name == len(names)
        wanted = self._parts[part]
        if isinstance(wanted, str):  # any number of directories
            if self._matches(names, name, part + 1):
                return True
            return name < len(names) and not names[name].startswith(".") and self._matches(names, name + 1, part)
        if name == len(names) or wanted.match(names[name]) is None:
            return False
        if names[name].startswith(".") and not self._dotted[part]:
            return False
        return self._matches(names, name + 1, part + 1)

    def _is_meant(self, names: Sequence[str]) -> bool:
        """Whether the pattern spells the first character of each hidden name."""
        return all(name[0] in self._spelled for name in names if is_hidden(name))
