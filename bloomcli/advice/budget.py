"""Chooses filters within a budget of bytes: of which columns, and each column's at which size.

Each column has several sizes, of which at most one is chosen; each size has its bytes and its gain, the bytes that
all lookups of the column together read less. To find the set that gains most within the budget is a knapsack problem
with multiple choices. It is solved exactly for as many columns as lakes usually have:

    Column after column, all sets of sizes are made that fit and that no other set beats, which is one that takes no
    more bytes and gains no less (dynamic programming over the Pareto frontier).

If more than `MOST_SETS` sets would have to be made, it is solved approximately:

1. Sizes above the budget, and sizes that gain nothing, are left out. Of each column, the sizes on the upper convex
   hull of gain over bytes are kept: from one to the next, each further byte gains less.
2. The steps from one size of a hull to the next are taken in the order of their gain per byte, over all columns. A
   step that doesn't fit ends its column; the steps of other columns go on.
3. If a single column's best size gains more than all of these together, it is chosen instead.
4. While any column has a size, on its hull or not, that gains more and still fits, the one that gains most is taken.

`Choice.bound` is the gain of the relaxed problem then, in which the first step that doesn't fit is taken in part: no
set within the budget gains more. The chosen set gains at least half of it, by step 3, and misses at most the gain of
that one step, by step 2. Sources: Sinha and Zoltners, "The Multiple-Choice Knapsack Problem", Operations Research 27
(1979); Kellerer, Pferschy and Pisinger, "Knapsack Problems" (2004), chapters 2 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from bloomcli.named_tuple import NamedTuple

MOST_SETS: Final = 100_000
"""Sets of sizes to make for an exact solution, which takes less than a second."""
_ROUNDING: Final = 1e-9
"""Sums of floats differ in their last digits from the same sums in another order."""


class Size(NamedTuple):
    """One size of a column's filters."""

    nbytes: float
    gain: float
    """Bytes that all lookups of the column together read less."""


class Choice(NamedTuple):
    """The chosen sizes."""

    sizes: tuple[int | None, ...]
    """Of each column, the position of its size; None for no filter."""
    nbytes: float
    gain: float
    bound: float
    """No choice within the budget gains more."""

    @property
    def gap(self) -> float:
        """How much more the best choice gains, at most: as a share of this one's gain."""
        return max(self.bound / self.gain - 1, 0.0) if self.gain else 0.0


class _Set(NamedTuple):
    """Sizes of the first columns."""

    nbytes: float
    gain: float
    position: int | None
    """Of the last column's size; None for no filter."""
    before: _Set | None
    """The sizes of the columns before the last one; None where there is no column."""


class _Step(NamedTuple):
    """From one size on a column's hull to the next larger one."""

    column: int
    position: int
    """Of the larger size."""
    nbytes: float
    gain: float


def choose(columns: Sequence[Sequence[Size]], budget: float) -> Choice:
    """The sizes that gain most within the budget, as this module describes. Of sizes that are alike, the first.

    Args:
        columns: of each column, its sizes in any order.
        budget: bytes, at least 0.
    """
    columns = [_without_doubles(sizes) for sizes in columns]
    return exact(columns, budget) or approximate(columns, budget)


def _without_doubles(sizes: Sequence[Size]) -> list[Size]:
    """The sizes; one that is like an earlier one, but for rounding, gains nothing."""
    found: list[Size] = []
    for size in sizes:
        double = any(
            one.nbytes == size.nbytes and not _more(size.gain, one.gain) and not _more(one.gain, size.gain)
            for one in found
        )
        found.append(Size(size.nbytes, 0.0) if double else size)
    return found


def exact(columns: Sequence[Sequence[Size]], budget: float, *, most: int = MOST_SETS) -> Choice | None:
    """The best choice; None if more than `most` sets would have to be made."""
    made = 0
    sets = [_Set(0.0, 0.0, None, None)]
    for sizes in columns:
        usable = [(position, size) for position, size in enumerate(sizes) if size.gain > 0]
        made += len(sets) * (len(usable) + 1)
        if made > most:
            return None
        larger = [
            _Set(one.nbytes + size.nbytes, one.gain + size.gain, position, one)
            for one in sets
            for position, size in usable
            if _fits(one.nbytes + size.nbytes, budget)
        ]
        without = [_Set(one.nbytes, one.gain, None, one) for one in sets]
        sets = _unbeaten([*without, *larger])
    best = max(sets, key=lambda one: one.gain)
    chosen: list[int | None] = []
    at: _Set | None = best
    while at is not None and at.before is not None:
        chosen.append(at.position)
        at = at.before
    return Choice(tuple(reversed(chosen)), best.nbytes, best.gain, best.gain)


