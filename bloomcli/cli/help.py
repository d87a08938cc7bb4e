"""bloom help"""

from __future__ import annotations

import click

from bloomcli.cli import COMMANDS, output


@click.command(short_help="Show the help of bloom or of a command.")
@click.argument("command", required=False, type=click.Choice(COMMANDS))
@click.pass_context
def command(ctx: click.Context, command: str | None) -> None:
    """Show the help of bloom, or of a command: the same as `bloom COMMAND --help`."""
    above = ctx.parent
    assert above is not None  # noqa: S101  it is a command of the group
    assert isinstance(above.command, click.Group)  # noqa: S101
    if command is None:
        _say(above.get_help())
        return
    found = above.command.get_command(above, command)
    assert found is not None  # noqa: S101  the choices are the commands
    with click.Context(found, info_name=command, parent=above) as context:
        _say(found.get_help(context))


def _say(text: str) -> None:
    for line in text.splitlines():
        output.say(line)
