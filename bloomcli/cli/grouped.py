"""Commands whose help has its options in groups, the common ones first. ``-h`` shows the common ones alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import click

from bloomcli.commands.option import GROUPS, OUTPUT, WORK

_EXAMPLES: Final = 2
"""The number of examples that ``-h`` shows."""
_NAME_WIDTH: Final = 26
"""Columns of the options' names; longer ones have a line of their own."""


class GroupedOption(click.Option):
    """An option with its group of the help, and whether it is a common one, which ``-h`` shows."""

    def __init__(self, *args: Any, group: str = WORK, common: bool = False, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.group, self.common = group, common
        if isinstance(self.type, click.IntRange):
            self.metavar = self.metavar or "N"

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Do the same as Click, without the range: errors name it."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=GroupedOption)


def _print_short(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """Print the short help."""
    del param
    if wanted and not ctx.resilient_parsing and isinstance(ctx.command, GroupedCommand):
        sys.stdout.write(ctx.command.short_help_text(ctx) + "\n")  # Click's `echo` is for terminals in UTF-8
        ctx.exit()


class GroupedCommand(click.Command):
    """A command with groups in its help, and with a short help."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        short = "Show the common options and two examples, and exit."
        callback: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": _print_short}
        self.params.append(GroupedOption(["-h"], is_flag=True, group=OUTPUT, help=short, **callback))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by groups, in each the common ones first."""
        for title, options in self.grouped(ctx):
            with formatter.section(title):
                _write(formatter, [record for param in options if (record := param.get_help_record(ctx)) is not None])

    def grouped(self, ctx: click.Context) -> list[tuple[str, list[click.Option]]]:
        """The groups of the help that have options, with these. Hidden options are left out."""
        groups: dict[str, list[click.Option]] = {title: [] for title in GROUPS}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and not param.hidden:
                group = OUTPUT if "--help" in param.opts else getattr(param, "group", WORK)
                groups[group].append(param)
        return [(title, sorted(options, key=_is_rare)) for title, options in groups.items() if options]

    def short_help_text(self, ctx: click.Context) -> str:
        """The usage, the common options with the first sentence about each, and two examples."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(self.get_short_help_str(limit=200))
        common = [param for _, options in self.grouped(ctx) for param in options if not _is_rare(param)]
        if common:
            with formatter.section("Common options"):
                _write(formatter, [_shortened(param, ctx) for param in common])
        examples = [line for line in (self.epilog or "").splitlines() if line.startswith("  bloom ")]
        with formatter.section("Examples"):
            formatter.write("".join(f"{line}\n" for line in examples[:_EXAMPLES]))
        formatter.write_paragraph()
        formatter.write_text(f"`{ctx.command_path} --help` shows all options.")
        return formatter.getvalue().rstrip("\n")


def _is_rare(param: click.Option) -> bool:
    return not getattr(param, "common", False)


def _shortened(param: click.Option, ctx: click.Context) -> tuple[str, str]:
    """The name of an option and the first sentence about it."""
    name, text = param.get_help_record(ctx) or ("", "")
    sentence, _, default = text.partition("  [")
    return name, re.split(r"(?<=\.) ", sentence, maxsplit=1)[0] + (default and f"  [{default}")


def _write(formatter: click.HelpFormatter, rows: Sequence[tuple[str, str]]) -> None:
    """Write names and texts, with the texts of all groups below each other."""
    formatter.write_dl([(name.ljust(_NAME_WIDTH), text) for name, text in rows], col_max=_NAME_WIDTH)


command = partial(click.command, cls=GroupedCommand)


class Group(click.Group):
    """A group of such commands."""

    command_class = GroupedCommand
