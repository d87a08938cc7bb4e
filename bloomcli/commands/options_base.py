"""The options that all commands have: see `bloomcli.commands.options`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from bloomcli.commands.option import Checked
from bloomcli.model.schema import ColumnNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Checked):
    """The options that all commands have."""

    command: ClassVar[str]
    """The name of the command and of its module."""
    heavy: ClassVar[bool] = False
    """Rows hold more than reports keep (`FileRow.reported`), so the driver processes them one by one."""

    names: ColumnNames | None = None
    """The names that the files' table has for their columns. `columns` and the policy then contain the table's paths.
    These names come from the table, not from the user."""

    def checked(self) -> Self:
        """The same options, complete.

        Raises:
            UsageError: options that contradict each other, a figure out of range, a file that can't be read.
        """
        return self
