"""Confidence intervals: quantiles of the beta and Student's t distributions, and ratios of sums.

Sources of the quantiles: Abramowitz and Stegun, "Handbook of Mathematical Functions": 26.5.8 (the incomplete beta
function as a continued fraction) and 26.7.1 (Student's t by the incomplete beta function).

A ratio of a part to a whole lies between 0 and 1. Its interval is that of a proportion with the number of independent
trials that results in the ratio's variance (Korn and Graubard 1998). The variance is that of a ratio of sums (Cochran
1977, chapter 6) over two cross-classified samples (Ohlsson 1996): units that values come from, and units in which
they are looked up. The number of trials is at most the effective number of units (Kish 1965). With e = t - R p summed
over a row g (all lookup units) or a column h (all value units) of the sample, and f = n / N the sampled share of the
units:

    V = ((1 - f) n S2(e of rows) + f sum of w b s2 + (1 - f) n S2(e of columns)) / (sum of p)^2

1 - f is the finite population correction: a sample of all units is exact. The second term is the choice of values
within a unit (Cochran 1977, chapter 10): b random parts of a unit's values, s2 the variance of e between them, w the
share of its distinct values that weren't drawn, which is 1 for absent values. The effective number of units is (sum
of p)^2 / (sum of p^2) over rows or columns, whichever is smaller, divided by 1 - f.

W. G. Cochran, "Sampling Techniques", 3rd ed., 1977. L. Kish, "Survey Sampling", 1965. E. Ohlsson, "Cross-Classified
Sampling", Journal of Official Statistics 12, 1996. E. L. Korn and B. I. Graubard, "Confidence Intervals for
Proportions with Small Expected Number of Positive Counts Estimated from Survey Data", Survey Methodology 24, 1998.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


_TINY: Final = 1e-300
_STEPS: Final = 300
_PRECISION: Final = 1e-10


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return scale * _fraction(x, a, b) / a
    return 1 - scale * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, by Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= d * c
        if abs(d * c - 1) < _PRECISION:
            break
    return value


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The quantile of the beta distribution, by Newton's method, with bisection where a step leaves the interval."""
    if b == 1:
        return math.pow(probability, 1 / a)
    if a == 1:
        return -math.expm1(math.log1p(-probability) / b)
    beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(60):
        if x >= 1:  # no float is between the quantile and 1
            break
        above = incomplete_beta(x, a, b) - probability
        low, high = (low, x) if above > 0 else (x, high)
        density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - beta)
        step = x - above / density if density > _TINY else -1.0
        last, x = x, step if low < step < high else (low + high) / 2
        if abs(x - last) <= _PRECISION * x:
            break
    return x


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The quantile of Student's t distribution, by bisection, for probabilities of 0.5 and more."""

    def cumulative(t: float) -> float:
        return 1 - incomplete_beta(degrees_of_freedom / (degrees_of_freedom + t * t), degrees_of_freedom / 2, 0.5) / 2

    low, high = 0.0, 1.0
    while cumulative(high) < probability and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cumulative(middle) < probability else (low, middle)
        if high - low <= _PRECISION * high:
            break
    return (low + high) / 2


@lru_cache(maxsize=1 << 14)
def clopper_pearson(share: float, trials: float, alpha: float) -> tuple[float, float]:
    """The exact confidence interval of a proportion, for any positive number of trials, also a fractional one.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
    (1934), in the form of beta quantiles.
    """
    hits = min(max(share, 0.0), 1.0) * trials
    low = 0.0 if hits <= 0 else beta_quantile(alpha / 2, hits, trials - hits + 1)
    high = 1.0 if hits >= trials else beta_quantile(1 - alpha / 2, hits + 1, trials - hits)
    return min(low, share), max(high, share)


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
"""One object, because `summed` counts each estimate once."""


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


def ratio_in_units(part: Floats, whole: Floats, units: SampleSize) -> Ratio:
    """The ratio of two sums over units that values come from, which are looked up nowhere. `part` is at most `whole`.

    Args:
        part, whole: for each unit that was drawn.
        units: how many units were drawn.
    """
    return ratio(np.minimum(part, whole)[:, None, None], whole[:, None, None], units, SampleSize(1, 1))


def _spread(sums: Floats) -> float:
    """The variance of a sum of independent terms, estimated from the terms."""
    count = len(sums)
    return float(count * sums.var(ddof=1)) if count > 1 else 0.0


def _kish(weights: Floats) -> float:
    """The effective number of units with unequal weights. Source: Kish, "Survey Sampling" (1965)."""
    square = float((weights**2).sum())
    return float(weights.sum()) ** 2 / square if square > 0 else 1.0
