"""The options of `find`: see `bloomcli.commands.options`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from bloomcli.commands.option import option
from bloomcli.commands.options_base import Options
from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOptions(Options):
    """Options of `find`, except for the values."""

    command: ClassVar[str] = "find"

    column: str = option(
        "", "The leaf column that has the values.", "column", metavar="NAME", flags=("-c", "--column")
    )
    select: Sequence[str] = option(
        (), "Columns of the rows to show: leaf columns and groups.  [default: all]", "columns", metavar="NAMES"
    )
    limit: int | None = option(None, "Show the first N rows only.", "number", metavar="N", least=1)
    files_only: bool = option(False, "Show the paths of files with such rows, and no rows.", "flag")
    maybe: bool = option(False, "Show the paths of files that may have such rows, and read no rows.", "flag")
    as_files: bool = option(
        False, "Search the files of a table as plain files, with rows that the table has replaced or deleted.", "flag"
    )

    @property
    def rows(self) -> bool:
        """Whether the search returns rows, and not only files."""
        return not (self.files_only or self.maybe)

    def checked(self) -> Self:
        """The same options. Raises UsageError."""
        if not self.column:
            raise UsageError("no column to find values in", hint="name it with --column")
        if self.files_only and self.maybe:
            raise UsageError("--files-only and --maybe exclude each other", hint="leave one of them out")
        if (self.files_only or self.maybe) and (self.select or self.limit is not None):
            raise UsageError("--select and --limit are about rows", hint="leave out --files-only and --maybe")
        return self
