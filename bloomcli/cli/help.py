"""bloom help"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bloomcli.cli import COMMANDS, output
from bloomcli.errors import near_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of commands."""
    from click.shell_completion import CompletionItem

    del ctx, param
    return [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]


@click.command(short_help="Show the help of bloom or of a command.")
@click.argument("names", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of bloom, or of a command: the same as `bloom COMMAND --help`.

    A command of `bloom index` has two words: `bloom help index build`.
    """
    above = ctx.parent
    assert above is not None  # noqa: S101  it is a command of the group
    context = above
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            ctx.fail(f"`bloom {context.info_name}` has no commands, and so no {name!r}.")
        subcommand = group.get_command(context, name)
        if subcommand is None:
            commands = group.list_commands(context)
            near = near_names(name, commands, n=1)
            offer = f"Did you mean {near[0]}?" if near else f"The commands are {', '.join(commands)}."
            ctx.fail(f"No such command {name!r}. {offer}")
        context = click.Context(subcommand, info_name=name, parent=context)
    for line in context.command.get_help(context).splitlines():
        output.say(line)
