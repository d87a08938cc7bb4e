"""The options of `index build` and `index update`: see `bloomcli.commands.options`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from bloomcli.commands.option import Checked, option
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
        """The options with the names without duplicates. Raises UsageError."""
        columns = tuple(dict.fromkeys(self.columns))
        if not columns:
            raise UsageError("no columns to index", hint="name them with --columns")
        return replace(self, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTarget(Checked):
    """The index that `index build` and `index update` write."""

    output: str | os.PathLike[str] | None = option(
        None, "The index to write.", "output", metavar="INDEX", flags=("-o", "--output")
    )
    overwrite: bool = option(False, "Let --output replace an existing file.", "flag")
    force: bool = option(False, "Replace an index in a store even if an object lock is lost.", "flag")

    @property
    def path(self) -> str:
        """The index; empty if a dry run has none."""
        return os.fspath(self.output or "")

    def checked(self, *, dry_run: bool, hint: str = "give output, or dry_run") -> Self:
        """The same target. Raises UsageError if an index is to be written and has no name."""
        if not self.output and not dry_run:
            raise UsageError("nowhere to write to", hint=hint)
        return self
