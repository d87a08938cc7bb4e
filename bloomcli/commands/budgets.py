"""The size budget of new filters: ``2%`` of the files, ``64MiB``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bloomcli.errors import UsageError

_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The maximum total size of all new filters."""

    amount: float
    """Bytes, or a share of the bytes of all files, above 0."""
    relative: bool

    def of(self, total: int) -> int:
        """The budget in bytes, for files of `total` bytes."""
        return int(self.amount * total) if self.relative else int(self.amount)


def read_budget(text: str) -> Budget:
    """Read ``2%``, ``64MiB`` or a number of bytes. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|b|[kmgt](?:i?b)?)?\s*", text, re.ASCII | re.IGNORECASE)
    if found is not None and float(found[1]) > 0:
        if found[2] == "%":
            if float(found[1]) <= 100:
                return Budget(amount=float(found[1]) / 100, relative=True)
        else:
            return Budget(amount=float(found[1]) * _UNITS[(found[2] or "")[:1].lower()], relative=False)
    raise UsageError(
        f"{text!r} is not a budget",
        hint="give a share of the files' bytes above 0% and up to 100%, such as 2%, or bytes, such as 64MiB",
    )
