"""Resolves the name of the single column that a command works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomcli.commands.columns import excluded, select
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.hints import quoted
from bloomcli.model.file import Column

_SHOWN: Final = 8


def only_column(file: FilterFile, name: str | None, *, purpose: str, exclude: Sequence[str] = ()) -> Column:
    """The named column; without a name the only one that has filters and isn't excluded.

    Raises UsageError, UnknownColumn.
    """
    path = file.source.path
    if name is not None:
        found = select(file.columns, [name], path=path, exclude=exclude)
        if len(found) > 1:
            _refuse_same_names(found, path, purpose)
            raise UsageError(
                f"{name!r} means {len(found)} columns; {purpose} takes one",
                path=path,
                hint="one of " + _names(found),
            )
        return found[0]
    found_in = file.filtered_columns() - excluded(file.columns, exclude, path=path, lacking=file.missing_columns)
    filtered = [c for c in file.columns if c.index in found_in and not c.not_in_table]
    if len(filtered) == 1:
        return filtered[0]
    if not filtered:
        raise UsageError(
            "no column has a filter",
            path=path,
            hint=f"name a column with --column: {_names(file.columns)};"
            f" `bloom advise {quoted(path)}` says which need filters",
        )
    _refuse_same_names(filtered, path, purpose)
    raise UsageError(
        f"{len(filtered)} columns have filters",
        path=path,
        hint="name one with --column: " + _names(filtered),
    )


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(list(dict.fromkeys(c.path for c in columns))[:_SHOWN])


def _refuse_same_names(columns: Sequence[Column], path: str, purpose: str) -> None:
    """Raise UsageError if the columns have the same name, because an answer wouldn't show which column it is
    about."""
    if len({c.path for c in columns}) == 1:
        raise UsageError(
            f"{len(columns)} columns are called {columns[0].path!r}; {purpose} can't tell which of them is requested",
            path=path,
            hint="ask about one of them in a file that was written with other names; validate --deep checks them all",
        )
