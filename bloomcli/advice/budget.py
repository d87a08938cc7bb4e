"""Chooses which columns get filters, and at which sizes, within a budget of bytes.

Each column has several sizes, of which at most one is chosen. Each size has its bytes and its gain: the bytes that
all lookups of the column together read less. Finding the set of sizes with the highest gain within the budget is the
multiple-choice knapsack problem. For the usual number of columns it is solved exactly, by dynamic programming over
the Pareto frontier:

    Column by column, make all sets of sizes that fit into the budget, and drop a set if another one takes no more
    bytes and gains no less.

If this makes more than `MOST_SETS` sets, the problem is solved approximately:

1. Leave out sizes above the budget, and sizes without a gain. For each column, keep the sizes on the upper convex
   hull of gain over bytes: from one size to the next, the gain per additional byte decreases.
2. Take the steps from one size of a hull to the next in the order of their gain per byte, over all columns. A step
   that doesn't fit ends its column; the steps of other columns continue.
3. If the best size of a single column gains more than all of these together, choose it instead.
4. While a column has a size, on its hull or not, that gains more and still fits, take the one with the highest gain.

`Choice.bound` is then the gain of the relaxed problem, in which the first step that doesn't fit is taken in part: no
set within the budget gains more. The chosen set gains at least half of it, by step 3, and misses at most the gain of
that one step, by step 2. Sources: Sinha and Zoltners, "The Multiple-Choice Knapsack Problem", Operations Research 27
(1979); Kellerer, Pferschy and Pisinger, "Knapsack Problems" (2004), chapters 2 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

MOST_SETS: Final = 100_000
"""The most sets of sizes that an exact solution makes, in less than a second."""
_ROUNDING: Final = 1e-9
"""The relative difference below which sums are equal: sums of floats depend on the order of the terms."""


class Size(NamedTuple):
    """One size of a column's filters."""

    nbytes: float
    gain: float
    """The bytes that all lookups of the column together read less."""


class Choice(NamedTuple):
    """The chosen sizes."""

    sizes: tuple[int | None, ...]
    """For each column, the position of its chosen size; None for no filter."""
    nbytes: float
    gain: float
    bound: float
    """No choice within the budget gains more."""

    @property
    def gap(self) -> float:
        """The most that the best choice can gain in addition, as a share of this choice's gain."""
        return max(self.bound / self.gain - 1, 0.0) if self.gain else 0.0


class _Set(NamedTuple):
    """A set of sizes for the first columns, as a linked list that ends with the last of them."""

    nbytes: float
    gain: float
    position: int | None
    """The position of the last column's size; None for no filter."""
    before: _Set | None
    """The set for the columns before the last one; None for the empty set."""


class _Step(NamedTuple):
    """The step from one size on a column's hull to the next larger one."""

    column: int
    position: int
    """The position of the larger size."""
    nbytes: float
    gain: float


def choose(columns: Sequence[Sequence[Size]], budget: float) -> Choice:
    """Choose the sizes that gain most within the budget. Of equal sizes, the first is chosen.

    Args:
        columns: for each column, its sizes in any order.
        budget: bytes, at least 0.
    """
    columns = [_without_doubles(sizes) for sizes in columns]
    return exact(columns, budget) or approximate(columns, budget)


def _without_doubles(sizes: Sequence[Size]) -> list[Size]:
    """The sizes, with a gain of 0 for each one that equals an earlier one up to rounding."""
    result: list[Size] = []
    for size in sizes:
        double = any(
            other.nbytes == size.nbytes and not _more(size.gain, other.gain) and not _more(other.gain, size.gain)
            for other in result
        )
        result.append(Size(size.nbytes, 0.0) if double else size)
    return result


def exact(columns: Sequence[Sequence[Size]], budget: float) -> Choice | None:
    """The best choice; None if finding it makes more than `MOST_SETS` sets."""
    count = 0
    sets = [_Set(0.0, 0.0, None, None)]
    for sizes in columns:
        usable = [(position, size) for position, size in enumerate(sizes) if size.gain > 0]
        count += len(sets) * (len(usable) + 1)
        if count > MOST_SETS:
            return None
        larger = [
            _Set(set_.nbytes + size.nbytes, set_.gain + size.gain, position, set_)
            for set_ in sets
            for position, size in usable
            if _fits(set_.nbytes + size.nbytes, budget)
        ]
        without = [_Set(set_.nbytes, set_.gain, None, set_) for set_ in sets]
        sets = _unbeaten([*without, *larger])
    best = max(sets, key=lambda item: item.gain)
    chosen: list[int | None] = []
    at: _Set | None = best
    while at is not None and at.before is not None:
        chosen.append(at.position)
        at = at.before
    return Choice(tuple(reversed(chosen)), best.nbytes, best.gain, best.gain)


def _unbeaten(sets: list[_Set]) -> list[_Set]:
    """The Pareto frontier, by ascending bytes: no other set takes no more bytes and gains no less."""
    kept: list[_Set] = []
    for set_ in sorted(sets, key=lambda item: (item.nbytes, -item.gain)):
        if not kept or _more(set_.gain, kept[-1].gain):
            kept.append(set_)
    return kept


def approximate(columns: Sequence[Sequence[Size]], budget: float) -> Choice:
    """A choice that gains at least half as much as the best one, with an upper bound of the best gain."""
    steps = [step for index, sizes in enumerate(columns) for step in _steps(index, sizes, budget)]
    steps.sort(key=lambda step: -step.gain / step.nbytes if step.nbytes else float("-inf"))
    chosen, bound = _by_steps(steps, len(columns), budget)
    single = _best_single(columns, budget)
    if single is not None and _more(_total(columns, single).gain, _total(columns, chosen).gain):
        chosen = single
    _fill(columns, chosen, budget)
    return Choice(tuple(chosen), *_total(columns, chosen), bound)


def _steps(column: int, sizes: Sequence[Size], budget: float) -> Iterator[_Step]:
    """Yield the steps along a column's upper convex hull, starting from no filter."""
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
    """Take the steps that fit, in their order. Return the sizes, and the gain of the relaxed problem."""
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
    """The choice of the single size with the highest gain; None if no size fits."""
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
    """Exchange sizes for ones that gain more and fit, until there is no such size."""
    while True:
        rest = budget - _total(columns, chosen).nbytes
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


def _total(columns: Sequence[Sequence[Size]], chosen: Sequence[int | None]) -> Size:
    """The bytes and the gain of the chosen sizes."""
    sizes = [sizes[at] for sizes, at in zip(columns, chosen, strict=True) if at is not None]
    return Size(sum(size.nbytes for size in sizes), sum(size.gain for size in sizes))
