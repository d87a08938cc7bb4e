"""Makes the target of one file from the options of a command."""

from __future__ import annotations

from bloomcli.commands.change import Target
from bloomcli.commands.options import Name, WriteOptions


def target_of(options: WriteOptions, *, output: Name | None = None) -> Target:
    """Return the target of a file: `output` if given, else the target in the options."""
    return Target(
        output=options.output if output is None else output,
        in_place=options.in_place,
        overwrite=options.overwrite,
        dry_run=options.dry_run,
        force=options.force,
        mirrored=output is not None,
        command=options.command,
        columns=tuple(options.columns),
    )
