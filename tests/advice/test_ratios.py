"""Quantiles, ratios, coverage of ranges, and distinct values, against known results."""

from __future__ import annotations

import math
import random
from typing import Final

import numpy as np
import pytest

from bloomcli.advice.column_metadata import Coverage, Range
from bloomcli.advice.distinct import UnitSketch, distinct
from bloomcli.advice.statistics import SampleSize, beta_quantile, clopper_pearson, incomplete_beta, ratio, t_quantile
from bloomcli.commands.advise import Sketch, ValueSample, mixed

ONE: Final = SampleSize(1, 1)


def test_quantiles_are_those_of_tables() -> None:
    assert t_quantile(0.975, 1) == pytest.approx(12.7062, abs=1e-4)
    assert t_quantile(0.975, 9) == pytest.approx(2.26216, abs=1e-5)
    assert t_quantile(0.975, 1e7) == pytest.approx(1.959964, abs=1e-5)
    assert incomplete_beta(0.5, 2, 2) == pytest.approx(0.5)
    assert beta_quantile(0.5, 3, 3) == pytest.approx(0.5)


def test_clopper_pearson_s_intervals_are_those_of_tables() -> None:
    assert clopper_pearson(0.0, 10, 0.05) == pytest.approx((0, 0.308497), abs=1e-5)
    assert clopper_pearson(0.5, 10, 0.05) == pytest.approx((0.187086, 0.812914), abs=1e-5)
    assert clopper_pearson(1.0, 10, 0.05) == pytest.approx((0.691503, 1), abs=1e-5)


def test_intervals_of_shares_next_to_0_and_1_end_there() -> None:
    """Rounding errors leave a share of the trials that is too small for a float beside them."""
    for trials in (0.7, 3.0, 16.0, 12345.6):
        for distance in (2e-16, 1e-15, 1e-13, 1e-9, 1e-5):
            low, high = clopper_pearson(1 - distance, trials, 0.05)
            assert 0 < low < high <= 1
            assert high == pytest.approx(1, abs=1e-4)
            low, high = clopper_pearson(distance, trials, 0.05)
            assert 0 <= low < high < 1
            assert low == pytest.approx(0, abs=1e-4)
    assert beta_quantile(0.975, 3.0, 2.220446049250313e-16) == 1


def test_a_ratio_of_a_crossed_sample_covers_the_truth() -> None:
    chance = np.random.default_rng(7)
    rows, columns = chance.beta(0.5, 2, 120), chance.beta(0.5, 1, 90)
    share = np.outer(rows, columns)
    whole = chance.uniform(0.2, 1, share.shape)
    truth = (share * whole).sum() / whole.sum()
    hits = 0
    for seed in range(300):
        drawn = np.random.default_rng(seed)
        a, b = drawn.choice(120, 15, replace=False), drawn.choice(90, 15, replace=False)
        part = (share * whole)[np.ix_(a, b)][:, None, :]
        found = ratio(part, whole[np.ix_(a, b)][:, None, :], SampleSize(120, 15), SampleSize(90, 15))
        low, high = found.interval(0.05)
        hits += low <= truth <= high
    assert hits >= 0.95 * 300


def test_a_ratio_over_all_units_is_exact() -> None:
    part = np.array([[[1.0]], [[0.0]]])
    found = ratio(part, np.ones((2, 1, 1)), SampleSize(2, 2), ONE, np.zeros(2))
    assert found.exact
    assert found.interval(0.05) == (0.5, 0.5)


def test_a_property_that_no_sampled_unit_has_may_be_rare() -> None:
    found = ratio(np.zeros((50, 1, 1)), np.ones((50, 1, 1)), SampleSize(10_000, 50), ONE)
    low, high = found.interval(0.05)
    assert low == 0
    assert 0.06 < high < 0.09


