"""Quantiles of the beta distribution and of Student's t distribution, for confidence intervals.

Sources: Abramowitz and Stegun, "Handbook of Mathematical Functions": 26.5.8 (the incomplete beta function as a
continued fraction) and 26.7.1 (Student's t by the incomplete beta function).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

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


def _solved(function: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """The argument at which an increasing function has the value `wanted`, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if function(middle) < wanted:
            low = middle
        else:
            high = middle
        if high - low <= _PRECISION * high:
            break
    return (low + high) / 2


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
    """The quantile of Student's t distribution, for probabilities of 0.5 and more."""

    def cumulative(t: float) -> float:
        return 1 - incomplete_beta(degrees_of_freedom / (degrees_of_freedom + t * t), degrees_of_freedom / 2, 0.5) / 2

    high = 1.0
    while cumulative(high) < probability and high < 1e12:
        high *= 2
    return _solved(cumulative, probability, 0.0, high)


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
