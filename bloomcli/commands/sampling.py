"""A seeded part of many: which files, and which row groups of a file, a sampled look takes.

Each is ranked by a hash of the seed and its own name, and the first are taken: the same seed takes the same part,
whatever the order of listing, and a file that is new moves others in or out of the part by chance alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeVar

from bloomcli.errors import UsageError

T = TypeVar("T")
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?)(%?)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of a number of things to take: a percentage of them, or a number."""

    text: str
    """As it was asked for: ``5%``, ``200``."""
    amount: float
    percent: bool

    def of(self, total: int) -> int:
        """How many of `total`: a percentage rounded up, at least one, at most all."""
        wanted = math.ceil(total * self.amount / 100 - 1e-9) if self.percent else int(self.amount)
        return min(max(wanted, 1), total)


def share(text: str) -> Share:
    """Read ``5%`` or ``200``. Raises UsageError."""
    found = _SHARE.fullmatch(text.strip())
    if found is not None:
        amount, percent = float(found[1]), bool(found[2])
        if (percent and 0 < amount <= 100) or (not percent and amount >= 1 and amount == int(amount)):
            return Share(text=found[0], amount=amount, percent=percent)
    raise UsageError(f"{text!r} is no sample", hint="a percentage such as 5%, or a number such as 200")


def chosen(names: Sequence[str], part: Share, seed: int) -> set[int]:
    """Positions of the names that the sample takes."""
    key = seed.to_bytes(16, "little", signed=True)
    ranks = [blake2b(name.encode("utf-8", "surrogateescape"), key=key, digest_size=8).digest() for name in names]
    return set(sorted(range(len(names)), key=lambda i: (ranks[i], i))[: part.of(len(names))])
