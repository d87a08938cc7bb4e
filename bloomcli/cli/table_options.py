"""The options for tables: the table, the selected part of it, and how its files are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

import click

from bloomcli.cli.options import bundle, given_options, options_of, was_given
from bloomcli.commands.option import ENCRYPTION
from bloomcli.commands.table_options import TableOptions
from bloomcli.errors import UsageError
from bloomcli.hints import listed

F = TypeVar("F", bound=Callable[..., Any])

_CHANGES: Final = ("commit_every", "new_row_ids")
_SNAPSHOTS: Final = ("snapshot", "as_of")
_IN_PLACE: Final = "the table's own commit puts new files in place"
_INSTEAD: Final = {
    "files_from": "--where chooses some of the table's files",
    "output": _IN_PLACE,
    "in_place": _IN_PLACE,
    "force": _IN_PLACE,
    "overwrite": _IN_PLACE,
}
"""Options that select files or the place of new ones, which the table determines, with hints."""


def table_options(*, changes: bool = False, properties: bool = False, values: bool = False) -> Callable[[F], F]:
    """Add the options for tables, combined in one ``table`` argument; None without ``--table``.

    Args:
        changes: the command changes files; other commands read a snapshot.
        properties: the command has ``--from-properties``.
        values: the arguments of the command may be values instead of files.
    """
    names = ("table", "where", *(["from_properties"] * properties), *(_CHANGES if changes else _SNAPSHOTS))

    def add(function: F) -> F:
        @wraps(function)
        def gathered(**arguments: Any) -> Any:
            chosen = {name: arguments.pop(name) for name in names}
            if chosen["table"] is None:
                given = [name for name in names if was_given(name)]
                if given:
                    raise UsageError(f"{_option(given[0])} is for tables", hint="add --table NAME")
                return function(table=None, **arguments)
            _check(arguments, values=values, changes=changes, table=chosen["table"])
            arguments["engine"] = "spark" if changes else _reading_engine(chosen["table"], arguments)
            return function(table=TableOptions(**chosen).checked(), **arguments)

        part = options_of(TableOptions, only=[name for name in names if name != "table"], before="With --table: ")
        return bundle(options_of(TableOptions, only=["table"]), part)(gathered)  # type: ignore[return-value]

    return add


def _option(name: str) -> str:
    """The option's name for a parameter."""
    return "--" + name.replace("_", "-")


def no_files(path: str, hint: str | None = None) -> UsageError:
    """The error for --table with a file."""
    return UsageError("--table takes no files: the table's snapshot names them", path=path, hint=hint)


def _reading_engine(table: str, arguments: dict[str, Any]) -> str:
    """The engine of a command that reads a table."""
    from bloomcli.tables.opening import reads_with_spark

    engine = arguments["engine"] if was_given("engine") else None
    described = was_given("master") or was_given("conf")
    return "spark" if reads_with_spark(table, engine, described=described) else "local"


def _check(arguments: dict[str, Any], *, values: bool, changes: bool, table: str) -> None:
    """Raise UsageError for options that name files or their targets, or another engine."""
    if not values and arguments["files"]:
        raise no_files(arguments["files"][0], hint="--where chooses some of the table's files")
    for name, hint in _INSTEAD.items():
        if name in arguments and was_given(name):
            raise UsageError(f"--table and {_option(name)} exclude each other", hint=hint)
    if changes:
        _check_changes(arguments, table)


def _check_changes(arguments: dict[str, Any], table: str) -> None:
    """Raise UsageError for another engine than Spark, and for a table that isn't named as in Spark."""
    if was_given("engine") and arguments["engine"] != "spark":
        raise UsageError(
            "--table works on Spark: the table's catalog and its commits are those of a Spark session",
            hint="leave out --engine local",
        )
    from bloomcli.tables.opening import check_named_in_sql

    context = click.get_current_context()
    words = tuple(_given_words(context.params))
    check_named_in_sql(table, str(context.info_name), arguments.get("columns") or (), words)


def _given_words(values: Mapping[str, Any]) -> Iterator[str]:
    """The other options of the running command as words, without keys and settings, which may be secret."""
    for one, option in given_options(but={"table", "columns", "conf"}):
        if getattr(one, "group", ENCRYPTION) != ENCRYPTION:
            value = values[str(one.name)]
            for word in value if isinstance(value, tuple) else (value,):
                yield option
                if not isinstance(word, bool):
                    yield listed(word) if one.name == "exclude" else str(word)
