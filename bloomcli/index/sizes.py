"""The common size of the filters of a column: a number of blocks that is a power of two.

It is the smallest size at which the mean of the filters' measured rates meets the wanted rate. If no size does, it is
the smallest at which the mean is near the best one. Filters of other sizes are folded or replicated. A few very large
filters among many small ones could make the index much larger than the filters: a limit on its growth takes
precedence.
"""

from __future__ import annotations

from array import array
from typing import Final

from bloomcli import kernels
from bloomcli.filters.sizing import BLOCK_BYTES
from bloomcli.limits import INDEX_BLOCKS_MAX

_NEAR_BEST: Final = 1.05
"""A mean rate is near the best one if it is at most this many times as high."""
_GROWTH: Final = 4
"""The bits of a column take at most this many times the bytes of its filters, or `_SMALL_BYTES`."""
_SMALL_BYTES: Final = 1 << 20
LEVELS: Final = INDEX_BLOCKS_MAX.bit_length()
"""Number of common sizes: 1 block, 2 blocks, 4 blocks and so on."""


def rates(bitset: bytes | bytearray) -> array[float]:
    """The measured rates of a filter at 1 block, 2 blocks, 4 blocks and so on, up to its own size or the next power
    of two; at larger sizes the rate is the last one."""
    blocks = len(bitset) // BLOCK_BYTES
    size = 1 << (blocks - 1).bit_length()
    bits = bitset if size == blocks else kernels.sbbf_resized(bitset, size)
    result = [kernels.sbbf_stats(bits)[1]]
    while size > 1:
        size //= 2
        bits = kernels.sbbf_resized(bits, size)
        result.append(kernels.sbbf_stats(bits)[1])
    return array("f", reversed(result))


class Rates:
    """The rates of many filters, and the common size that they need.

    Attributes:
        count: number of filters.
    """

    def __init__(self) -> None:
        self._sums = [0.0] * LEVELS
        self.count = 0
        self._level = 0
        self._bytes = 0

    def add(self, measured: array[float], nbytes: int) -> None:
        """Add a filter by the result of `rates` and its bytes."""
        for level in range(LEVELS):
            self._sums[level] += measured[min(level, len(measured) - 1)]
        self.count += 1
        self._level = max(self._level, len(measured) - 1)
        self._bytes += nbytes

    def add_at(self, rate: float, level: int) -> None:
        """Add a filter of an old index, whose common size is 2 to the power of `level` blocks."""
        for other in range(LEVELS):
            self._sums[other] += rate
        self.count += 1
        self._level = max(self._level, level)
        self._bytes += BLOCK_BYTES << level

    def level(self, fpp: float, slots: int, least: int) -> int:
        """The common size, as the exponent of a power of two.

        Args:
            fpp: the wanted mean rate.
            slots: number of slots in a row of bits.
            least: the level of an old index, whose filters can't be folded further.
        """
        if not self.count:
            return least
        wanted = max(fpp, self._sums[self._level] / self.count * _NEAR_BEST)
        level = next(at for at in range(LEVELS) if self._sums[at] / self.count <= wanted)
        limit_bytes = max(_GROWTH * self._bytes, _SMALL_BYTES)
        while level > 0 and (slots * BLOCK_BYTES) << level > limit_bytes:
            level -= 1
        return max(level, least)
