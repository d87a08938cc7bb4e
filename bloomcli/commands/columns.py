"""Resolves column names and globs to the file's leaf columns: several, one, or those that a policy requires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from bloomcli.checks.limits import names_not_in
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import NothingToFilter, UnknownColumn, UsageError, near_names
from bloomcli.formats.base import ColumnSelection, FilterFile
from bloomcli.formats.table_names import why_missing
from bloomcli.hints import Command, Hint, extended, listed
from bloomcli.model.file import Column, Severity
from bloomcli.policy.globs import matches
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.storage.names import partition_of
from bloomcli.values import variant_paths

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
    (a column named ``a.b`` and a field ``b`` of ``a``): the name matches all of them. A leaf of a shredded VARIANT
    has a second name, ``v:$.user.id`` (see `Column.variant_path`). Globs leave out columns that are `unfilterable`;
    names don't. In a file that was opened with a table's names, these select columns of the table only.

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
        if (ordinals := _indexes_of(name, by_path)) is not None:
            chosen.update(ordinals)
            continue
        if name in lacking:
            missing.add(name)
            continue
        is_glob = _GLOB & set(name)
        matched = _matching(columns, name) if is_glob else set()
        not_there = {p for p in lacking if fnmatchcase(p, name)} if is_glob else set()
        if not matched and not not_there:
            raise UnknownColumn(f"no column {name!r}", path=path, hint=_hint(name, [*by_path, *lacking], path))
        missing |= not_there
        chosen |= matched - _refused(columns, matched - out, refused, why_not)
    missing = {p for p in missing if not matches(exclude, p)}
    if names and not missing and not (chosen | refused.keys()) - out:
        raise UsageError("all selected columns are excluded", path=path, hint="exclude fewer columns")
    chosen -= out
    selection = ColumnSelection(column for column in columns if column.index in chosen)
    named = missing & set(names)
    selection.missing_columns = tuple(p for p in lacking if p in (named if selection else missing))
    selection.left_out = tuple(refused[index] for index in sorted(refused.keys() - chosen - out))
    if selection.left_out and not selection and not named:
        first = selection.left_out[0]
        raise NothingToFilter(
            "none of the selected columns can have a filter",
            path=path,
            hint=f"{first.path}: {first.unfilterable}",
        )
    return selection


def _by_path(columns: Sequence[Column]) -> dict[str, list[int]]:
    """The ordinals of the columns with each name: a file may have several of one path."""
    by_path: dict[str, list[int]] = {}
    for column in columns:
        by_path.setdefault(column.path, []).append(column.index)
    for column in columns:
        if column.variant_path is not None:
            by_path.setdefault(column.variant_path, []).append(column.index)
    return by_path


def is_named(names: Sequence[str], column: Column) -> bool:
    """Whether a name is one of the column's, or a glob that matches one."""
    return matches(names, column.path) or matches(map(variant_paths.canonical, names), column.name)


def is_exactly(name: str, column: Column) -> bool:
    """Whether a name is one of the column's, and no glob."""
    return name == column.path or (
        column.variant_path is not None and variant_paths.canonical(name) == column.variant_path
    )


def _indexes_of(name: str, by_path: dict[str, list[int]]) -> list[int] | None:
    return by_path.get(name) or by_path.get(variant_paths.canonical(name))


def _matching(columns: Sequence[Column], glob: str) -> set[int]:
    """The ordinals of the columns of which a glob matches a name."""
    return {c.index for c in columns if fnmatchcase(c.path, glob) or fnmatchcase(c.name, glob)}


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
        ordinals = set(_indexes_of(name, by_path) or ())
        if not ordinals and _GLOB & set(name):
            ordinals = _matching(columns, name)
        elif not ordinals and name not in lacking:
            hint = _hint(name, list(dict.fromkeys([*by_path, *lacking])), path)
            raise UnknownColumn(
                f"no column {name!r} to exclude", path=path, hint=extended(hint, ["only a glob may match none"])
            )
        out |= ordinals
    return out


def why_none(file: FilterFile, names: Sequence[str], *, exclude: Sequence[str] = ()) -> str | None:
    """The reason why names select no column of a file although its table has the columns; None if they select one."""
    if not names or not file.missing_columns:
        return None
    selection = select(file.columns, names, path=file.source.path, exclude=exclude, lacking=file.missing_columns)
    return None if selection or not selection.missing_columns else why_missing(selection.missing_columns)


def _hint(name: str, paths: list[str], path: str) -> str | None:
    directories = ", ".join(key for key in partition_of(path) if key not in paths)
    return extended(_of_file(name, paths), [f"in the names of directories: {directories}"] if directories else [])


def _of_file(name: str, paths: list[str]) -> str:
    if variant_paths.ROOT in name:
        paths = [p for p in paths if variant_paths.ROOT in p]
        if not paths:
            return Hint(Command("inspect", ("--schema",)), " shows its columns", "the file has no shredded VARIANT; ")
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
    return name if listed(name) == name else f"{name} (in --columns: '{listed(name)}')"


def indexes(file: FilterFile, names: Sequence[str], *, exclude: Sequence[str] = ()) -> set[int] | None:
    """Ordinals of a file's columns that names match and that aren't excluded; None (all) without names and
    exclusions.

    Columns that the file's table doesn't have are included only if no names are given.
    """
    columns, lacking, path = file.columns, file.missing_columns, file.source.path
    if names and (columns or lacking or set(names) != {"*"}):  # which names all columns, though there are none
        try:
            return {c.index for c in select(columns, names, path=path, exclude=exclude, lacking=lacking)}
        except NothingToFilter:
            if set(names) != {"*"}:
                raise
            return set()  # a file of VARIANTs alone
    if not exclude:
        return None
    return {c.index for c in columns} - excluded(columns, exclude, path=path, lacking=lacking)


