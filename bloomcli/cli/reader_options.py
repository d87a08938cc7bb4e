"""The options that name the readers of the files, for `bloom add` and `bloom validate`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from bloomcli.cli import options
from bloomcli.cli.completion import complete_readers

F = TypeVar("F", bound=Callable[..., Any])


class _ReadersOption(click.Option):
    """An option whose help lists the engines, which are loaded only for the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Do the same as Click, with the names of the engines."""
        from bloomcli.rules.readers import READERS

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} {', '.join(READERS)}.")


def readers_option(text: str) -> Callable[[F], F]:
    """``--readers``; the engines' names follow the help text."""
    return click.option(
        "--readers",
        cls=_ReadersOption,
        metavar="ENGINES",
        multiple=True,
        callback=options.split_names,
        shell_complete=complete_readers,
        help=text,
    )


def table_schema_option(text: str) -> Callable[[F], F]:
    """``--table-schema``."""
    return click.option("--table-schema", type=options.FILE, metavar="FILE", help=text)


def policy_options(text: str) -> Callable[[F], F]:
    """``--policy`` and ``--no-policy``."""

    def both(function: F) -> F:
        function = click.option("--no-policy", is_flag=True, help="Use no policy.")(function)
        return click.option(
            "--policy",
            type=options.FILE,
            metavar="FILE",
            help=text + "  [default: the nearest bloom.toml or pyproject.toml with [tool.bloom]]",
        )(function)

    return both


def policy_file(policy: str | None, *, no_policy: bool) -> str | None:
    """The policy file that the option names, or the nearest one; None if there is none. Raises UsageError."""
    from bloomcli.errors import UsageError

    if no_policy and policy is not None:
        raise UsageError("--policy and --no-policy exclude each other", hint="leave one of them out")
    return None if no_policy else policy or _nearest()


def _nearest() -> str | None:
    from pathlib import Path

    from bloomcli.policy.policy_file import FoundPolicy, find
    from bloomcli.storage.os_errors import convert_os_errors

    with convert_os_errors():
        found = find(Path())
        return None if found is None else FoundPolicy(os.path.relpath(found))
