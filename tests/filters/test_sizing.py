"""Sizes and rates of split-block filters: arrow-rs's table, the exact expectation, simulation."""

from __future__ import annotations

import math
import random

import pytest

from bloomcli import limits
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter

# The documentation of arrow-rs's parquet::bloom_filter, line by line: NDV, FPP, blocks, KB.
ARROW_RS = [
    (10_000, 0.1, 256, 8),
    (10_000, 0.01, 512, 16),
    (10_000, 0.001, 1_024, 32),
    (10_000, 0.0001, 1_024, 32),
    (100_000, 0.1, 4_096, 128),
    (100_000, 0.01, 4_096, 128),
    (100_000, 0.001, 8_192, 256),
    (100_000, 0.0001, 16_384, 512),
    (100_000, 0.00001, 16_384, 512),
    (1_000_000, 0.1, 32_768, 1_024),
    (1_000_000, 0.01, 65_536, 2_048),
    (1_000_000, 0.001, 65_536, 2_048),
    (1_000_000, 0.0001, 131_072, 4_096),
    (1_000_000, 0.00001, 131_072, 4_096),
    (1_000_000, 0.000001, 262_144, 8_192),
]

# The Apache Parquet specification, BloomFilter.md: bits per distinct value, false-positive rate in per cent.
SPECIFICATION = [(6.0, 0.1), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41.0, 0.00001)]


def simulated(values: int, nbytes: int, seed: int) -> float:
    """The measured rate of one filter with random hashes."""
    built = SplitBlockFilter.empty(nbytes)
    built.insert_hashes(random.Random(seed).randbytes(values * 8), values)
    return built.fpp


@pytest.mark.parametrize(("ndv", "fpp", "blocks", "kilobytes"), ARROW_RS)
def test_the_formula_gives_arrow_rss_table(ndv: int, fpp: float, blocks: int, kilobytes: int) -> None:
    size = sizing.bytes_for_ndv(ndv, fpp)
    assert size // sizing.BLOCK_BYTES == blocks
    assert size // 1024 == kilobytes


@pytest.mark.parametrize(
    ("ndv", "fpp", "size"),
    [
        (0, 0.01, limits.FILTER_MIN_BYTES),
        (1, 0.99, limits.FILTER_MIN_BYTES),
        (1, 1e-300, limits.FILTER_MAX_BYTES),
        (10**12, 0.01, limits.FILTER_MAX_BYTES),
        (10**30, 0.5, limits.FILTER_MAX_BYTES),
        (2**63 - 1, 1e-9, limits.FILTER_MAX_BYTES),
    ],
)
def test_sizes_stay_between_one_block_and_128_mib(ndv: int, fpp: float, size: int) -> None:
    assert sizing.bytes_for_ndv(ndv, fpp) == size
    bound = sizing.upper_bound_bytes(ndv, fpp)
    assert limits.FILTER_MIN_BYTES <= bound <= limits.FILTER_MAX_BYTES
    assert bound & (bound - 1) == 0


@pytest.mark.parametrize("fpp", [0, 1, -0.1, 1.1, math.nan, math.inf])
def test_a_rate_lies_between_0_and_1(fpp: float) -> None:
    for size_of in (sizing.bytes_for_ndv, sizing.upper_bound_bytes, sizing.tight_bytes, sizing.tight_bound_bytes):
        with pytest.raises(ValueError, match="between 0 and 1"):
            size_of(10, fpp)


def test_a_number_of_values_is_not_negative() -> None:
    for size_of in (sizing.bytes_for_ndv, sizing.upper_bound_bytes, sizing.tight_bytes, sizing.tight_bound_bytes):
        with pytest.raises(ValueError, match="negative"):
            size_of(-1, 0.1)


@pytest.mark.parametrize(
    ("value", "power"), [(-5, 1), (0, 1), (1, 1), (2, 2), (3, 4), (32, 32), (33, 64), (2**40 + 1, 2**41)]
)
def test_the_next_power_of_two(value: int, power: int) -> None:
    assert sizing.next_power_of_two(value) == power


def by_definition(values: int, nbytes: int) -> float:
    """The mean over binomial block loads, summed the long way."""
    blocks = nbytes // 32
    total = []
    for load in range(values + 1):
        chance = math.comb(values, load) * (1 / blocks) ** load * (1 - 1 / blocks) ** (values - load)
        total.append(chance * (1 - (31 / 32) ** load) ** 8)
    return math.fsum(total)


@pytest.mark.parametrize("nbytes", [32, 64, 256, 1024])
def test_the_expected_rate_is_the_mean_over_block_loads(nbytes: int) -> None:
    for values in (0, 1, 2, 10, 60, 150):
        expected = pytest.approx(by_definition(values, nbytes), rel=1e-6, abs=1e-13)
        assert sizing.expected_fpp(values, nbytes) == expected


