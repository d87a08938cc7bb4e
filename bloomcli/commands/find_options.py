"""The options of `find`: see `bloomcli.commands.options`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from bloomcli.commands.arguments import names as tuple_of
from bloomcli.commands.options_base import Options
from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOptions(Options):
    """Options of `find`, except for the values."""

    command: ClassVar[str] = "find"

    column: str = ""
    select: Sequence[str] = ()
    limit: int | None = None
    files_only: bool = False
    maybe: bool = False
    as_files: bool = False
    """Search files of tables as plain files, with the rows that a table has replaced or deleted."""

    @property
    def rows(self) -> bool:
        """Whether the search returns rows, and not only files."""
        return not (self.files_only or self.maybe)

    def checked(self) -> Self:
        """The options with the names as a tuple. Raises UsageError."""
        if not self.column:
            raise UsageError("no column to find values in", hint="name it with --column")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"a limit is 1 or more, not {self.limit}")
        if self.files_only and self.maybe:
            raise UsageError("--files-only and --maybe exclude each other", hint="leave one of them out")
        if (self.files_only or self.maybe) and (self.select or self.limit is not None):
            raise UsageError("--select and --limit are about rows", hint="leave out --files-only and --maybe")
        return replace(self, select=tuple_of(self.select, "columns"))
