"""Computes how many row groups, or bytes, remain for a value after min/max statistics, over all files."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli.advice.statistics import Floats


class Range(NamedTuple):
    """One row group: its comparable bounds, and its weight (1, or its bytes)."""

    low: Any
    high: Any
    weight: float


class Coverage:
    """The weight of the row groups whose range contains a value.

    Args:
        ranges: the ranges of row groups that have values. Bounds of None, and a lower bound above the upper one,
            exclude no value.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        known = [r for r in ranges if r.low is not None and r.high is not None and r.low <= r.high]
        self.total = sum(r.weight for r in ranges)
        self.always = self.total - sum(r.weight for r in known)
        """The weight of the row groups that exclude no value."""
        by_low, by_high = sorted(known, key=lambda r: r.low), sorted(known, key=lambda r: r.high)
        self._lows, self._highs = [r.low for r in by_low], [r.high for r in by_high]
        self._below = [0.0, *accumulate(r.weight for r in by_low)]
        self._above = [0.0, *accumulate(r.weight for r in by_high)]
        self._ends = sorted({*self._lows, *self._highs})

    def at(self, key: Any) -> float:
        """The weight of the row groups that may have a value; the total if the value is None."""
        if key is None:
            return self.total
        begun = self._below[bisect_right(self._lows, key)]
        return self.always + begun - self._above[bisect_left(self._highs, key)]

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The lowest and the highest bound; None without bounds."""
        return (self._ends[0], self._ends[-1]) if self._ends else None

    def extremes(self, hulls: Sequence[tuple[Any, Any]]) -> tuple[Floats, Floats]:
        """For each range of values, the lowest and the highest weight of a value in it. Bounds of None stand for all
        values."""
        count = len(self._ends)
        if not count:
            full = np.full(len(hulls), self.total)
            return full, full.copy()
        profile = np.empty(2 * count - 1)  # at each end, and between neighbouring ends
        profile[::2] = [self.at(end) for end in self._ends]
        profile[1::2] = [
            self.always + self._below[bisect_right(self._lows, end)] - self._above[bisect_right(self._highs, end)]
            for end in self._ends[:-1]
        ]
        spots = [self._spots(low, high) for low, high in hulls]
        first = np.array([a for a, _ in spots], np.intp)
        last = np.array([max(a, b) for a, b in spots], np.intp)
        return _over_ranges(profile, first, last, np.minimum), _over_ranges(profile, first, last, np.maximum)

    def _spots(self, low: Any, high: Any) -> tuple[int, int]:
        if low is None or high is None:
            return 0, 2 * len(self._ends) - 2
        return 2 * bisect_left(self._ends, low), 2 * (bisect_right(self._ends, high) - 1)


def _over_ranges(profile: Floats, first: NDArray[np.intp], last: NDArray[np.intp], function: Any) -> Floats:
    """The extreme of each range of positions, by a sparse table: each range is covered by two overlapping ranges
    whose length is a power of two."""
    found: Floats = np.empty(len(first))
    lengths = last - first + 1
    powers = np.frexp(lengths)[1] - 1
    level = profile
    for power in range(int(powers.max(initial=0)) + 1):
        here = powers == power
        found[here] = function(level[first[here]], level[last[here] - (1 << power) + 1])
        step = 1 << power
        if len(level) <= step:
            break
        level = function(level[:-step], level[step:])
    return found