@pytest.mark.parametrize(("values", "nbytes"), [(20, 32), (40, 256), (500, 1024), (2000, 4096), (20_000, 16384)])
def test_the_expected_rate_is_the_mean_of_simulated_filters(values: int, nbytes: int) -> None:
    runs = 40
    measured = [simulated(values, nbytes, seed) for seed in range(runs)]
    mean = math.fsum(measured) / runs
    deviation = (math.fsum((rate - mean) ** 2 for rate in measured) / (runs - 1)) ** 0.5 / runs**0.5
    assert sizing.expected_fpp(values, nbytes) == pytest.approx(mean, abs=5 * deviation)


@pytest.mark.parametrize(("bits", "fpp"), SPECIFICATION)
def test_the_expected_rate_is_the_specifications_table(bits: float, fpp: float) -> None:
    values = 1_000_000
    nbytes = int(bits * values / 8) // 32 * 32
    assert sizing.expected_fpp(values, nbytes) == pytest.approx(fpp, rel=0.06)


@pytest.mark.parametrize("nbytes", [32, 1024, 1 << 20])
def test_the_expected_rate_grows_with_the_values_and_stays_a_probability(nbytes: int) -> None:
    rates = [sizing.expected_fpp(values, nbytes) for values in (-1, 0, 1, 10, 10**3, 10**5, 10**7, 10**12, 10**18)]
    assert rates == sorted(rates)
    assert rates[0] == rates[1] == 0
    assert all(0 <= rate <= 1 for rate in rates)
    assert rates[-1] == 1


def largest(fpp: float, nbytes: int) -> int:
    """The most values for which `nbytes` are the upper bound."""
    low, high = 1, nbytes * 8
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sizing.upper_bound_bytes(middle, fpp) <= nbytes else (low, middle - 1)
    assert sizing.upper_bound_bytes(low, fpp) == nbytes < sizing.upper_bound_bytes(low + 1, fpp)
    return low


@pytest.mark.parametrize("fpp", [0.5, 0.01, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("nbytes", [64, 1024, 16384, 32768, 131072])
def test_the_most_values_of_a_size_meet_the_rate_and_take_most_of_it(nbytes: int, fpp: float) -> None:
    values = largest(fpp, nbytes)
    assert [seed for seed in range(20) if simulated(values, nbytes, seed) > fpp] == []
    if nbytes >= 32768:
        assert sizing.expected_fpp(round(values * 1.2), nbytes) > fpp


@pytest.mark.parametrize("values", [1, 10, 1000, 30_000])
def test_the_estimate_inverts_the_expected_number_of_set_bits(values: int) -> None:
    nbytes = 32768
    bins = nbytes * 8 // 8
    set_bits = round(nbytes * 8 * (1 - (1 - 1 / bins) ** values))
    assert sizing.estimate_ndv(set_bits, nbytes) == pytest.approx(values, rel=0.01)


@pytest.mark.parametrize(("set_bits", "estimate"), [(-1, 0.0), (0, 0.0), (8, 1.0), (256, None), (300, None)])
def test_the_estimates_ends(set_bits: int, estimate: float | None) -> None:
    found = sizing.estimate_ndv(set_bits, 32)
    assert found == (None if estimate is None else pytest.approx(estimate, abs=0.01))


@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.01, 0.001, 0.0001])
def test_a_tight_size_is_the_smallest_whose_expected_rate_meets_the_requested_one(fpp: float) -> None:
    for values in (0, 1, 7, 100, 1000, 30_000, 1_000_000, 2_000_000):
        nbytes = sizing.tight_bytes(values, fpp)
        assert nbytes % sizing.BLOCK_BYTES == 0
        assert sizing.expected_fpp(values, nbytes) <= fpp
        assert nbytes == sizing.BLOCK_BYTES or sizing.expected_fpp(values, nbytes - sizing.BLOCK_BYTES) > fpp
        assert nbytes <= sizing.upper_bound_bytes(values, fpp)


@pytest.mark.parametrize(("values", "fpp"), [(1, 1e-300), (10**12, 0.01), (10**30, 0.5), (2**63 - 1, 1e-9)])
def test_a_tight_size_stays_within_128_mib(values: int, fpp: float) -> None:
    assert sizing.tight_bytes(values, fpp) == limits.FILTER_MAX_BYTES
    assert sizing.tight_bound_bytes(values, fpp) == limits.FILTER_MAX_BYTES


@pytest.mark.parametrize(("values", "fpp"), [(1, 0.001), (7, 0.01), (40, 0.5), (100, 0.0001), (20_000, 0.01)])
def test_a_filter_of_the_tight_upper_bound_meets_the_rate(values: int, fpp: float) -> None:
    nbytes = sizing.tight_bound_bytes(values, fpp)
    assert all(simulated(values, nbytes, seed) <= fpp for seed in range(10))


def test_two_million_values_take_a_third_less_than_the_next_power_of_two() -> None:
    assert sizing.upper_bound_bytes(2_000_000, 0.01) == 4 << 20
    assert sizing.tight_bytes(2_000_000, 0.01) == pytest.approx(2.51 * (1 << 20), rel=0.001)
