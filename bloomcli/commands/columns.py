"""Resolves column names and globs to the file's leaf columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from bloomcli.errors import NothingToFilter, UnknownColumn, UsageError, near_names
from bloomcli.formats.base import ColumnSelection, FilterFile
from bloomcli.formats.table_names import why_missing
from bloomcli.hints import listed
from bloomcli.model.file import Column
from bloomcli.policy.globs import matches

_GLOB: Final = frozenset("*?[")
_NEAR: Final = 3


def select(
    columns: Sequence[Column],
    names: Sequence[str],
    *,
    path: str,
    exclude: Sequence[str] = (),
    why_not: Callable[[Column], str | None] = lambda _: None,
    lacking: Sequence[str] = (),
) -> ColumnSelection:
    """The leaf columns that names and globs match, in schema order, each once.

    A name that is a leaf's whole path matches that leaf, even with glob characters. Several leaves may have one path
    (a column named ``a.b`` and a field ``b`` of ``a``): the name matches all of them. Globs leave out columns that
    are `unfilterable`; names don't. In a file that was opened with a table's names, these select columns of the table
    only.

    Args:
        columns: the columns to choose from.
        names: paths and globs.
        path: the file's, for errors.
        exclude: paths and globs of columns to leave out, even if `names` includes them.
        why_not: gives the reason why a column can't have a filter; called for columns that only a glob matches.
        lacking: paths of table columns that the file doesn't have; a name or glob may match only these.

    Raises:
        UnknownColumn: a name or glob, or a name in `exclude`, matches nothing. The hint has similar names.
        NothingToFilter: globs match only columns that can't have a filter.
        UsageError: all matches are excluded.
    """
    columns = [column for column in columns if not column.not_in_table]
    chosen: set[int] = set()
    refused: dict[int, Column] = {}
    by_path = _by_path(columns)
    out = excluded(columns, exclude, path=path, lacking=lacking)
    missing: set[str] = set()
    for name in names:
        if name in by_path:
            chosen.update(by_path[name])
            continue
        if name in lacking:
            missing.add(name)
            continue
        is_glob = _GLOB & set(name)
        matched = {c.index for c in columns if fnmatchcase(c.path, name)} if is_glob else set()
        not_there = {p for p in lacking if fnmatchcase(p, name)} if is_glob else set()
        if not matched and not not_there:
            raise UnknownColumn(f"no column {name!r}", path=path, hint=_hint(name, [*by_path, *lacking]))
        missing |= not_there
        chosen |= matched - _refused(columns, matched - out, refused, why_not)
    missing = {p for p in missing if not matches(exclude, p)}
    if names and not missing and not (chosen | refused.keys()) - out:
        raise UsageError("all selected columns are excluded", path=path, hint="exclude fewer columns")
    chosen -= out
    found = ColumnSelection(column for column in columns if column.index in chosen)
    named = missing & set(names)
    found.missing_columns = tuple(p for p in lacking if p in (named if found else missing))
    found.left_out = tuple(refused[index] for index in sorted(refused.keys() - chosen - out))
    if found.left_out and not found and not named:
        first = found.left_out[0]
        raise NothingToFilter(
            "none of the selected columns can have a filter",
            path=path,
            hint=f"{first.path}: {first.unfilterable}",
        )
    return found


def _by_path(columns: Sequence[Column]) -> dict[str, list[int]]:
    """The ordinals of the columns with each path: a file may have several of one name."""
    found: dict[str, list[int]] = {}
    for column in columns:
        found.setdefault(column.path, []).append(column.index)
    return found


def _refused(
    columns: Sequence[Column], matched: set[int], refused: dict[int, Column], why_not: Callable[[Column], str | None]
) -> set[int]:
    """The matched columns that can't have a filter; adds them to `refused`, with the reason."""
    for column in columns:
        if column.index in matched and column.index not in refused:
            reason = column.unfilterable or why_not(column)
            if reason is not None:
                refused[column.index] = replace(column, unfilterable=reason)
    return matched & refused.keys()


def excluded(columns: Sequence[Column], names: Sequence[str], *, path: str, lacking: Sequence[str] = ()) -> set[int]:
    """Ordinals of the columns that names and globs match. A glob may match nothing, and a name may be in `lacking`.

    Raises:
        UnknownColumn: a name matches nothing.
    """
    out: set[int] = set()
    columns = [column for column in columns if not column.not_in_table]
    by_path = _by_path(columns)
    for name in names:
        found = set(by_path.get(name, ()))
        if not found and _GLOB & set(name):
            found = {c.index for c in columns if fnmatchcase(c.path, name)}
        elif not found and name not in lacking:
            hint = _hint(name, list(dict.fromkeys([*by_path, *lacking])))
            raise UnknownColumn(
                f"no column {name!r} to exclude", path=path, hint=f"{hint}; only a glob may match none"
            )
        out |= found
    return out


def why_none(file: FilterFile, names: Sequence[str], *, exclude: Sequence[str] = ()) -> str | None:
    """The reason why names select no column of a file although its table has the columns; None if they select one."""
    if not names or not file.missing_columns:
        return None
    found = select(file.columns, names, path=file.source.path, exclude=exclude, lacking=file.missing_columns)
    return None if found or not found.missing_columns else why_missing(found.missing_columns)


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
    """A name as it is written in a list with commas."""
    return name if "," not in name else f"{name} (in --columns: '{listed(name)}')"


def indexes(file: FilterFile, names: Sequence[str], *, exclude: Sequence[str] = ()) -> set[int] | None:
    """Ordinals of a file's columns that names match and that aren't excluded; None (all) without names and
    exclusions.

    Columns that the file's table doesn't have are included only if no names are given.
    """
    columns, lacking, path = file.columns, file.missing_columns, file.source.path
    if names:
        return {c.index for c in select(columns, names, path=path, exclude=exclude, lacking=lacking)}
    if not exclude:
        return None
    return {c.index for c in columns} - excluded(columns, exclude, path=path, lacking=lacking)


def type_alone(column: Column) -> Column:
    """The column without its name, position and filter facts. Equal for columns of the same type."""
    return replace(column, path="", index=0, field_id=None, unfilterable=None)


def kind_of(file: FilterFile, column: Column) -> object:
    """A key that is equal for all columns that store values in the same way."""
    return file.format, replace(type_alone(column), max_definition_level=0, max_repetition_level=0)
