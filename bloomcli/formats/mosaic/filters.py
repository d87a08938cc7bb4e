"""Locates and reads the filters of an open Mosaic file."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import groupby

from bloomcli.formats.base import FilterProblem
from bloomcli.formats.mosaic.filter_header import (
    HEADER_BOUND,
    LoadedFilter,
    ProbedFilter,
    bitset_bytes,
    load,
    load_for,
    ranges_for,
)
from bloomcli.formats.mosaic.footer import FilterLocation, Footer, RowGroup
from bloomcli.formats.mosaic.limits import FILTER_MAX_BYTES
from bloomcli.formats.mosaic.statistics import bound_hashes
from bloomcli.storage.base import Source


class Filters:
    """The filters that the row-group index lists. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, source: Source, footer: Footer) -> None:
        self.source = source
        self.footer = footer

    def locations(self, columns: set[int] | None) -> Iterator[FilterLocation]:
        """The filters of these columns, by row group and column. None: all filters, even of unknown columns."""
        for group in self.footer.row_groups:
            chosen = (p for p in group.filters if columns is None or p.column in columns)
            yield from sorted(chosen, key=lambda p: (p.column, p.position))

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters of these columns (None: all)."""
        return ((p.offset, p.length) for p in self.locations(columns) if p.length <= FILTER_MAX_BYTES + HEADER_BOUND)

    def value_ranges(self, group: RowGroup, columns: set[int]) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of a row group's buckets that hold any of these columns."""
        wanted = {self.footer.columns[c].bucket for c in columns}
        return ((b.offset, b.size) for b in group.buckets if b.id in wanted)

    def preferred(self, group: RowGroup, column: int) -> FilterLocation | None:
        """The filter of a column that readers use, which is the first; None where it has none."""
        return next((p for p in group.filters if p.column == column), None)

    def location(self, column: int, row_group: int, stripe: int) -> FilterLocation | None:
        """The filter of a column in a row group that readers use; None where it has none."""
        del stripe
        return self.preferred(self.footer.row_groups[row_group], column)

    def load(self, location: FilterLocation) -> LoadedFilter:
        """Read a filter. Raises FilterProblem."""
        return load(self.footer, location)

    def load_for(self, location: FilterLocation, hashes: int) -> ProbedFilter:
        """Read what looking up `hashes` hashes needs of a filter. Raises FilterProblem."""
        return load_for(self.footer, location, hashes)

    def ranges_to_look_up(
        self, column: int, hashes: Sequence[int], groups: Sequence[RowGroup]
    ) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of what `load_for` reads of a column's filters in these row groups, for these
        hashes and those of the row groups' own bounds."""
        for group in groups:
            location = self.preferred(group, column)
            if location is not None:
                yield from ranges_for(location, [*hashes, *bound_hashes(group, self.footer.columns[column])])

    @cached_property
    def _first(self) -> set[FilterLocation]:
        """The filters that readers use: the first of each column and row group."""
        return {next(same) for _, same in groupby(self.locations(None), key=lambda p: (p.row_group, p.column))}

    def is_duplicate(self, location: FilterLocation) -> bool:
        """Whether a filter isn't the first of its column and row group."""
        return location not in self._first

    def columns(self) -> set[int]:
        """Ordinals of the columns that have a filter in any row group."""
        return {location.column for location in self.footer.filters if location.column < len(self.footer.columns)}

    def bitset_bytes(self, location: FilterLocation) -> int | None:
        """Bytes of a filter's bitset, by its header; None if the header can't be read."""
        try:
            return bitset_bytes(self.footer, location)
        except FilterProblem:
            return None

    def bytes_of(self, group: RowGroup, columns: set[int]) -> int:
        """Compressed bytes of a row group's buckets that hold any of these columns."""
        buckets = {self.footer.columns[c].bucket for c in columns}
        return sum(group.bucket_bytes(b) for b in buckets)

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of the buckets of these columns (None: all) with filters, in the row groups `units`."""
        total = 0
        for group in self.footer.row_groups:
            if units is None or group.ordinal in units:
                filtered = {p.column for p in group.filters if p.column < len(self.footer.columns)}
                total += self.bytes_of(group, filtered if columns is None else filtered & columns)
        return total
