"""Makes split-block filters smaller by folding, for the plans that fold. No column is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from bloomcli import limits
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import FilterChange

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
