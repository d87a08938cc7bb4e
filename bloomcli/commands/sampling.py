"""Seeded samples: which files, and which row groups of a file, `validate` looks at.

Names are ranked by a hash of the seed and the name, and the first are taken: the same seed takes the same part,
whatever the order of listing, and a new file moves others in or out of the part by chance alone. A sample of files is
one of files of known formats: logs and checksums among them don't count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from bloomcli.errors import UsageError
from bloomcli.named_tuple import NamedTuple

T = TypeVar("T")
_SHARE: Final = r"(\d+(?:\.\d+)?)(%?)"


class Share(NamedTuple):
    """The size of a sample: a percentage, or a number."""

    text: str
    """The text from the user: ``5%``, ``200``."""
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
    """Positions of the files in the sample: as many files of a known format as requested, if there are so many.

    Files of other kinds that came up while a number was drawn are in the sample too. A percentage is taken separately
    of the files whose format is sure and of the others, so that no file has to be opened.

    Args:
        names: the files' names.
        part: how many.
        seed: of the sample.
        sure: whether a file counts as one of a known format, without opening it.
        known: opens the file at this position to find out; called for as few files as possible.
    """
    order = _ranked(names, seed)
    if part.percent:
        pools = ([i for i in order if sure[i]], [i for i in order if not sure[i]])
        taken = {i for pool in pools for i in pool[: part.of(len(pool))]}
        return taken if pools[0] else taken | set(_until(1, order, known))
    return set(_until(part.of(len(names)), order, lambda i: sure[i] or known(i)))


def _until(wanted: int, order: Sequence[int], known: Callable[[int], bool]) -> Iterator[int]:
    """The first positions, up to and including the last of so many known files."""
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
