"""Ratios of sums over sampled units, with confidence intervals.

A ratio of a part to a whole lies between 0 and 1. Its interval is that of a proportion with the number of independent
trials that results in the ratio's variance (Korn and Graubard 1998). The variance is that of a ratio of sums (Cochran
1977, chapter 6) over two cross-classified samples (Ohlsson 1996): units that values come from, and units in which
they are looked up. The number of trials is at most the effective number of units (Kish 1965).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.advice.distributions import clopper_pearson, t_quantile
from bloomcli.commands.value_sample import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_NOISE: Final = 1e-18
"""The rounding error of a variance, relative to the square of the sum."""


class Ratio(NamedTuple):
    """A ratio of sums, and the figures for its confidence interval."""

    estimate: float
    trials: float
    """The number of independent trials with the same variance; infinite for an exact ratio, 0 for an unknown one."""
    degrees_of_freedom: float
    """The degrees of freedom of the variance."""

    @property
    def exact(self) -> bool:
        """Whether the ratio isn't an estimate."""
        return math.isinf(self.trials)

    def interval(self, alpha: float) -> tuple[float, float]:
        """The ends of the interval with a confidence of 1 - alpha."""
        if self.exact:
            return self.estimate, self.estimate
        if self.trials <= 0:
            return 0.0, 1.0
        trials = self.trials
        if self.degrees_of_freedom >= 1:  # the variance is estimated as well
            normal = t_quantile(1 - alpha / 2, 1e6)
            trials *= (normal / t_quantile(1 - alpha / 2, self.degrees_of_freedom)) ** 2
        return clopper_pearson(self.estimate, trials, alpha)


EXACTLY_ONE: Final = Ratio(1.0, math.inf, math.inf)
UNKNOWN: Final = Ratio(0.5, 0.0, 0.0)


class SampleSize(NamedTuple):
    """The number of units that were drawn, and of all units."""

    population: int
    """The number of all units; 0 for an infinite population."""
    drawn: int
    """The number of units that were drawn."""

    @property
    def unsampled_share(self) -> float:
        """The share of the units that weren't drawn: the finite population correction."""
        return 1.0 if not self.population else max(1 - self.drawn / self.population, 0.0)


def ratio(
    part: Floats,
    whole: Floats,
    value_units: SampleSize,
    lookup_units: SampleSize,
    within: Floats | None = None,
    each: Floats | None = None,
) -> Ratio:
    """The ratio of two sums over all pairs of units.

    Args:
        part, whole: value units x parts x lookup units: sums over random parts of a unit's values. `part` is at most
            `whole`. Ratios that have no lookup units have one in both arrays, and `lookup_units` is (1, 1).
        value_units: how many of the units that values come from were drawn.
        lookup_units: how many of the units in which values are looked up were drawn.
        within: for each value unit, the share of its values that weren't sampled; 0 by default.
        each: for each value unit, the number of its sampled values; by default one for each part.
    """
    np = numpy()
    total = float(whole.sum())
    if total <= 0:
        return UNKNOWN
    estimate = min(max(float(part.sum()) / total, 0.0), 1.0)
    rest = part - estimate * whole
    parts = part.shape[1]
    rows, columns = rest.sum(axis=(1, 2)), rest.sum(axis=(0, 1))
    weights_of_rows, weights_of_columns = whole.sum(axis=(1, 2)), whole.sum(axis=(0, 1))
    unsampled = np.zeros(len(rows)) if within is None else within
    variance = value_units.unsampled_share * _spread(rows) + lookup_units.unsampled_share * _spread(columns)
    if parts > 1:
        within_rows = parts * rest.sum(axis=2).var(axis=1, ddof=1)
        variance += (1 - value_units.unsampled_share) * float((unsampled * within_rows).sum())
    kish_rows, kish_columns = _kish(weights_of_rows), _kish(weights_of_columns)
    of_part = 1.0 if each is None else max(float(each.mean()) / parts, 1.0)
    inner = float(unsampled.mean()) * (1 - value_units.unsampled_share) / (_kish(whole.sum(axis=2)) * of_part)
    # a sample of this size may have no unit, or no value, with a rare property
    least = max(value_units.unsampled_share / kish_rows + inner, lookup_units.unsampled_share / kish_columns)
    if least <= 0:
        return Ratio(estimate, math.inf, math.inf)
    trials = 1 / least
    if variance > _NOISE * total * total:
        trials = min(trials, estimate * (1 - estimate) * total * total / variance)
    degrees_of_freedom = [kish_columns - 1] if lookup_units.unsampled_share > 0 else []
    if value_units.unsampled_share > 0:
        degrees_of_freedom.append(kish_rows - 1)
    elif inner > 0:  # all units are value units: only the choice of their values is random
        degrees_of_freedom.append(kish_rows * (parts - 1))
    return Ratio(estimate, trials, min(degrees_of_freedom))


def _spread(sums: Floats) -> float:
    """The variance of a sum of independent terms, estimated from the terms."""
    count = len(sums)
    return float(count * sums.var(ddof=1)) if count > 1 else 0.0


def _kish(weights: Floats) -> float:
    """The effective number of units with unequal weights. Source: Kish, "Survey Sampling" (1965)."""
    square = float((weights**2).sum())
    return float(weights.sum()) ** 2 / square if square > 0 else 1.0
