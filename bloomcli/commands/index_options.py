"""The options of `index build` and `index update`: see `bloomcli.commands.options`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from bloomcli.commands.arguments import names as tuple_of
from bloomcli.commands.options import FPP
from bloomcli.commands.options_base import Options
from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(Options):
    """Options of `index build` and `index update`."""

    command: ClassVar[str] = "index"
    heavy: ClassVar[bool] = True

    columns: Sequence[str] = ()
    """Leaf paths. A file needn't have all of them."""
    fpp: float = FPP
    dry_run: bool = False

    def checked(self) -> Self:
        """The options with the names as a tuple, without duplicates. Raises UsageError."""
        columns = tuple(dict.fromkeys(tuple_of(self.columns, "columns")))
        if not columns:
            raise UsageError("no columns to index", hint="name them with --columns")
        if not 0 < self.fpp < 1:
            raise UsageError(f"a false-positive rate lies between 0 and 1, not at {self.fpp}")
        return replace(self, columns=columns)
