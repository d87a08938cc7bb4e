"""Findings about a column in several row groups, which they name as short text: ``0-3,7``, or with their stripes
``0:0-3 2:1``.

A column may have no filter in thousands of row groups. They are kept as runs, which are never expanded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bloomcli.model.file import Column, Severity
from bloomcli.model.validate import Finding

_NO_STRIPE: Final = -1
_PART: Final = re.compile(r"(?:(\d{1,18}):)?(\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*)", re.ASCII)


class Run(NamedTuple):
    """Consecutive row groups of one stripe or of the whole file, or consecutive stripes."""

    stripe: int
    first: int
    last: int


def of_numbers(numbers: Iterable[int]) -> str:
    """Text for row groups of a file without stripes, or for stripes."""
    return text(Run(_NO_STRIPE, number, number) for number in numbers)


Unit = tuple[int | None, int]
"""A row group with its stripe; None in a file without stripes."""


def of_units(units: Iterable[Unit]) -> str:
    """Text for row groups."""
    return text(Run(_NO_STRIPE if stripe is None else stripe, group, group) for stripe, group in units)


def finding_of(
    rule: str, message: str, column: Column, units: Sequence[Unit], hint: str, severity: Severity = Severity.ERROR
) -> Finding:
    """The finding of a rule about a column in some row groups."""
    stripe, row_group = units[0]
    return Finding(
        id=rule,
        severity=severity,
        message=message,
        row_group=row_group,
        stripe=stripe,
        column=column.path,
        hint=hint,
        places=of_units(units),
    )


def text(runs: Iterable[Run]) -> str:
    """Runs as text, with adjacent runs merged."""
    by_stripe: dict[int, list[str]] = {}
    for stripe, first, last in _merged(runs):
        by_stripe.setdefault(stripe, []).append(str(first) if first == last else f"{first}-{last}")
    return " ".join(("" if s == _NO_STRIPE else f"{s}:") + ",".join(groups) for s, groups in by_stripe.items())


def read(spelled: str) -> list[Run]:
    """Parse the runs of a text, in order. Raises ValueError for any other text."""
    runs: list[Run] = []
    for part in spelled.split(" "):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{spelled!r} names no row groups")
        for piece in match[2].split(","):
            first, _, last = piece.partition("-")
            runs.append(Run(_NO_STRIPE if match[1] is None else int(match[1]), int(first), int(last or first)))
            if runs[-1].last < runs[-1].first:
                raise ValueError(f"{spelled!r} names no row groups: {piece} runs backwards")
    return _merged(runs)


def within(part: Iterable[Run], whole: Iterable[Run]) -> bool:
    """Whether every row group of `part` is in `whole`."""
    room = _merged(whole)

    def has(run: Run) -> bool:
        at = bisect_right(room, (run.stripe, run.first), key=lambda r: (r.stripe, r.first)) - 1
        return at >= 0 and room[at].stripe == run.stripe and run.last <= room[at].last

    return all(map(has, part))


def _merged(runs: Iterable[Run]) -> list[Run]:
    merged: list[Run] = []
    for run in sorted(runs):
        before = merged[-1] if merged else None
        if before is not None and before.stripe == run.stripe and run.first <= before.last + 1:
            merged[-1] = before._replace(last=max(before.last, run.last))
        else:
            merged.append(run)
    return merged
