"""How large a split-block filter has to be, and what its bits say about what is in it.

Two rules live here. `bytes_for_ndv` is the formula that writers in the wild use (arrow-rs), which asks for
too little at small rates because it takes all blocks to be equally loaded. `expected_fpp` is the rate that
a filter of a given size really has on average, block loads and all; `upper_bound_bytes` goes by that.

    rate   bits per value, formula   bits per value, real
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
"""Words of a block: bits that one value sets."""
WORD_BITS: Final = 32
BLOCK_BYTES: Final = 32

_SMALL_BLOCKS: Final = 1024
_DEVIATIONS: Final = 5


def next_power_of_two(value: int) -> int:
    """The smallest power of two that is at least `value` (1 for anything below)."""
    return 1 << max(value - 1, 0).bit_length()


def _clamp(size: int) -> int:
    return min(max(next_power_of_two(size), limits.FILTER_MIN_BYTES), limits.FILTER_MAX_BYTES)


def bytes_for_ndv(ndv: int, fpp: float) -> int:
    """Bitset bytes by arrow-rs's formula: NP2(m / 8), m = -8 n / ln(1 - fpp^(1/8)) bits, 32 B to 128 MiB.

    Source: the documentation of arrow-rs's parquet::bloom_filter, after Putze et al., "Cache-, Hash- and
    Space-Efficient Bloom Filters".

    Args:
        ndv: distinct values, at least 0.
        fpp: asked-for false-positive rate, between 0 and 1.

    Raises:
        ValueError: a figure out of range.
    """
    _check(ndv, fpp)
    bits = -WORDS * ndv / math.log1p(-(fpp ** (1 / WORDS)))
    return _clamp(int(min(bits, 1 << 62)) // 8)


def expected_fpp(values: int, nbytes: int) -> float:
    """Mean false-positive rate of a filter of `nbytes` holding `values` distinct values.

    A block holding k values answers a random absent value wrongly with (1 - (31/32)^k)^8, and k is
    binomial with n = values, p = 1/z. Expanding the power and taking the mean term by term gives

        sum over j = 0..8 of (-1)^j C(8, j) (1 - (1 - (31/32)^j) / z)^n

    which is exact, not the usual approximation by the mean load.
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


@lru_cache(maxsize=1024)  # a chunk's is asked for several times, and takes a fifth of a millisecond
def upper_bound_bytes(values: int, fpp: float) -> int:
    """A power of two, 32 B to 128 MiB, at which a filter of at most `values` distinct values meets `fpp`.

    The measured rate of one filter scatters around the expected one; with few blocks noticeably, so small
    filters get one doubling, and large ones keep five standard deviations below. One in a million may miss all
    the same, small rates more often: who builds a filter measures it, and takes twice the size then.

    Raises:
        ValueError: a figure out of range.
    """
    _check(values, fpp)
    size = limits.FILTER_MIN_BYTES
    while size < limits.FILTER_MAX_BYTES and expected_fpp(values, size) * (1 + _headroom(size, fpp)) > fpp:
        size *= 2
    if values and size < _SMALL_BLOCKS * BLOCK_BYTES:
        size *= 2
    return size


def _headroom(nbytes: int, fpp: float) -> float:
    """How far above the expected rate, as a share of it, a filter's measured one may lie; small ones are doubled.

    The blocks' rates are as good as independent, so the mean's deviation falls with the root of their number;
    and the smaller the rate, the more of it is due to a few full blocks. 0.45 fpp^-0.2 is a bound of a block's
    deviation as a share of the rate (0.24 at 0.5, 1.1 at 0.01, 6.1 at 1e-6), from sums over Poisson loads.
    """
    blocks = nbytes // BLOCK_BYTES
    return 0.0 if blocks < _SMALL_BLOCKS else _DEVIATIONS * 0.45 * fpp**-0.2 / math.sqrt(blocks)


def estimate_ndv(set_bits: int, nbytes: int) -> float | None:
    """Distinct values in a filter, from its set bits; None when every bit is set.

    Every value sets one of the 32 z bits of each word position, so each of the eight positions is a linear
    counter of 32 z bins: n = ln(1 - fill) / ln(1 - 1 / (32 z)). Source: Whang et al., "A Linear-Time
    Probabilistic Counting Algorithm for Database Applications", applied to the mean of the eight.
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
