"""Estimates numbers of distinct values from bottom-k sketches of sampled units; never from min/max.

The numbers of values in exactly one and in exactly two sampled units result in an estimate of the values in none:
that of Chao and Lin (2012), which is Chao's (1987) for units drawn without replacement. The lower end is Chao's. The
upper end assumes that a value of a single sampled unit is in no other unit (the upper bound of Charikar et al. 2000).
With S values in m of N units, Q1 and Q2 of them in exactly one and two units, f = m / N and the jackknife's variance
V:

    unseen   = Q1^2 / (2 Q2 m / (m - 1) + Q1 f / (1 - f))
    estimate = S + unseen
    low      = S + unseen / exp(1.96 sqrt(ln(1 + V / unseen^2)))
    high     = S - Q1 + Q1 N / m

A. Chao, Biometrics 43, 1987. A. Chao and C.-W. Lin, "Nonparametric Lower Bounds for Species Richness and Shared
Species Richness under Sampling without Replacement", Biometrics 68, 2012. M. Charikar et al., "Towards Estimation
Error Guarantees for Distinct Values", PODS 2000. The sampled values are a bottom-k sample: E. Cohen and H. Kaplan,
PODC 2007. With n hashes below the share t of the hash space, an estimate of the distinct values is n / t, with the
standard deviation sqrt(n (1 - t)) / t: K. Beyer et al., "On Synopses for Distinct-Value Estimation under Multiset
Operations", SIGMOD 2007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli.advice.statistics import SampleSize, ratio_in_units
from bloomcli.commands.advise import ALL_HASHES, Hashes, smallest
from bloomcli.model.advice import Interval

_ALPHA: Final = 0.05
_NORMAL: Final = 1.959964
_DEVIATIONS: Final = 3
"""The standard deviations of a sketch's bounds: 99.7 %."""
_MOST_HASHES: Final = 1 << 13
"""The most hashes of all units together."""


class UnitSketch(NamedTuple):
    """The sketch of one sampled unit."""

    hashes: Hashes
    """The values' smallest hashes, in ascending order."""
    limit: np.uint64
    """The limit below which there are no others."""
    values: int
    """An upper bound of its distinct values."""

    @classmethod
    def unpacked(cls, sketch: bytes, values: int) -> UnitSketch:
        """A sketch of its bytes."""
        packed = np.frombuffer(sketch, np.uint64)
        return cls(packed[1:], packed[0], values)

    @property
    def distinct(self) -> float:
        """The estimated number of distinct values."""
        return len(self.hashes) / _share(self.limit)


def _share(limit: np.uint64) -> float:
    """The share of the hash space below a limit."""
    return 1.0 if limit == ALL_HASHES else int(limit) / 2**64


class _Incidence(NamedTuple):
    """The incidence of a random part of the values in the sampled units."""

    occurs: NDArray[np.bool_]
    """Values x units: whether the unit has the value."""
    share: float
    """The share of the values that are in the part."""

    @property
    def deviation(self) -> float:
        """The relative standard deviation of the estimated number of values."""
        return math.sqrt((1 - self.share) / max(len(self.occurs), 1))

    def frequencies(self, left_out: int | None = None) -> tuple[float, float, float]:
        """The number of values in any unit, in exactly one, and in exactly two; without the unit `left_out`."""
        counts = self.occurs.sum(axis=1)
        if left_out is not None:
            counts = counts - self.occurs[:, left_out]
        return tuple(np.count_nonzero(mask) / self.share for mask in (counts > 0, counts == 1, counts == 2))  # type: ignore[return-value]