def test_coverage_counts_the_ranges_that_contain_a_value() -> None:
    chance = random.Random(3)
    for _ in range(50):
        ranges = []
        for _ in range(chance.randint(1, 12)):
            low = chance.randint(0, 20)
            ranges.append(Range(low, chance.randint(low, 20), chance.randint(1, 5)))
        ranges.append(Range(None, None, 3))
        found = Coverage(ranges)

        def by_hand(value: float, ranges: list[Range] = ranges) -> float:
            return sum(r.weight for r in ranges if r.low is None or r.low <= value <= r.high)

        points = [at / 2 for at in range(41)]
        assert [found.at(value) for value in points] == [by_hand(value) for value in points]
        hulls = [(r.low, r.high) for r in ranges[:-1]]
        least, most = found.extremes(hulls)
        for at, (low, high) in enumerate(hulls):
            inside = [by_hand(value) for value in points if low <= value <= high]
            assert (least[at], most[at]) == (min(inside), max(inside))


def test_a_sketch_has_the_smallest_hashes_whatever_the_order_and_the_batches() -> None:
    values = np.random.default_rng(1).integers(0, 1 << 64, 30_000, np.uint64)
    sketch, exact = Sketch(8), Sketch(15)
    for part in np.split(np.concatenate([values, values[:3000]]), 11):
        sketch.add(part)
        exact.add(part[::-1])
    found, every = UnitSketch.unpacked(sketch.packed(), 0), UnitSketch.unpacked(exact.packed(), 0)
    in_order = np.sort(mixed(values))
    assert np.array_equal(found.hashes, in_order[:256])
    assert found.limit == in_order[256]
    assert np.array_equal(every.hashes, in_order)
    assert every.distinct == len(values)


@pytest.mark.slow
def test_the_estimates_of_sketches_have_no_bias_and_their_bounds_cover_the_truth() -> None:
    estimates = []
    for seed in range(300):
        values = np.random.default_rng(seed).integers(0, 1 << 64, 20_000, np.uint64)
        sketches = []
        for part in (values[:300], values[:12_000], values[8000:]):
            sketch = Sketch(8)
            sketch.add(part)
            sketches.append(UnitSketch.unpacked(sketch.packed(), len(part)))
        found = distinct(sketches, 3, 24_300)
        assert found.low <= len(values) <= found.high
        estimates.append(found.estimate / len(values))
    assert np.mean(estimates) == pytest.approx(1, abs=4 * np.std(estimates) / math.sqrt(300))
    assert np.std(estimates) < 1 / math.sqrt(256)


@pytest.mark.slow
def test_a_value_sample_has_each_value_as_often_whatever_its_order_and_its_number() -> None:
    values = mixed(np.arange(50, dtype=np.uint64))
    counts = np.zeros(50)
    for seed in range(2000):
        sample = ValueSample(10, seed * 0x9E3779B97F4A7C15)
        repeated = np.concatenate([values, np.repeat(values[:5], 200)])
        np.random.default_rng(seed).shuffle(repeated)
        where = {int(v): at for at, v in enumerate(values)}
        for part in np.array_split(repeated, 7):
            sample.add(part, lambda at, part=part, where=where: where[int(part[at])])
        keys = sample.keys()
        assert len(set(keys)) == len(keys) == 10
        counts[keys] += 1
    assert np.all(np.abs(counts - 400) < 5 * math.sqrt(400 * 0.8))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unique", "shared", "clustered", "skewed"])
def test_distinct_values_of_all_units_lie_within_the_interval(kind: str) -> None:
    chance = np.random.default_rng(5)
    if kind == "unique":
        units = np.split(chance.permutation(60_000), 60)
    elif kind == "shared":
        units = [chance.integers(0, 3000, 1000) for _ in range(60)]
    elif kind == "clustered":
        units = [chance.integers(at * 150, at * 150 + 800, 1000) for at in range(60)]
    else:
        units = [np.minimum(chance.zipf(1.3, 1000), 10**9) for _ in range(60)]
    sets = [np.unique(unit).astype(np.uint64) for unit in units]
    truth = len(np.unique(np.concatenate(sets)))
    sketches = []
    for unit in sets:
        sketch = Sketch(11)
        sketch.add(mixed(unit))
        sketches.append(UnitSketch.unpacked(sketch.packed(), 1000))
    hits = 0
    for seed in range(100):
        drawn = np.random.default_rng(seed).choice(60, 12, replace=False)
        found = distinct([sketches[at] for at in drawn], 60, 60_000)
        assert found.low <= found.estimate <= found.high
        hits += found.low <= truth <= found.high
    assert hits >= 95
