"""The plans that add filters to a Mosaic file, and that remove or fold them.

The package decodes all chosen columns of a row group at once, in threads of its own, so that row groups are read one
after the other. To remove or fold filters, no column is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Final

from bloomcli.errors import CorruptFile, FilterExists, UnsupportedError, UsageError
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import LEAVE_OUT, ChangeResult, Plan, Tick
from bloomcli.formats.mosaic import decoder, dictionary, values
from bloomcli.formats.mosaic.bloom_filter import HEADER_BOUND, Filters, unfilterable
from bloomcli.formats.mosaic.describe import column_name
from bloomcli.formats.mosaic.footer import FilterLocation, RowGroup
from bloomcli.formats.mosaic.format import DRAFT
from bloomcli.formats.mosaic.schema import MosaicColumn
from bloomcli.formats.mosaic.splice import Layout, NewFilter
from bloomcli.formats.size_rule import Folding, SizeRule
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column
from bloomcli.storage.base import KeptRange, Pieces

_ENTRY_BOUND: Final = 18
"""Bytes of a filter's entry in the index: two varints of at most 5, an offset of 8."""


class Change(Plan):
    """A change to a file that removes the filters `removed`."""

    def __init__(self, filters: Filters, removed: set[FilterLocation]) -> None:
        self.filters = filters
        self.footer = filters.footer
        self.removed = removed
        self.bytes_to_copy = Layout(self.footer, removed).bytes_to_copy
        self.bytes_to_decode = 0

    def outline(self) -> Iterator[KeptRange | int]:
        """The body up to each row group's filters, and for these an equal share of the new bytes."""
        points = [point for point, _ in Layout(self.footer, self.removed).steps]
        share = self.new_bytes_bound // (len(points) + 1)
        for start, end in itertools.pairwise([0, *points, self.footer.index_at]):
            if start < end:
                yield KeptRange(start, end - start)
            yield share

    def bound(self, bitsets: Sequence[int]) -> int:
        """Upper bound of the bytes that aren't copied, for new filters with bitsets of these bytes."""
        footer = self.footer
        entries = len(bitsets) + sum(len(g.filters) for g in footer.row_groups)
        index = sum(len(g.raw) + 5 for g in footer.row_groups)
        return sum(bitsets) + len(bitsets) * HEADER_BOUND + index + entries * _ENTRY_BOUND + len(footer.tail)

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The row groups, each followed by the filters that stay and those that change."""
        del threads, tick
        layout = Layout(self.footer, self.removed)
        for point, group in layout.steps:
            yield from layout.before(point)
            yield from layout.add(point, group, self.changed(group))
        yield from self.finish(layout, self.planned, 0)

    def changed(self, group: RowGroup) -> Sequence[NewFilter]:
        """A row group's changed filters, which replace removed ones."""
        del group
        return ()

    def finish(self, layout: Layout, changes: Sequence[FilterChange], decoded: int) -> Pieces:
        """The last pieces; then sets the result."""
        yield from layout.tail()
        self._result = ChangeResult(changes=tuple(changes), bytes_decoded=decoded, verify=layout.verify)


