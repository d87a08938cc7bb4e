"""From column names and globs to the file's leaf columns."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from bloomcli.errors import UnknownColumn, UsageError, near_names
from bloomcli.formats.base import Chosen
from bloomcli.mending import listed
from bloomcli.model import Column

_GLOB: Final = frozenset("*?[")
_NEAR: Final = 3


def select(columns: Sequence[Column], names: Sequence[str], *, path: str) -> Chosen:
    """The leaf columns that the names and globs mean, in schema order, each once.

    A name that is a leaf's whole path means that leaf, glob characters or not. Several leaves may have one path
    (a column named ``a.b`` and a field ``b`` of ``a``): it means all of them. Globs leave out what is known to be
    `unfilterable`; a name doesn't.

    Raises:
        UnknownColumn: a name or glob matches nothing; with near names.
        UsageError: globs match only columns that can't have a filter.
    """
    chosen: set[int] = set()
    refused: set[int] = set()
    by_path: dict[str, list[int]] = {}
    for column in columns:
        by_path.setdefault(column.path, []).append(column.index)
    for name in names:
        if name in by_path:
            chosen.update(by_path[name])
            continue
        matched = {c.index for c in columns if fnmatchcase(c.path, name)} if _GLOB & set(name) else set()
        if not matched:
            raise UnknownColumn(f"no column {name!r}", path=path, hint=_hint(name, list(by_path)))
        unfilterable = {c.index for c in columns if c.unfilterable is not None and c.index in matched}
        chosen |= matched - unfilterable
        refused |= unfilterable
    found = Chosen(column for column in columns if column.index in chosen)
    found.left_out = tuple(column for column in columns if column.index in refused - chosen)
    if found.left_out and not found:
        first = found.left_out[0]
        raise UsageError(
            "none of the columns that are meant gets a filter",
            path=path,
            hint=f"{first.path}: {first.unfilterable}",
        )
    return found


def _hint(name: str, paths: list[str]) -> str:
    below = [p for p in paths if p.startswith(name + ".")]
    if below:
        return f"{name} is a group; its leaves: {', '.join(below[:_NEAR])}" + (", ..." if len(below) > _NEAR else "")
    folded = {p.lower(): p for p in paths}
    near = [folded[p] for p in near_names(name.lower(), folded, n=_NEAR, cutoff=0.5)]
    if not near:
        near = [p for p in paths if name.lower() in p.lower()][:_NEAR]
    if near:
        return "did you mean " + " or ".join(map(_spelled, near)) + "?"
    shown = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
    return f"the file's columns: {shown}" if paths else "the file has no columns"


def _spelled(name: str) -> str:
    """A name as it has to be written where several are, between commas."""
    return name if "," not in name else f"{name} (in --columns: '{listed(name)}')"


def indexes(columns: Sequence[Column], names: Sequence[str], *, path: str) -> set[int] | None:
    """Leaf ordinals that the names mean; None, for all, when there are no names."""
    return {c.index for c in select(columns, names, path=path)} if names else None
