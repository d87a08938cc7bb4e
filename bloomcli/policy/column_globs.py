"""Globs of column names, as `--columns` takes them. A separate module, because `find` needs no policy."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def matches(names: Iterable[str], column: str) -> bool:
    """Return whether any of the names is the column's name or a glob that matches it."""
    return any(column == name or fnmatchcase(column, name) for name in names)
