"""The plans that remove filters from a Parquet file, or fold them. No column is read."""

from __future__ import annotations

import itertools

from bloomcli.formats.base import Tick
from bloomcli.formats.folding import Folding
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey
from bloomcli.formats.parquet.plan_base import HEADER_BOUND, Change
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import FilterChange
from bloomcli.storage.base import KeptRange, Pieces


class RemovePlan(Change):
    """The plan that removes filters."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters, set(filters.filter_keys(columns)), puts=False)
        filters.source.will_read(filters.headers(columns))
        self.give_back()
        chunks = (filters.footer.chunk(key) for key in sorted(self.removed))
        self._estimated = tuple(
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
        """The file without the filters. No column is read."""
        del threads, tick
        yield from itertools.starmap(KeptRange, self.keep)
        yield from self.finish(self.estimate, 0)


class FoldPlan(Change):
    """The plan that halves filters as often as their measured rate allows."""

    def __init__(self, filters: Filters, columns: set[int] | None, rule: SizeRule) -> None:
        footer = filters.footer
        folding = self._folding = Folding[ChunkKey](rule, lambda key: filters.load(footer.chunk(key)).bits)
        changes: list[FilterChange] = []
        filters.source.will_read(filters.ranges(columns))
        for key in filters.filter_keys(columns):
            chunk = footer.chunk(key)
            loaded = filters.load(chunk)
            # a filter of the 2018 drafts isn't folded: it has to be replaced
            foldable = not loaded.header.draft
            changes.append(folding.fold(key, loaded.bits, chunk.row_group, chunk.column.path, foldable=foldable))
            del loaded  # the next one may be as large
        super().__init__(filters, set(folding.sizes), puts=bool(folding.sizes))
        self._estimated = tuple(changes)
        self.bytes_to_decode = 0
        self.new_bytes_bound = (
            sum(size + HEADER_BOUND for size in folding.sizes.values())
            + len(footer.raw)
            + 20 * len(folding.sizes)
            + 8
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The rest of the file, then the folded filters."""
        del threads, tick
        yield from itertools.starmap(KeptRange, self.keep)
        for key in self._folding.sizes:
            bits = self._folding.take(key)
            yield from self.put(key, bits)
            del bits  # the next one may be as large
        yield from self.finish(self.estimate, 0)
