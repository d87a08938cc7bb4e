"""From the options of a command that changes files to the target of one file."""

from __future__ import annotations

from bloomcli.commands.change import Target
from bloomcli.commands.options import Name, WriteOptions


def target_of(options: WriteOptions, *, output: Name | None = None) -> Target:
    """Where a file goes: to `output` if it is given, else where the options say."""
    return Target(
        output=options.output if output is None else output,
        in_place=options.in_place,
        overwrite=options.overwrite,
        dry_run=options.dry_run,
        force=options.force,
    )
