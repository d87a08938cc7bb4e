"""Drafts that take filters out of a Parquet file, or make them smaller. No column is read."""

from __future__ import annotations

import itertools

from bloomcli import limits
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import Kept, Pieces, SizeRule, Tick
from bloomcli.formats.parquet.filter_header import LoadedFilter
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkPlace
from bloomcli.formats.parquet.plan_base import HEADER_BOUND, Change
from bloomcli.model.file import FilterChange


class RemovePlan(Change):
    """Filters taken out."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters, set(filters.places(columns)), puts=False)
        chunks = (filters.footer.chunk(place) for place in sorted(self.gone))
        self.estimate = tuple(
            FilterChange(
                row_group=chunk.row_group,
                column=chunk.column.path,
                action="remove",
                bitset_bytes=None,
                old_bitset_bytes=filters.bitset_bytes(chunk),
            )
            for chunk in chunks
        )
        self.bytes_to_decode = 0
        self.new_bytes_bound = len(filters.footer.raw) + 8

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Nothing has to be read."""
        del threads, tick
        yield from itertools.starmap(Kept, self.keep)
        yield from self.finish(self.estimate, 0)


class FoldPlan(Change):
    """Filters halved as often as their measured rate allows. No column is read."""

    def __init__(self, filters: Filters, columns: set[int] | None, rule: SizeRule) -> None:
        self.rule = rule
        self._folded: dict[ChunkPlace, int] = {}
        self._ready: dict[ChunkPlace, SplitBlockFilter] = {}
        """As many of them as memory is for; the others are folded again when they are written."""
        ready = 0
        estimate = []
        for place in filters.places(columns):
            loaded = filters.load(filters.footer.chunk(place))
            # filters of the drafts are to be replaced, not kept in use
            bits = loaded.bits
            if not loaded.header.draft:
                bits = bits.folded_to(rule.fpp, rule.largest_split_block, rule.smallest_split_block)
            if bits.nbytes < loaded.bits.nbytes:
                self._folded[place] = bits.nbytes
                if ready + bits.nbytes <= limits.FILTERS_FOLDED_MAX_BYTES:
                    self._ready[place] = bits
                    ready += bits.nbytes
            estimate.append(self._changed(filters.footer.columns[place.column].path, place, loaded, bits))
            del loaded, bits  # the next one may be as large
        super().__init__(filters, set(self._folded), puts=bool(self._folded))
        self.estimate = tuple(estimate)
        self.bytes_to_decode = 0
        self.new_bytes_bound = (
            sum(size + HEADER_BOUND for size in self._folded.values())
            + len(filters.footer.raw)
            + 20 * len(self._folded)
            + 8
        )

    def _changed(self, column: str, place: ChunkPlace, loaded: LoadedFilter, bits: SplitBlockFilter) -> FilterChange:
        return FilterChange(
            row_group=place.row_group,
            column=column,
            action="fold" if bits.nbytes < loaded.bits.nbytes else "keep",
            bitset_bytes=bits.nbytes,
            old_bitset_bytes=loaded.bits.nbytes,
            fpp=bits.fpp,
            target_fpp=self.rule.fpp,
            misses_target=bits.fpp > self.rule.fpp,
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """No column has to be read."""
        del threads, tick
        yield from itertools.starmap(Kept, self.keep)
        for place, size in self._folded.items():
            bits = self._ready.pop(place, None)
            if bits is None:
                bits = self.filters.load(self.filters.footer.chunk(place)).bits
                while bits.nbytes > size:
                    bits = bits.fold()
            yield from self.put(place, bits)
            del bits
        yield from self.finish(self.estimate, 0)
