"""The size of a split-block filter for a false-positive rate, and estimates from a filter's bits.

There are two formulas. `bytes_for_ndv` is the one that writers use (arrow-rs). It assumes equally loaded blocks, and
therefore gives too small a size at low rates. `expected_fpp` is the actual mean rate of a filter of a given size,
with unequal block loads; `upper_bound_bytes` uses it.

    rate   bits per value, formula   bits per value, actual
    0.1            5.77                     6.0
    0.01           9.68                    10.5
    0.001         14.61                    16.9
    0.0001        21.05                    26.4

(The last column is the table of the Apache Parquet specification, BloomFilter.md.)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from bloomcli import limits

WORDS: Final = 8
"""Words of a block, and bits that one value sets."""
WORD_BITS: Final = 32
BLOCK_BYTES: Final = 32

_SMALL_BLOCKS: Final = 1024
_DEVIATIONS: Final = 5
_STEP: Final = 32
_ESTIMATE_BITS: Final = 8
_GUESSES: Final = 4
_GROWTH: Final = 8
_LOWEST: Final = 1e-13
"""Lower rates are indistinguishable from rounding errors, because the terms of `expected_fpp` nearly cancel out."""


def next_power_of_two(value: int) -> int:
    """Return the smallest power of two that is at least `value`; 1 for values below 1."""
    return 1 << max(value - 1, 0).bit_length()


def bytes_for_ndv(ndv: int, fpp: float) -> int:
    """Return bitset bytes by arrow-rs's formula: NP2(m / 8), m = -8 n / ln(1 - fpp^(1/8)) bits, 32 B to 128 MiB.

    Source: the documentation of arrow-rs's parquet::bloom_filter, after Putze et al., "Cache-, Hash- and
    Space-Efficient Bloom Filters".

    Args:
        ndv: distinct values, at least 0.
        fpp: requested false-positive rate, between 0 and 1.

    Raises:
        ValueError: `ndv` or `fpp` is out of range.
    """
    _check(ndv, fpp)
    bits = -WORDS * ndv / math.log1p(-(fpp ** (1 / WORDS)))
    size = next_power_of_two(int(min(bits, 1 << 62)) // 8)
    return min(max(size, limits.FILTER_MIN_BYTES), limits.FILTER_MAX_BYTES)


def expected_fpp(values: int, nbytes: int) -> float:
    """Return the mean false-positive rate of a filter of `nbytes` bytes with `values` distinct values.

    A block with k values gives a false positive for a random absent value with probability (1 - (31/32)^k)^8, and k
    is binomial with n = values, p = 1/z. Expanding the power and taking the mean of each term gives

        sum over j = 0..8 of (-1)^j C(8, j) (1 - (1 - (31/32)^j) / z)^n

    which is exact, unlike the usual approximation by the mean load.
    """
    blocks = nbytes // BLOCK_BYTES
    if values <= 0:
        return 0.0
    keep = (WORD_BITS - 1) / WORD_BITS
    total = math.fsum(
        (-1) ** j * math.comb(WORDS, j) * math.exp(values * _log1m((1 - keep**j) / blocks)) for j in range(WORDS + 1)
    )
    return min(max(total, 0.0), 1.0)


def _log1m(x: float) -> float:
    return -math.inf if x >= 1 else math.log1p(-x)


@lru_cache(maxsize=1024)  # called several times for each chunk; a call takes 0.2 ms
def upper_bound_bytes(values: int, fpp: float) -> int:
    """Return the bytes, a power of two from 32 B to 128 MiB, at which a filter of up to `values` values meets `fpp`.

    The measured rate of a filter varies around the expected rate, noticeably so with few blocks. Small filters are
    therefore doubled, and large ones keep a margin of five standard deviations. About one filter in a million still
    misses the rate, more at low rates: the caller measures the filter it builds, and doubles the size if necessary.

    Raises:
        ValueError: `values` or `fpp` is out of range.
    """
    _check(values, fpp)
    size = limits.FILTER_MIN_BYTES
    small = _SMALL_BLOCKS * BLOCK_BYTES
    while size < limits.FILTER_MAX_BYTES:
        headroom = 0.0 if size < small else _DEVIATIONS * _deviation(size, fpp)
        if expected_fpp(values, size) * (1 + headroom) <= fpp:
            break
        size *= 2
    if values and size < small:
        size *= 2
    return size


def _deviation(nbytes: int, fpp: float) -> float:
    """Return the standard deviation of a filter's rate, as a share of it.

    The rates of the blocks are nearly independent, so the deviation of their mean falls with the square root of their
    number. The lower the rate, the more of it comes from a few full blocks: 0.45 fpp^-0.2 bounds the deviation of a
    block as a share of the rate (0.24 at 0.5, 1.1 at 0.01, 6.1 at 1e-6), by sums over Poisson loads.
    """
    return 0.45 * float(fpp**-0.2) / math.sqrt(nbytes // BLOCK_BYTES)


@lru_cache(maxsize=1024)
def tight_bytes(values: int, fpp: float, deviations: float = 0.0) -> int:
    """Return the bytes, a multiple of 32 up to 128 MiB, of the smallest filter whose expected rate meets `fpp`.

    This is the size that `--size tight` aims at: `expected_fpp` with any number of blocks. The measured rates of
    filters with few blocks vary, so the sizes that `bloom add` writes differ from it a little.

    Args:
        values: distinct values, at least 0.
        fpp: the false-positive rate to meet, between 0 and 1.
        deviations: room for the measured rate, in standard deviations above the expected one.

    Raises:
        ValueError: `values` or `fpp` is out of range.
    """
    _check(values, fpp)
    low, high = 0, limits.FILTER_MAX_BYTES // BLOCK_BYTES
    while high - low > 1:  # the expected rate and its deviation fall with every block
        blocks = (low + high) // 2
        nbytes = blocks * BLOCK_BYTES
        rate = max(expected_fpp(values, nbytes), _LOWEST if values else 0.0)
        if rate * (1 + deviations * _deviation(nbytes, fpp)) > fpp:
            low = blocks
        else:
            high = blocks
    return high * BLOCK_BYTES


def tight_estimate(values: int, fpp: float) -> int:
    """Return `tight_bytes` in about a microsecond, for many values with an error below a thousandth.

    The number of values is rounded down to eight significant bits; from there, the size is nearly proportional to it.

    Args:
        values: distinct values, at least 0.
        fpp: the false-positive rate to meet.

    Raises:
        ValueError: `values` or `fpp` is out of range.
    """
    shift = max(values.bit_length() - _ESTIMATE_BITS, 0)
    if not shift:
        return tight_bytes(values, fpp)
    near = values >> shift << shift
    size = tight_bytes(near, fpp) * values / near
    return min(math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES, limits.FILTER_MAX_BYTES)


def tight_bound_bytes(values: int, fpp: float) -> int:
    """Return the bytes, a multiple of 32 up to 128 MiB, at which a filter of up to `values` values meets `fpp`.

    Unlike `tight_bytes`, it leaves room for the measured rate, which varies around the expected one: five standard
    deviations, and two blocks more.

    Raises:
        ValueError: `values` or `fpp` is out of range.
    """
    bound = tight_bytes(values, fpp, _DEVIATIONS)
    return min(bound + 2 * BLOCK_BYTES, limits.FILTER_MAX_BYTES) if values else bound


def resized_for(values: int, nbytes: int, share: float) -> int:
    """Return the approximate bytes at which the expected rate is `share` times that of a filter of `nbytes` bytes.

    Near a given size, the rate is a power of the size; the exponent is estimated from two sizes. The result is at
    most 8 times `nbytes`.

    Args:
        values: distinct values.
        nbytes: a size, bytes.
        share: factor of the expected rate at that size, above 0.
    """
    larger = nbytes + max(nbytes // _STEP // BLOCK_BYTES, 1) * BLOCK_BYTES
    rate, next_rate = expected_fpp(values, nbytes), expected_fpp(values, larger)
    if not _LOWEST < next_rate < rate:
        return nbytes
    exponent = math.log(next_rate / rate) / math.log(larger / nbytes)
    growth = math.exp(min(math.log(share) / min(exponent, -1 / _GROWTH), math.log(_GROWTH)))
    return max(int(nbytes * growth / BLOCK_BYTES + 0.5), 1) * BLOCK_BYTES


def tight_guess(values: int, fpp: float, start: int, deviations: float) -> int:
    """Return an approximation of `tight_bytes`, in a tenth of the time.

    Args:
        values: distinct values.
        fpp: the false-positive rate to meet.
        start: a size of the same order, bytes.
        deviations: as for `tight_bytes`.
    """
    size = start
    for _ in range(_GUESSES):
        rate = max(expected_fpp(values, size), _LOWEST)
        last, size = size, resized_for(values, size, fpp / (1 + deviations * _deviation(size, fpp)) / rate)
        size = min(size, limits.FILTER_MAX_BYTES)
        if abs(size - last) * _STEP < size:
            break
    return size


def estimate_ndv(set_bits: int, nbytes: int) -> float | None:
    """Return an estimate of the distinct values in a filter, from its set bits; None if every bit is set.

    Each value sets one of the 32 z bits at each of the eight word positions, so each position is a linear counter of
    32 z bins: n = ln(1 - fill) / ln(1 - 1 / (32 z)). Source: Whang et al., "A Linear-Time Probabilistic Counting
    Algorithm for Database Applications", applied to the mean of the eight positions.
    """
    bits = nbytes * 8
    if set_bits >= bits:
        return None
    if set_bits <= 0:
        return 0.0
    bins = bits // WORDS
    return math.log1p(-set_bits / bits) / math.log1p(-1 / bins)


def _check(values: int, fpp: float) -> None:
    if values < 0:
        raise ValueError(f"a number of values can't be negative: {values}")
    if not 0 < fpp < 1:
        raise ValueError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