class AddPlan(Change):
    """Filters for chosen columns, built from their values."""

    def __init__(
        self, filters: Filters, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False
    ) -> None:
        _refuse(filters, columns, rule)
        self.rule = rule
        self.chosen = [filters.footer.columns[c.index] for c in columns]
        wanted = {c.index for c in self.chosen}
        existing = {location for location in filters.footer.filters if location.column in wanted}
        removed = set() if missing else existing
        if removed and not replace:
            first = min(removed, key=lambda p: (p.row_group, p.position))
            raise FilterExists(
                f"column {column_name(filters.footer, first)} has a filter in row group {first.row_group} already",
                path=filters.source.path,
                offset=first.offset,
                field=first.field,
                hint="--replace builds new ones in place of all existing ones",
            )
        decoder.check(filters.source.path)
        super().__init__(filters, removed)
        self._replaced = {(p.row_group, p.column): p for p in sorted(removed, key=lambda p: -p.position)}
        places = {(p.row_group, p.column) for p in existing - removed}
        self._todo = {
            g.ordinal: [c for c in self.chosen if (g.ordinal, c.index) not in places] for g in self.footer.row_groups
        }
        self.bytes_to_decode = sum(map(self._bytes_of, self.footer.row_groups))

    @cached_property
    def planned(self) -> tuple[FilterChange, ...]:  # type: ignore[override]
        """Computed on first use, because it reads the dictionaries."""
        return tuple(self._estimate(g, c) for g in self.footer.row_groups for c in self._todo[g.ordinal])

    @property
    def new_bytes_bound(self) -> int:  # type: ignore[override]
        """Upper bound of the bytes of the new file that aren't copied."""
        return self.bound([c.bitset_bytes or 0 for c in self.planned])

    def _bytes_of(self, group: RowGroup) -> int:
        return self.filters.bytes_of(group, {c.index for c in self._todo[group.ordinal]})

    def _upper_bound(self, group: RowGroup, column: MosaicColumn) -> int:
        if self.rule.ndv is not None:
            return sizing.bytes_for_ndv(self.rule.ndv, self.rule.of(column.name).fpp)
        count = values.distinct_bound(column, group.non_null(column.index))
        return sizing.upper_bound_bytes(count, self.rule.of(column.name).fpp)

    def _change(self, group: RowGroup, column: MosaicColumn, size: int) -> FilterChange:
        return FilterChange(
            row_group=group.ordinal,
            column=column.name,
            action="replace" if (group.ordinal, column.index) in self._replaced else "add",
            bitset_bytes=size,
            values=group.non_null(column.index),
            target_fpp=self.rule.of(column.name).fpp,
            source="buckets",
        )

    def _estimate(self, group: RowGroup, column: MosaicColumn) -> FilterChange:
        size = self._upper_bound(group, column)
        if self.rule.ndv is None and group.non_null(column.index):
            # the filter has at most as many values as the dictionary has entries, which are far fewer than the rows
            with suppress(CorruptFile):  # decoding the column reports it
                entries = dictionary.entries(self.footer, group, column)
                if entries is not None:
                    size = min(size, sizing.upper_bound_bytes(len(entries), self.rule.of(column.name).fpp))
        return self._change(group, column, min(size, self.rule.largest_split_block))

    def reads(self) -> Iterator[tuple[int, int]]:
        """The buckets of the chosen columns."""
        for group in self.footer.row_groups:
            yield from self.filters.value_ranges(group, {c.index for c in self._todo[group.ordinal]})

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The new file, row group by row group: kept bytes, then the row group's filters."""
        del threads
        self.filters.source.will_read(self.reads())
        layout = Layout(self.footer, self.removed)
        changes: dict[int, list[FilterChange]] = {}
        with values.ColumnReader(self.footer, self.chosen) as reader:
            for point, group in layout.steps:
                yield from layout.before(point)
                todo = self._todo[group.ordinal]
                hashes = reader.row_group(group) if todo else {}
                built = [self._build_one(group, column, hashes.pop(column.index)) for column in todo]
                tick(self._bytes_of(group))
                changes[group.ordinal] = [change for _, change in built]
                yield from layout.add(point, group, [new for new, _ in built])
                del built  # the next ones may be as large
        ordered = [change for ordinal in sorted(changes) for change in changes[ordinal]]
        yield from self.finish(layout, ordered, self.bytes_to_decode)

    def _build_one(
        self, group: RowGroup, column: MosaicColumn, hashed: values.HashedColumn
    ) -> tuple[NewFilter, FilterChange]:
        size, rule = self._upper_bound(group, column), self.rule.of(column.name)
        if rule.ndv is None:  # statistics may be wrong about nulls, decoded values aren't
            size = sizing.upper_bound_bytes(values.distinct_bound(column, hashed.count), rule.fpp)
        bits = rule.build_filter(lambda larger: _filled(larger or size, column, hashed))
        replaced = self._replaced.get((group.ordinal, column.index))
        change = replace(
            self._change(group, column, bits.nbytes),
            old_bitset_bytes=None if replaced is None else self.filters.bitset_bytes(replaced),
            values=hashed.count,
            fpp=bits.fpp,
            misses_target=bits.fpp > rule.fpp,
        )
        return NewFilter(column.index, bits), change


def _filled(size: int, column: MosaicColumn, hashed: values.HashedColumn) -> SplitBlockFilter:
    bits = SplitBlockFilter.empty(size)
    bits.insert_hashes(hashed.hashes, hashed.count)
    if hashed.has_zero:
        for value in values.zero_hashes(column):
            bits.insert(value)
    return bits


def _refuse(filters: Filters, columns: Sequence[Column], rule: SizeRule) -> None:
    """Raise where a column can't have a filter, or --mosaic-draft is missing."""
    for column in columns:
        mosaic = filters.footer.columns[column.index]
        if (reason := unfilterable(mosaic)) is not None:
            raise UnsupportedError(
                f"column {mosaic.name} is {reason}",
                path=filters.source.path,
                field=f"schema.columns[{mosaic.index}]",
                hint=LEAVE_OUT,
            )
    if not rule.options.get(DRAFT.name):
        raise UsageError(
            "filters make this a version 2 file, as a draft has it: released Mosaic readers (paimon-mosaic 0.2.0) "
            "refuse version 2",
            path=filters.source.path,
            hint=f"say {DRAFT.flag} if only readers with the draft will open it; `bloom remove` makes it version 1",
        )


class RemovePlan(Change):
    """The plan that removes filters. A file without any filter is a version 1 file again."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters, set(filters.locations(columns)))
        filters.source.will_read((p.offset, HEADER_BOUND) for p in filters.locations(columns))
        self.planned = tuple(
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
        self.planned = tuple(changes)
        self.new_bytes_bound = self.bound(list(self._folding.sizes.values()))

    def changed(self, group: RowGroup) -> Sequence[NewFilter]:
        """The folded filters."""
        return [
            NewFilter(location.column, self._folding.take(location), location.position)
            for location in group.filters
            if location in self._folding.sizes
        ]
