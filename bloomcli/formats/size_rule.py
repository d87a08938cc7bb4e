"""The rule for the size of new filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bloomcli import limits
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.format import NO_OPTIONS, OptionValues


def no_limit(column: str) -> None:
    """No policy limits the rate of a column's filters."""
    del column


class SizeRule(NamedTuple):
    """The rule for the size of new filters: measured against `fpp`, or by formula for `ndv` distinct values."""

    fpp: float
    ndv: int | None = None
    max_bytes: int | None = None
    options: OptionValues = NO_OPTIONS
    """Options that belong to single formats, checked against the formats' records."""
    least: int = limits.FILTER_MIN_BYTES
    """Bytes of the smallest split-block filter to write, a power of two; `max_bytes` wins over it."""
    by_default: bool = False
    """`fpp` and `ndv` are bloom's defaults, not the user's choice."""
    limit: Callable[[str], float | None] = no_limit
    """The policy's highest rate for a column, by its path. It takes the place of `fpp` where there is one."""

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
        """Bytes of the largest split-block filter: a power of two within `max_bytes` and the ceiling of filters."""
        most = limits.FILTER_MAX_BYTES if self.max_bytes is None else min(self.max_bytes, limits.FILTER_MAX_BYTES)
        return 1 << max(most.bit_length() - 1, limits.FILTER_MIN_BYTES.bit_length() - 1)

    @property
    def smallest_split_block(self) -> int:
        """Bytes of the smallest split-block filter."""
        return min(self.least, self.largest_split_block)

    def fitted(self, build: Callable[[int | None], SplitBlockFilter]) -> SplitBlockFilter:
        """A filter that holds all values, brought to the size that the rule wants.

        Args:
            build: builds it at a size, bytes; with None at that of the upper bound. Sizes go by the expected rate,
                and the bits that are there may scatter beyond it: it is built again then, and the one before is
                let go of first.
        """
        cap = self.largest_split_block
        bits = build(None)
        if self.ndv is not None:
            while bits.nbytes > cap:
                bits = bits.fold()
            return bits
        while bits.fpp > self.fpp and bits.nbytes < cap:
            size = bits.nbytes * 2
            del bits
            bits = build(size)
        return bits.folded_to(self.fpp, cap, self.smallest_split_block)