def type_alone(column: Column) -> Column:
    """The column without its name, position and filter facts. Equal for columns of the same type."""
    return replace(column, path="", index=0, field_id=None, unfilterable=None, variant_path=None, untyped=None)


def kind_of(file: FilterFile, column: Column) -> object:
    """A key that is equal for all columns that store values in the same way."""
    return file.format, replace(type_alone(column), max_definition_level=0, max_repetition_level=0)


_SHOWN: Final = 8


def only_column(file: FilterFile, name: str | None, *, purpose: str, exclude: Sequence[str] = ()) -> Column:
    """The named column; without a name the only one that has filters and isn't excluded.

    Raises UsageError, UnknownColumn.
    """
    path = file.source.path
    if name is not None:
        selection = select(file.columns, [name], path=path, exclude=exclude)
        if len(selection) > 1:
            _refuse_same_names(selection, path, purpose)
            raise UsageError(
                f"{name!r} means {len(selection)} columns; {purpose} takes one",
                path=path,
                hint="one of " + _names(selection),
            )
        return selection[0]
    found_in = file.filtered_columns() - excluded(file.columns, exclude, path=path, lacking=file.missing_columns)
    filtered = [c for c in file.columns if c.index in found_in and not c.not_in_table]
    if not filtered:
        kept = {filter_.facts.column for filter_ in filters_of(file).filters}
        filtered = [c for c in file.columns if c.path in kept and not matches(exclude, c.path)]
    if len(filtered) == 1:
        return filtered[0]
    if not filtered:
        raise UsageError(
            "no column has a filter",
            path=path,
            hint=Hint(
                Command("advise"),
                " says which need filters",
                f"name a column with --column: {_names(file.columns)}; ",
            ),
        )
    _refuse_same_names(filtered, path, purpose)
    raise UsageError(
        f"{len(filtered)} columns have filters",
        path=path,
        hint="name one with --column: " + _names(filtered),
    )


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(list(dict.fromkeys(c.name for c in columns))[:_SHOWN])


def _refuse_same_names(columns: Sequence[Column], path: str, purpose: str) -> None:
    """Raise UsageError if the columns have the same name, because an answer wouldn't show which column it is
    about."""
    if len({c.path for c in columns}) == 1:
        raise UsageError(
            f"{len(columns)} columns are called {columns[0].path!r}; {purpose} can't tell which of them is requested",
            path=path,
            hint="ask about one of them in a file that was written with other names; validate --deep checks them all",
        )


def required_columns(
    file: FilterFile, policy: Policy, *, exclude: Sequence[str] = (), why_not: Callable[[Column], str | None]
) -> ColumnSelection:
    """The leaf columns of a file on which the policy requires filters, in schema order.

    Columns for which the rule filter-required is switched off are left out. Globs also leave out columns that can't
    have a filter; names don't.

    Args:
        file: the file.
        policy: the policy; its part for the file applies.
        exclude: paths and globs of columns to leave out.
        why_not: gives the reason why a column can't have a filter; called for columns that only a glob matches.

    Raises:
        UnknownColumn: the policy requires a column by name that the file doesn't have.
        NothingToFilter: the policy requires no filter of this file, or excludes the file.
    """
    path = file.source.path
    if policy.excludes(path):
        raise NothingToFilter(f"{_title(policy)} excludes the file", path=path)
    rules = policy.for_file(path)
    names = [name for name in rules.required() if _counts(rules, name)]
    _check_names(file, names, policy)
    out = excluded(file.columns, exclude, path=path, lacking=file.missing_columns)
    selection, left_out = ColumnSelection(), []
    for column in file.leaves:
        if (
            column.not_in_table
            or column.index in out
            or not matches(names, column.path)
            or not _counts(rules, column.path)
        ):
            continue
        named = any(is_exactly(name, column) for name in names)
        reason = None if named else column.unfilterable or why_not(column)
        if reason is None:
            selection.append(column)
        else:
            left_out.append(replace(column, unfilterable=reason))
    selection.left_out = tuple(left_out)
    lacking = [p for p in file.missing_columns if matches(names, p) and _counts(rules, p) and not matches(exclude, p)]
    selection.missing_columns = tuple(p for p in lacking if p in names or not selection)
    if not selection and not left_out and selection.missing_columns:
        raise NothingToFilter(why_missing(selection.missing_columns), path=path)
    if not selection:
        first = f"{left_out[0].path}: {left_out[0].unfilterable}" if left_out else None
        raise NothingToFilter(f"{_title(policy)} requires no filter of this file", path=path, hint=first)
    return selection


def _title(policy: Policy) -> str:
    return "the policy" if policy.path is None else f"the policy {policy.path}"


def _counts(rules: FilePolicy, column: str) -> bool:
    return rules.counts("filter-required", Severity.ERROR, column)


def _check_names(file: FilterFile, names: Sequence[str], policy: Policy) -> None:
    """Raise UnknownColumn for a name that isn't a glob and that the file doesn't have."""
    for name, _, similar in names_not_in(file, names):
        raise UnknownColumn(
            f"{_title(policy)} requires a filter on column {name!r}, which the file doesn't have",
            path=file.source.path,
            hint=similar or "correct the policy, or name columns of the file with --columns",
        )
