"""The plans that remove filters from a Mosaic file, or fold them. No column is read."""

from __future__ import annotations

from bloomcli.formats.base import Tick
from bloomcli.formats.folding import Folding
from bloomcli.formats.mosaic.describe import column_name
from bloomcli.formats.mosaic.filter_header import HEADER_BOUND
from bloomcli.formats.mosaic.filters import Filters
from bloomcli.formats.mosaic.footer import FilterLocation
from bloomcli.formats.mosaic.plan_base import Change
from bloomcli.formats.mosaic.splice import Layout, NewFilter
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import FilterChange
from bloomcli.storage.base import Pieces


class RemovePlan(Change):
    """The plan that removes filters. A file without any filter is a version 1 file again."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters, set(filters.locations(columns)))
        filters.source.will_read((p.offset, HEADER_BOUND) for p in filters.locations(columns))
        self._estimated = tuple(
            FilterChange(
                row_group=location.row_group,
                column=column_name(filters.footer, location),
                action="remove",
                bitset_bytes=None,
                old_bitset_bytes=self.filters.bitset_bytes(location),
            )
            for location in filters.locations(columns)
        )
        self.new_bytes_bound = self.bound(())

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The row groups, each followed by the filters that stay."""
        del threads, tick
        layout = Layout(self.footer, self.removed)
        for point, group in layout.steps:
            yield from layout.before(point)
            yield from layout.add(point, group, ())
        yield from self.finish(layout, self.estimate, 0)


class FoldPlan(Change):
    """The plan that halves filters as often as their measured rate allows."""

    def __init__(self, filters: Filters, columns: set[int] | None, rule: SizeRule) -> None:
        self._folding = Folding[FilterLocation](rule, lambda location: filters.load(location).bits)
        filters.source.will_read(filters.ranges(columns))
        changes = [
            self._folding.fold(
                location, filters.load(location).bits, location.row_group, column_name(filters.footer, location)
            )
            for location in filters.locations(columns)
        ]
        super().__init__(filters, set(self._folding.sizes))
        self._estimated = tuple(changes)
        self.new_bytes_bound = self.bound(list(self._folding.sizes.values()))

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The row groups, each followed by the filters that stay."""
        del threads, tick
        layout = Layout(self.footer, self.removed)
        for point, group in layout.steps:
            yield from layout.before(point)
            new = [
                NewFilter(location.column, self._folding.take(location), location.position)
                for location in group.filters
                if location in self._folding.sizes
            ]
            yield from layout.add(point, group, new)
            del new
        yield from self.finish(layout, self.estimate, 0)