def distinct(units: Sequence[UnitSketch], population: int, most: int) -> Interval:
    """The number of distinct values over all units.

    Args:
        units: the sampled units.
        population: the number of all units.
        most: the number of values of all units.
    """
    incidence = _incidence(units)
    in_sample, once, _ = incidence.frequencies()
    error = _DEVIATIONS * incidence.deviation
    low, high = max(in_sample * (1 - error), len(incidence.occurs)), in_sample * (1 + error)
    if len(units) >= population:
        return Interval(estimate=in_sample, low=low, high=min(high, max(most, in_sample)))
    unseen = _unseen(incidence, len(units), population)
    upper = _if_alone(incidence, units, population, most)
    top = min(high - once * (1 - error) + upper * (1 + error), float(max(most, high)))
    estimate = min(in_sample + unseen[0], max(top, in_sample))
    return Interval(estimate=estimate, low=min(low + unseen[1], estimate), high=max(top, estimate))


def _incidence(units: Sequence[UnitSketch]) -> _Incidence:
    """The incidence of the values with the smallest hashes."""
    limit = min(unit.limit for unit in units)
    hashes = np.concatenate([unit.hashes for unit in units])
    every, limit = smallest(hashes[hashes < limit], limit, _MOST_HASHES)
    occurs = np.zeros((len(every), len(units)), bool)
    for at, unit in enumerate(units):
        below = unit.hashes[: np.searchsorted(unit.hashes, limit)]
        occurs[np.searchsorted(every, below), at] = True
    return _Incidence(occurs, _share(limit))


def _chao_lin(incidence: _Incidence, drawn: int, population: int, left_out: int | None = None) -> float:
    """The estimated number of values in no sampled unit: Q1^2 / (n / (n - 1) 2 Q2 + q / (1 - q) Q1)."""
    _, once, twice = incidence.frequencies(left_out)
    share = drawn / population
    below = (drawn / (drawn - 1) if drawn > 1 else 1.0) * 2 * twice + share / (1 - share) * once
    return once * once / below if below > 0 else 0.0


def _unseen(incidence: _Incidence, drawn: int, population: int) -> tuple[float, float]:
    """The number of values in no sampled unit: (estimate, lower end). The variance is the jackknife's: each unit is
    left out in turn."""
    estimate = _chao_lin(incidence, drawn, population)
    if drawn <= 2 or estimate <= 0:
        return estimate, 0.0
    without = []
    for at in range(drawn):
        count, _, _ = incidence.frequencies(at)
        without.append(count + _chao_lin(incidence, drawn - 1, population, at))
    variance = (drawn - 1) * float(np.var(without))
    variance += estimate * estimate / max(len(incidence.occurs), 1)  # the variance of the sketch
    factor = math.exp(_NORMAL * math.sqrt(math.log1p(variance / (estimate * estimate))))
    return estimate, estimate / factor


def _if_alone(incidence: _Incidence, units: Sequence[UnitSketch], population: int, most: int) -> float:
    """The upper end of the number of distinct values, under the assumption that values in exactly one sampled unit
    are in no other unit."""
    alone = incidence.occurs & (incidence.occurs.sum(axis=1) == 1)[:, None]
    once = alone.sum(axis=0) / incidence.share
    values = np.array([max(unit.values, 1) for unit in units], float)
    ratio = ratio_in_units(once, values, SampleSize(population, len(units)))
    return ratio.interval(_ALPHA)[1] * most


def distinct_per_unit(units: Sequence[UnitSketch], population: int, most: int) -> Interval:
    """The mean number of distinct values of a unit."""
    counts = np.array([unit.distinct for unit in units])
    values = np.array([max(unit.values, 1) for unit in units], float)
    share = ratio_in_units(counts, values, SampleSize(population, len(units)))
    most_hashes = max((len(unit.hashes) for unit in units if unit.limit < ALL_HASHES), default=0)
    error = _NORMAL / math.sqrt(most_hashes) if most_hashes else 0.0
    low, high = share.interval(_ALPHA)
    mean = most / max(population, 1)
    return Interval(
        estimate=share.estimate * mean, low=low * (1 - error) * mean, high=min(high * (1 + error), 1.0) * mean
    )
