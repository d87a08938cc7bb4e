"""The options that all commands have: see `bloomcli.commands.options`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from bloomcli.model.names import ColumnNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that all commands have."""

    command: ClassVar[str]
    """The command's name, which is its module's too."""
    heavy: ClassVar[bool] = False
    """Rows hold more than reports keep (`FileRow.reported`): the driver takes them one by one."""

    names: ColumnNames | None = None
    """How the table that the files belong to names their columns: `columns` and a policy have the table's paths then.
    No user gives them, they come from the table."""

    def checked(self) -> Self:
        """The same options, complete.

        Raises:
            UsageError: options that contradict each other, a figure out of range, a file that can't be read.
        """
        return self
