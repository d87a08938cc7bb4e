"""The rule for the size of new filters, and the folding of split-block filters to it. No column is read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from bloomcli import limits
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.format import NO_OPTIONS, OptionValues
from bloomcli.model.change import FilterChange


def no_limit(column: str) -> None:
    """No policy limits the rate of a column's filters."""
    del column


_BUILDS: Final = 6
"""Maximum number of builds in the search for a tight filter's size."""
_NEAR: Final = 0.02
"""A tight filter is small enough if its rate is below the requested rate by at most this share of it: that is some
0.4 % of the filter's size."""


class SizeRule(NamedTuple):
    """The rule for the size of new filters: measured against `fpp`, or by formula for `ndv` distinct values."""

    fpp: float
    ndv: int | None = None
    max_bytes: int | None = None
    options: OptionValues = NO_OPTIONS
    """Options that belong to one format, checked against the formats' records."""
    min_bytes: int = limits.FILTER_MIN_BYTES
    """Bytes of the smallest split-block filter to write, a power of two; `max_bytes` wins over it."""
    tight: bool = False
    """Split-block filters may have any number of blocks, not only a power of two."""
    by_default: bool = False
    """`fpp` and `ndv` are bloom's defaults, not the user's choice."""
    limit: Callable[[str], float | None] = no_limit
    """Returns the policy's highest rate for a column's path, which replaces `fpp`; None without a limit."""

    def of(self, column: str) -> SizeRule:
        """The rule for one column's filters, by the column's path."""
        limit = self.limit(column)
        return self if limit is None else self._replace(fpp=limit, by_default=False, limit=no_limit)

    def choice(self, option: str) -> str | None:
        """The value of a format's option; None where it wasn't given."""
        value = self.options.get(option)
        return value if isinstance(value, str) else None

    @property
    def largest_split_block(self) -> int:
        """Bytes of the largest split-block filter within `max_bytes` and the ceiling of filters: a power of two, or
        any multiple of 32 if sizes are tight."""
        most = limits.FILTER_MAX_BYTES if self.max_bytes is None else min(self.max_bytes, limits.FILTER_MAX_BYTES)
        if self.tight:
            return max(most - most % sizing.BLOCK_BYTES, limits.FILTER_MIN_BYTES)
        return 1 << max(most.bit_length() - 1, limits.FILTER_MIN_BYTES.bit_length() - 1)

    @property
    def smallest_split_block(self) -> int:
        """Bytes of the smallest split-block filter."""
        return min(self.min_bytes, self.largest_split_block)

    def size_of(self, ndv: int, fpp: float) -> int:
        """Bytes of a split-block filter for `ndv` distinct values, by formula."""
        if self.tight:
            return min(sizing.tight_bytes(ndv, fpp), self.largest_split_block)
        return sizing.bytes_for_ndv(ndv, fpp)

    def build_filter(
        self, build: Callable[[int | None], SplitBlockFilter], again: Callable[[], bool] = lambda: True
    ) -> SplitBlockFilter:
        """Build a filter of all values at the size that the rule requires.

        Args:
            build: builds the filter at a size in bytes, or for None at the size of the upper bound. Sizes follow the
                expected rate, which the measured rate may exceed: the filter is then released and built again.
            again: whether the filter can be built again without reading the values again. If not, a tight filter's
                size has a margin, and the first filter that meets the rate is used.
        """
        cap = self.largest_split_block
        bits = build(None)
        if self.ndv is not None:
            while bits.nbytes > cap:
                bits = bits.fold()
            return bits
        while bits.fpp > self.fpp and bits.nbytes * 2 <= cap:
            size = bits.nbytes * 2
            del bits
            bits = build(size)
        if not self.tight:
            return bits.folded_to(self.fpp, cap, self.smallest_split_block)
        values = bits.ndv_estimate
        bits = bits.folded_to(self.fpp, cap, self.smallest_split_block)
        return bits if values is None else self._tightened(bits, round(values), build, cheap=again())

    def _tightened(
        self, folded: SplitBlockFilter, values: int, build: Callable[[int | None], SplitBlockFilter], *, cheap: bool
    ) -> SplitBlockFilter:
        """The smallest filter found whose rate meets the rule's, between a power of two and the next.

        Args:
            folded: the smallest power of two that meets the rate, or the largest within the cap.
            values: distinct values.
            build: builds the filter at a size, bytes.
            cheap: build up to `_BUILDS` filters. Otherwise the first that meets the rate is used.
        """
        block = sizing.BLOCK_BYTES
        meets = folded.fpp <= self.fpp
        low = folded.nbytes // 2 if meets else folded.nbytes
        low = max(low, self.smallest_split_block - block)
        high = folded.nbytes if meets else self.largest_split_block + block
        wanted = sizing.tight_guess(values, self.fpp, folded.nbytes, 1.0 if cheap else 2.0)
        best, builds = folded, 0
        while high - low > block and (builds < _BUILDS or not meets):
            size = min(max(wanted, low + block), high - block)
            bits = build(size)
            builds += 1
            if bits.fpp <= self.fpp:
                meets, best, high = True, bits, size
                if not cheap or bits.fpp >= self.fpp * (1 - _NEAR):
                    break
            else:
                low = size
                best = best if meets else bits
            wanted = sizing.resized_for(values, size, self.fpp / max(bits.fpp, sys.float_info.min))
            if not meets:
                wanted = max(wanted, size + size // 256 // block * block)
        return best


L = TypeVar("L", bound=Hashable)


class Folding(Generic[L]):
    """Folds filters as far as their measured rate allows: by halving, or to any size if the rule is tight.

    A plan folds every filter to determine its new size. Folded filters are kept in memory up to
    `limits.FILTERS_FOLDED_MAX_BYTES`; the others are read and folded again when they are written.

    Args:
        rule: the rate that filters keep, and their largest and smallest size.
        load: reads a filter of the original.

    Attributes:
        sizes: bytes of the folded bitsets, by location; filters that stay unchanged aren't in it.
    """

    def __init__(self, rule: SizeRule, load: Callable[[L], SplitBlockFilter]) -> None:
        self.sizes: dict[L, int] = {}
        self._rule = rule
        self._load = load
        self._kept: dict[L, SplitBlockFilter] = {}
        self._kept_bytes = 0

    def fold(
        self, location: L, old: SplitBlockFilter, row_group: int, column: str, *, foldable: bool = True
    ) -> FilterChange:
        """Fold a filter. One that isn't `foldable`, or can't become smaller, is reported as kept."""
        rule = self._rule
        bits = self._smaller(old) if foldable else old
        if bits.nbytes < old.nbytes:
            self.sizes[location] = bits.nbytes
            if self._kept_bytes + bits.nbytes <= limits.FILTERS_FOLDED_MAX_BYTES:
                self._kept[location] = bits
                self._kept_bytes += bits.nbytes
        return FilterChange(
            row_group=row_group,
            column=column,
            action="fold" if bits.nbytes < old.nbytes else "keep",
            bitset_bytes=bits.nbytes,
            old_bitset_bytes=old.nbytes,
            fpp=bits.fpp,
            target_fpp=rule.fpp,
            misses_target=bits.fpp > rule.fpp,
        )

    def take(self, location: L) -> SplitBlockFilter:
        """Return a folded filter, and release it."""
        bits = self._kept.pop(location, None)
        if bits is None:
            bits = self._smaller(self._load(location))
        return bits

    def _smaller(self, old: SplitBlockFilter) -> SplitBlockFilter:
        rule = self._rule
        shrink = old.tightened_to if rule.tight else old.folded_to
        return shrink(rule.fpp, rule.largest_split_block, rule.smallest_split_block)
