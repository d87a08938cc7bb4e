"""The size budget of new filters, ``2%`` of the files or ``64MiB``, and seeded samples of files and row groups.

Names are ranked by a hash of the seed and the name, and the first ones are selected. So the same seed selects the
same part in any order of listing, and a new file changes the selection of others by chance alone. A sample of files
counts only files of known formats, not logs and checksums next to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

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
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|b|[kmgt](?:i?b)?)?\s*", text, re.ASCII | re.IGNORECASE)
    if match is not None and float(match[1]) > 0:
        if match[2] == "%":
            if float(match[1]) <= 100:
                return Budget(amount=float(match[1]) / 100, relative=True)
        else:
            return Budget(amount=float(match[1]) * _UNITS[(match[2] or "")[:1].lower()], relative=False)
    raise UsageError(
        f"{text!r} is not a budget",
        hint="give a share of the files' bytes above 0% and up to 100%, such as 2%, or bytes, such as 64MiB",
    )


T = TypeVar("T")
_SHARE: Final = r"(\d+(?:\.\d+)?)(%?)"


class Share(NamedTuple):
    """The size of a sample: a percentage or a number."""

    text: str
    """The text from the user: ``5%``, ``200``."""
    amount: float
    percent: bool

    def of(self, total: int) -> int:
        """The number of items out of `total`: a percentage rounded up, at least one, at most all."""
        wanted = math.ceil(total * self.amount / 100 - 1e-9) if self.percent else int(self.amount)
        return min(max(wanted, 1), total)


def share(sample: str | int) -> Share:
    """Read ``5%`` or ``200``, which Python also gives as a number. Raises UsageError."""
    text = str(sample)
    match = re.fullmatch(_SHARE, text.strip(), re.ASCII)
    if match is not None:
        amount, percent = float(match[1]), bool(match[2])
        if (percent and 0 < amount <= 100) or (not percent and amount >= 1 and amount == int(amount)):
            return Share(text=match[0], amount=amount, percent=percent)
    raise UsageError(
        f"{text!r} is not a valid sample",
        hint="give a percentage above 0% and up to 100%, such as 5%, or a whole number from 1, such as 200",
    )


def chosen(names: Sequence[str], part: Share, seed: int) -> set[int]:
    """Positions of the names in the sample."""
    return set(_ranked(names, seed)[: part.of(len(names))])


def chosen_files(
    names: Sequence[str], part: Share, seed: int, *, sure: Sequence[bool], known: Callable[[int], bool]
) -> set[int]:
    """Positions of the files in the sample: as many files of a known format as requested, if that many exist.

    If the sample is a number, files of other kinds that were drawn on the way are in the sample, too. A percentage is
    taken separately of the files whose format is certain and of the others, so that no file has to be opened.

    Args:
        names: the files' names.
        part: the size of the sample.
        seed: the seed of the sample.
        sure: for each file, whether its format is known without opening it.
        known: opens the file at a position and returns whether its format is known; called for as few files as
            possible.
    """
    order = _ranked(names, seed)
    if part.percent:
        pools = ([i for i in order if sure[i]], [i for i in order if not sure[i]])
        positions = {i for pool in pools for i in pool[: part.of(len(pool))]}
        return positions if pools[0] else positions | set(_until(1, order, known))
    return set(_until(part.of(len(names)), order, lambda i: sure[i] or known(i)))


def _until(wanted: int, order: Sequence[int], is_known: Callable[[int], bool]) -> Iterator[int]:
    """Yield positions until `wanted` known files are among them."""
    for position in order:
        if wanted <= 0:
            return
        yield position
        wanted -= is_known(position)


def _ranked(names: Sequence[str], seed: int) -> list[int]:
    from hashlib import blake2b

    key = seed.to_bytes(16, "little", signed=True)
    ranks = [blake2b(name.encode("utf-8", "surrogateescape"), key=key, digest_size=8).digest() for name in names]
    return sorted(range(len(names)), key=lambda i: (ranks[i], i))