def _unbeaten(sets: list[_Set]) -> list[_Set]:
    """The sets for which no other one takes no more bytes and gains no less, with growing bytes."""
    kept: list[_Set] = []
    for one in sorted(sets, key=lambda one: (one.nbytes, -one.gain)):
        if not kept or _more(one.gain, kept[-1].gain):
            kept.append(one)
    return kept


def approximate(columns: Sequence[Sequence[Size]], budget: float) -> Choice:
    """A choice that gains at least half of the best one, and the bound of what the best one gains."""
    steps = [step for index, sizes in enumerate(columns) for step in _steps(index, sizes, budget)]
    steps.sort(key=lambda step: -step.gain / step.nbytes if step.nbytes else float("-inf"))
    chosen, bound = _by_steps(steps, len(columns), budget)
    single = _best_single(columns, budget)
    if single is not None and _more(_gain(columns, single), _gain(columns, chosen)):
        chosen = single
    _fill(columns, chosen, budget)
    return Choice(tuple(chosen), _nbytes(columns, chosen), _gain(columns, chosen), bound)


def _steps(column: int, sizes: Sequence[Size], budget: float) -> Iterator[_Step]:
    """The steps along a column's upper convex hull, from no filter on."""
    hull: list[tuple[int, Size]] = [(-1, Size(0.0, 0.0))]
    usable = [(i, size) for i, size in enumerate(sizes) if size.gain > 0 and _fits(size.nbytes, budget)]
    for position, size in sorted(usable, key=lambda item: (item[1].nbytes, -item[1].gain)):
        if not _more(size.gain, hull[-1][1].gain):
            continue
        while len(hull) > 1 and _slope(hull[-2][1], hull[-1][1]) <= _slope(hull[-1][1], size):
            hull.pop()
        hull.append((position, size))
    for (_, smaller), (position, larger) in pairwise(hull):
        yield _Step(column, position, larger.nbytes - smaller.nbytes, larger.gain - smaller.gain)


def _slope(smaller: Size, larger: Size) -> float:
    more = larger.nbytes - smaller.nbytes
    return (larger.gain - smaller.gain) / more if more else float("inf")


def _by_steps(steps: Sequence[_Step], columns: int, budget: float) -> tuple[list[int | None], float]:
    """Take the steps that fit, in their order. Gives the sizes, and the gain of the relaxed problem."""
    chosen: list[int | None] = [None] * columns
    ended: set[int] = set()
    used = gain = 0.0
    bound = None
    for step in steps:
        if step.column in ended:
            continue
        if _fits(used + step.nbytes, budget):
            chosen[step.column] = step.position
            used += step.nbytes
            gain += step.gain
        else:
            if bound is None:
                bound = gain + step.gain * max(budget - used, 0.0) / step.nbytes
            ended.add(step.column)
    return chosen, gain if bound is None else bound


def _best_single(columns: Sequence[Sequence[Size]], budget: float) -> list[int | None] | None:
    """The one size that gains most, alone; None if none fits."""
    fitting = [
        (size.gain, index, position)
        for index, sizes in enumerate(columns)
        for position, size in enumerate(sizes)
        if size.gain > 0 and _fits(size.nbytes, budget)
    ]
    if not fitting:
        return None
    _, index, position = max(fitting)
    alone: list[int | None] = [None] * len(columns)
    alone[index] = position
    return alone


def _fill(columns: Sequence[Sequence[Size]], chosen: list[int | None], budget: float) -> None:
    """Exchange a column's size for one that gains more and fits, as long as there is one."""
    while True:
        rest = budget - _nbytes(columns, chosen)
        better = []
        for index, sizes in enumerate(columns):
            at = chosen[index]
            now = Size(0.0, 0.0) if at is None else sizes[at]
            better += [
                (size.gain - now.gain, index, position)
                for position, size in enumerate(sizes)
                if _more(size.gain, now.gain) and _fits(size.nbytes - now.nbytes, rest)
            ]
        if not better:
            return
        _, index, position = max(better)
        chosen[index] = position


def _fits(nbytes: float, budget: float) -> bool:
    return nbytes <= budget + _ROUNDING * max(abs(budget), abs(nbytes))


def _more(gain: float, other: float) -> bool:
    return gain - other > _ROUNDING * abs(gain)


def _nbytes(columns: Sequence[Sequence[Size]], chosen: Sequence[int | None]) -> float:
    return sum(sizes[at].nbytes for sizes, at in zip(columns, chosen, strict=True) if at is not None)


def _gain(columns: Sequence[Sequence[Size]], chosen: Sequence[int | None]) -> float:
    return sum(sizes[at].gain for sizes, at in zip(columns, chosen, strict=True) if at is not None)
