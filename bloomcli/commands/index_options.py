"""The options of `index build` and `index update`: see `bloomcli.commands.options`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from bloomcli.commands.arguments import names as tuple_of
from bloomcli.commands.option import option
from bloomcli.commands.options import FPP, columns_option, rate_option
from bloomcli.commands.options_base import Options
from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(Options):
    """Options of `index build` and `index update`."""

    command: ClassVar[str] = "index"
    heavy: ClassVar[bool] = True

    columns: Sequence[str] = columns_option(
        "The leaf columns to index: whole paths. A file needn't have all of them."
    )
    fpp: float = rate_option(
        FPP, "The mean false-positive rate of the index's filters, as far as the files' filters have it."
    )
    dry_run: bool = option(
        False, "Write nothing; say what would be read, by the files' footers.", "flag", flags=("-n", "--dry-run")
    )

    def checked(self) -> Self:
        """The options with the names as a tuple, without duplicates. Raises UsageError."""
        columns = tuple(dict.fromkeys(tuple_of(self.columns, "columns")))
        if not columns:
            raise UsageError("no columns to index", hint="name them with --columns")
        if not 0 < self.fpp < 1:
            raise UsageError(f"a false-positive rate lies between 0 and 1, not at {self.fpp}")
        return replace(self, columns=columns)
