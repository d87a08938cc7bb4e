"""From column names and globs to the file's leaf columns."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from bloomcli.errors import UnknownColumn
from bloomcli.model import Column

_GLOB: Final = frozenset("*?[")
_NEAR: Final = 3


def select(columns: Sequence[Column], names: Sequence[str], *, path: str) -> list[Column]:
    """The leaf columns that the names and globs mean, in schema order, each once.

    A name that is a leaf's whole path means that leaf, glob characters or not. Raises UnknownColumn, with
    near names, for one that matches nothing.
    """
    chosen: set[int] = set()
    by_path = {column.path: column.index for column in columns}
    for name in names:
        if name in by_path:
            chosen.add(by_path[name])
            continue
        matched = {c.index for c in columns if fnmatchcase(c.path, name)} if _GLOB & set(name) else set()
        if not matched:
            raise UnknownColumn(f"no column {name!r}", path=path, hint=_hint(name, list(by_path)))
        chosen |= matched
    return [column for column in columns if column.index in chosen]


def _hint(name: str, paths: list[str]) -> str:
    below = [p for p in paths if p.startswith(name + ".")]
    if below:
        return f"{name} is a group; its leaves: {', '.join(below[:_NEAR])}" + (", ..." if len(below) > _NEAR else "")
    folded = {p.lower(): p for p in paths}
    near = [folded[p] for p in get_close_matches(name.lower(), folded, n=_NEAR, cutoff=0.5)]
    if not near:
        near = [p for p in paths if name.lower() in p.lower()][:_NEAR]
    if near:
        return "did you mean " + " or ".join(near) + "?"
    shown = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
    return f"the file's columns: {shown}" if paths else "the file has no columns"


def indexes(columns: Sequence[Column], names: Sequence[str], *, path: str) -> set[int] | None:
    """Leaf ordinals that the names mean; None, for all, when there are no names."""
    return {c.index for c in select(columns, names, path=path)} if names else None
