"""A seeded part of many: which files, and which row groups of a file, a sampled look takes.

Each is ranked by a hash of the seed and its own name, and the first are taken: the same seed takes the same part,
whatever the order of listing, and a file that is new moves others in or out of the part by chance alone. Of files,
those of a known format are meant: logs and checksums beside them are no part of what a sample is to be of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from bloomcli.errors import UsageError

T = TypeVar("T")
_SHARE: Final = r"(\d+(?:\.\d+)?)(%?)"


class Share(NamedTuple):
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
    found = re.fullmatch(_SHARE, text.strip(), re.ASCII)
    if found is not None:
        amount, percent = float(found[1]), bool(found[2])
        if (percent and 0 < amount <= 100) or (not percent and amount >= 1 and amount == int(amount)):
            return Share(text=found[0], amount=amount, percent=percent)
    raise UsageError(f"{text!r} is no sample", hint="a percentage such as 5%, or a number such as 200")


def chosen(names: Sequence[str], part: Share, seed: int) -> set[int]:
    """Positions of the names that the sample takes."""
    return set(_ranked(names, seed)[: part.of(len(names))])


def chosen_files(
    names: Sequence[str], part: Share, seed: int, *, sure: Sequence[bool], known: Callable[[int], bool]
) -> set[int]:
    """Positions of the files that the sample takes: as many of a known format as it asks for, if there are.

    Files of other kinds that came up while a number was drawn are among them. A percentage is taken of the files
    whose format is sure and of the others apart, so that none of these need be opened.

    Args:
        names: the files' names.
        part: how many.
        seed: of the sample.
        sure: whether a file is surely of a known format, or to be told of where it isn't.
        known: opens the file at this position to tell; asked of as few as will do.
    """
    order = _ranked(names, seed)
    if part.percent:
        pools = ([i for i in order if sure[i]], [i for i in order if not sure[i]])
        taken = {i for pool in pools for i in pool[: part.of(len(pool))]}
        return taken if pools[0] else taken | set(_until(1, order, known))
    return set(_until(part.of(len(names)), order, lambda i: sure[i] or known(i)))


def _until(wanted: int, order: Sequence[int], known: Callable[[int], bool]) -> Iterator[int]:
    """The first positions, up to the one with which so many are known."""
    for position in order:
        if wanted <= 0:
            return
        yield position
        wanted -= known(position)


def _ranked(names: Sequence[str], seed: int) -> list[int]:
    from hashlib import blake2b

    key = seed.to_bytes(16, "little", signed=True)
    ranks = [blake2b(name.encode("utf-8", "surrogateescape"), key=key, digest_size=8).digest() for name in names]
    return sorted(range(len(names)), key=lambda i: (ranks[i], i))
