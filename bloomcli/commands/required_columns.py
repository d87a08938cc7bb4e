"""The columns in which a policy requires filters, for `bloom add` without `--columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from bloomcli.commands.columns import excluded
from bloomcli.errors import NothingToFilter, UnknownColumn, near_names
from bloomcli.formats.base import ColumnSelection, FilterFile
from bloomcli.formats.table_names import why_missing
from bloomcli.model.file import Column, Severity
from bloomcli.policy.globs import matches
from bloomcli.policy.policy import FilePolicy, Policy

_GLOB: Final = frozenset("*?[")


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
    found, left_out = ColumnSelection(), []
    for column in file.leaves:
        if (
            column.not_in_table
            or column.index in out
            or not matches(names, column.path)
            or not _counts(rules, column.path)
        ):
            continue
        reason = None if column.path in names else column.unfilterable or why_not(column)
        if reason is None:
            found.append(column)
        else:
            left_out.append(replace(column, unfilterable=reason))
    found.left_out = tuple(left_out)
    lacking = [p for p in file.missing_columns if matches(names, p) and _counts(rules, p) and not matches(exclude, p)]
    found.missing_columns = tuple(p for p in lacking if p in names or not found)
    if not found and not left_out and found.missing_columns:
        raise NothingToFilter(why_missing(found.missing_columns), path=path)
    if not found:
        first = f"{left_out[0].path}: {left_out[0].unfilterable}" if left_out else None
        raise NothingToFilter(f"{_title(policy)} requires no filter of this file", path=path, hint=first)
    return found


def _title(policy: Policy) -> str:
    return "the policy" if policy.path is None else f"the policy {policy.path}"


def _counts(rules: FilePolicy, column: str) -> bool:
    return rules.counts("filter-required", Severity.ERROR, column)


def _check_names(file: FilterFile, names: Sequence[str], policy: Policy) -> None:
    """Raise UnknownColumn for a name that isn't a glob and that the file doesn't have."""
    paths = {column.path for column in file.columns if not column.not_in_table}.union(file.missing_columns)
    for name in names:
        if name not in paths and not _GLOB & set(name):
            near = near_names(name, paths)
            raise UnknownColumn(
                f"{_title(policy)} requires a filter on column {name!r}, which the file doesn't have",
                path=file.source.path,
                hint=f"did you mean {', '.join(near)}?" if near else "--columns names columns of the file",
            )
