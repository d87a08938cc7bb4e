"""Lets commands take negative numbers as arguments, not as options."""

from __future__ import annotations

import re
from typing import Final

import click

_NEGATIVE: Final = re.compile(r"-(\d|\.\d|inf)", re.IGNORECASE)
_MARK: Final = "\0"
"""The prefix of negative numbers while Click parses. Arguments of a process can't contain it."""


class NegativesCommand(click.Command):
    """A command that takes negative numbers as values, not as options. `unmarked` restores its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Mark arguments that look like negative numbers. No option of such a command does."""
        return super().parse_args(ctx, [_MARK + a if _NEGATIVE.match(a) else a for a in args])


def unmarked(argument: str) -> str:
    """An argument as the user wrote it."""
    return argument.removeprefix(_MARK)
