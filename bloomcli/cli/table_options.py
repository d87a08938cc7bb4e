"""The options for tables: the table, the selected part of it, and how its files are replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from bloomcli.cli.options import was_given
from bloomcli.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "table": click.option(
        "--table",
        metavar="NAME",
        help="Work on the data files of an Iceberg or Delta table, named as in Spark SQL, instead of FILE. Implies"
        " --engine spark.",
    ),
    "where": click.option(
        "--where",
        metavar="SQL",
        help="With --table: only files that may hold rows of this condition, according to partitions and statistics.",
    ),
    "from_properties": click.option(
        "--from-properties",
        is_flag=True,
        help="With --table: require the filters that the table's properties request (Iceberg:"
        " write.parquet.bloom-filter-*; Delta: parquet.bloom.filter.*).",
    ),
    "commit_every": click.option(
        "--commit-every",
        type=click.IntRange(min=1),
        metavar="N",
        help="With --table: replace N files by each commit.  [default: 1000 files or 64 GiB]",
    ),
    "new_row_ids": click.option(
        "--new-row-ids",
        is_flag=True,
        help="With --table: give rows of an Iceberg v3 table new row ids, instead of writing columns that keep them.",
    ),
    "snapshot": click.option(
        "--snapshot",
        type=int,
        metavar="ID",
        help="With --table: the files of this snapshot (Iceberg) or version (Delta).  [default: the newest]",
    ),
    "as_of": click.option(
        "--as-of",
        metavar="TIME",
        help="With --table: the files of the snapshot at this time, such as 2026-11-01T12:00:00Z.",
    ),
}
"""The options, by the fields of `TableOptions`."""
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
            from bloomcli.commands.table_options import TableOptions

            _check(arguments, values=values)
            arguments["engine"] = "spark"
            return function(table=TableOptions(**chosen).checked(), **arguments)

        found: Any = gathered
        for name in reversed(names):
            found = _OPTIONS[name](found)
        return found  # type: ignore[no-any-return]

    return add


def _option(name: str) -> str:
    """The option's name for a parameter."""
    return "--" + name.replace("_", "-")


def no_files(path: str, hint: str | None = None) -> UsageError:
    """The error for --table with a file."""
    return UsageError("--table takes no files: the table's snapshot names them", path=path, hint=hint)


def _check(arguments: dict[str, Any], *, values: bool) -> None:
    """Raise UsageError for options that name files or their targets, or another engine."""
    if not values and arguments["files"]:
        raise no_files(arguments["files"][0], hint="--where chooses some of the table's files")
    for name, hint in _INSTEAD.items():
        if name in arguments and was_given(name):
            raise UsageError(f"--table and {_option(name)} exclude each other", hint=hint)
    if was_given("engine") and arguments["engine"] != "spark":
        raise UsageError(
            "--table works on Spark: the table's catalog and its commits are those of a Spark session",
            hint="leave out --engine local",
        )
