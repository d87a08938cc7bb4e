"""Estimates how much lookups read over all files, for one kind of value.

A lookup reads row groups of the unit that its value comes from, and of all other units. The part of the other units
that remains after min/max is known exactly for each sampled value, from the bounds of all row groups of all files
(`Coverage`). The sample results in the share of that part which is read, today and with new filters:

    T = own + P R
    R = sum of t(v, h) / sum of p(v, h)    over value units g, values v of g, and lookup units h other than g

`own` is what is read in the value's own unit g: one row group, where units are row groups; nothing for an absent
value. P is what remains of all other units after min/max, p the same in h, and t the part of p that is read after
existing filters and dictionaries, or after new filters. For an absent value, t is the measured false-positive rate of
the filter in h.

The mean of P lies between bounds that are exact: the fewest and the most row groups that remain for any value within
the bounds of a unit, averaged over all units. Its place between them is a ratio with an interval as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np

from bloomcli.advice.column_metadata import ColumnMetadata
from bloomcli.advice.statistics import EXACTLY_ONE, Floats, Ratio, SampleSize, ratio
from bloomcli.model.advice import RATE_SUMS, SUMS, Interval, LookupCost

ALPHA: Final = 0.05
NUMBER: Final = 0
BYTES: Final = 1
_TODAY: Final = 2
_ONE: Final = SampleSize(1, 1)


class Product(NamedTuple):
    """A product of known figures and estimated ratios: factor x (offset + spread x first) x others."""

    factor: float
    offset: float = 1.0
    spread: float = 0.0
    first: Ratio = EXACTLY_ONE
    others: tuple[Ratio, ...] = ()

    def ratios(self) -> list[Ratio]:
        """The ratios that are estimates."""
        return [r for r in ((self.first,) if self.spread else ()) + self.others if not r.exact]

    def at(self, first: float, others: Sequence[float]) -> float:
        """The product for these values of the ratios."""
        product = self.factor * (self.offset + self.spread * first)
        for value in others:
            product *= value
        return product


def summed(terms: Sequence[tuple[int, Product]], scale: float = 1.0) -> Interval:
    """The sum of products with signs, with its interval. The confidence of each ratio is so high that all ratios
    together have the confidence 1 - `ALPHA` (Bonferroni's inequality)."""
    rate_estimates = {id(r) for _, term in terms for r in term.ratios()}
    alpha = ALPHA / max(len(rate_estimates), 1)
    low = high = estimate = 0.0
    for sign, term in terms:
        ends = [term.first.interval(alpha), *(other.interval(alpha) for other in term.others)]
        least, most = (term.at(ends[0][side], [end[side] for end in ends[1:]]) for side in (0, 1))
        estimate += sign * term.at(term.first.estimate, [other.estimate for other in term.others])
        low, high = low + min(sign * least, sign * most), high + max(sign * least, sign * most)
    low, high = min(low, estimate), max(high, estimate)
    return Interval(estimate=estimate * scale, low=low * scale, high=high * scale)


@dataclass(frozen=True, kw_only=True)
class FilterSizes:
    """The bytes of new filters of all row groups at one rate."""

    most: float
    """The bytes if all values were distinct."""
    share: Ratio
    """The share of `most`."""

    @property
    def interval(self) -> Interval:
        """The bytes of all filters."""
        return summed([(1, Product(self.most, others=(self.share,)))])


class RateEstimate(NamedTuple):
    """The measured false-positive rate of new filters."""

    most: float
    """The highest rate of a filter."""
    share: Ratio
    """The mean rate over all row groups, as a share of `most`."""


@dataclass(frozen=True, kw_only=True)
class LookupCosts:
    """Estimates the costs of lookups of one kind of value. Sums are those of a random part of a unit's values,
    weighted so that the mean of all parts is the mean of all values."""

    metadata: ColumnMetadata
    sums: Floats
    """Value units x parts x lookup units x sums; 0 where the two units are the same."""
    own: Floats
    """Value units x parts x sums: the sums in the unit that the values come from; 0 for values of no unit."""
    own_whole: Floats
    """Value units x 2: the row groups and bytes of the unit; 0 for values of no unit."""
    remaining: Floats
    """Value units x parts x 2: the row groups and bytes that remain in all other units after min/max."""
    least: Floats
    most: Floats
    """Value units x 2: lower and upper bounds of `remaining`, from metadata."""
    mean_least: Floats
    mean_most: Floats
    """2 each: the means of the bounds over all units that values could come from."""
    value_units: SampleSize
    lookup_units: SampleSize
    unsampled: Floats
    """For each value unit, the share of its distinct values that aren't in the sample."""
    counts: Sequence[int]
    """For each value unit, the number of its values in the sample."""
    settled: bool
    """Min/max alone decides which row groups are read today: there are no filters, and readers don't use
    dictionaries."""
    rate_estimates: tuple[RateEstimate, ...] | None
    """For absent values, at each rate: the measured rate of new filters, which is the mean over the lookups of all
    absent values. None for other kinds of values."""

    @cached_property
    def _shares(self) -> Floats:
        """Value units x parts: the weights of the parts, whose mean is 1."""
        parts = self.sums.shape[1]
        shares: Floats = np.array(
            [[parts * len(range(part, n, parts)) / n for part in range(parts)] for n in self.counts]
        )
        return shares

    def _ratio(self, part: Floats, whole: Floats, lookup_units: SampleSize = _ONE) -> Ratio:
        return ratio(part, whole, self.value_units, lookup_units, self.unsampled, np.array(self.counts, float))

    @cached_property
    def _remaining(self) -> tuple[Product, Product]:
        """The row groups, and the bytes, that remain in other units after min/max."""
        products = []
        for kind in (NUMBER, BYTES):
            offset, most = float(self.mean_least[kind]), float(self.mean_most[kind])
            spread = most - offset
            room = (self.most - self.least)[:, kind, None] * self._shares
            part = np.clip(self.remaining[:, :, kind] - self.least[:, kind, None] * self._shares, 0, room)
            if spread <= 1e-9 * max(most, 1.0):
                products.append(Product(1.0, offset))
            else:
                products.append(Product(1.0, offset, spread, self._ratio(part[:, :, None], room[:, :, None])))
        return products[0], products[1]

    def _elsewhere(self, part: Floats, kind: int, share: Ratio | None = None) -> Product:
        """The row groups or bytes read in other units, from the sums `part`, or from their share if it is known."""
        remaining = self._remaining[kind]
        if remaining.offset <= 0 and not remaining.spread:
            return Product(0.0)
        if share is None:
            share = self._ratio(part, self.sums[..., kind], self.lookup_units)
        return remaining._replace(others=(share,))

    def _here(self, part: Floats, kind: int) -> Product:
        """The row groups or bytes read in the unit that the value comes from."""
        if not self.own_whole.any():
            return Product(0.0)
        units = self.metadata.units.values()
        mean = sum(unit.bytes if kind else unit.row_groups for unit in units) / max(len(units), 1)
        whole = self.own_whole[:, kind, None] * self._shares
        if self.metadata.single and np.allclose(part, whole):
            return Product(mean)  # a row group is always read for its own values
        return Product(mean, others=(self._ratio(part[:, :, None], whole[:, :, None]),))

    def _cost(self, number: int, elsewhere: Callable[[int], Product]) -> LookupCost:
        """The cost of what is read in the unit that the value comes from, by the sums at `number` (row groups) and
        `number` + 1 (bytes), and of what is read in other units."""
        scales = ((NUMBER, 1 / max(self.metadata.row_groups, 1)), (BYTES, 1.0))
        row_groups, bytes_ = (
            summed([(1, self._here(self.own[..., number + kind], kind)), (1, elsewhere(kind))], scale)
            for kind, scale in scales
        )
        return LookupCost(row_groups=row_groups, bytes=bytes_)

    @cached_property
    def overlap(self) -> Interval:
        """The share of the row groups that remains after min/max."""
        return self._cost(0, lambda kind: self._elsewhere(self.sums[..., kind], kind, EXACTLY_ONE)).row_groups

    @cached_property
    def today(self) -> LookupCost:
        """The cost of a lookup today."""
        return self._cost(_TODAY, self._before)

    def with_filter(self, rate: int) -> LookupCost:
        """The cost of a lookup with filters of a rate, given by its position."""
        return self._cost(SUMS + RATE_SUMS * rate, partial(self._later, rate))

    def _later(self, rate: int, kind: int) -> Product:
        """The row groups or bytes read in other units with filters of a rate."""
        part = self.sums[..., SUMS + RATE_SUMS * rate + kind]
        if self.rate_estimates is None:
            return self._elsewhere(part, kind)
        most, share = self.rate_estimates[rate]
        today = self._before(kind)
        whole = most * self.sums[..., _TODAY + kind]
        if whole.sum():
            share = self._ratio(part, whole, self.lookup_units)
        return today._replace(factor=today.factor * most, others=(*today.others, share))

    def _before(self, kind: int) -> Product:
        """The row groups or bytes read in other units today."""
        return self._elsewhere(self.sums[..., _TODAY + kind], kind, EXACTLY_ONE if self.settled else None)

    def saved(self, rate: int, sizes: FilterSizes) -> Interval:
        """The bytes that a lookup reads less; the bytes of the filters that it reads are deducted."""
        at, today = SUMS + RATE_SUMS * rate + BYTES, _TODAY + BYTES
        each = sizes.share
        read = (self._here(self.own[..., _TODAY], NUMBER), self._before(NUMBER))
        per_group = sizes.most / max(sum(unit.row_groups for unit in self.metadata.units.values()), 1)
        terms = [
            (1, self._here(self.own[..., today], BYTES)),
            (-1, self._here(self.own[..., at], BYTES)),
            *((-1, r._replace(factor=r.factor * per_group, others=(*r.others, each))) for r in read),
        ]
        if self.rate_estimates is None:
            terms.append((1, self._elsewhere(self.sums[..., today] - self.sums[..., at], BYTES)))
        else:
            terms += [(1, self._before(BYTES)), (-1, self._later(rate, BYTES))]
        return summed([term for term in terms if term[1].factor])
