"""Puts filters into a Mosaic file and takes them out; copies buckets and schema block unchanged.

    [buckets of a row group][its filters, by column] ... [schema block][row-group index][footer]

A row group's filters directly follow its last bucket, so the buckets of later row groups move. Their offsets in the
index are replaced in place, since offsets have a fixed width. Removing the same filters moves everything back. The
version byte is 2 if there is a filter, else 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bloomcli import kernels
from bloomcli.errors import WriteError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.mosaic import spec
from bloomcli.formats.mosaic.bloom_filter import Filters, in_data, problem, write_header
from bloomcli.formats.mosaic.footer import FilterLocation, Footer, RowGroup
from bloomcli.storage.base import KeptRange, Piece, Source
from bloomcli.words import counted, were


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A range that a bucket or a filter takes."""

    start: int
    end: int
    what: str
    filter: FilterLocation | None = None


def regions(footer: Footer) -> list[Region]:
    """All ranges within the data, by start; without empty ranges and filters outside of the data."""
    ranges = [
        Region(start=b.offset, end=b.end, what=f"bucket {b.id} of row group {group.ordinal}")
        for group in footer.row_groups
        for b in group.buckets
        if b.size
    ]
    ranges += [
        Region(start=f.offset, end=f.end, what=f"filter {f.position} of row group {f.row_group}", filter=f)
        for f in footer.filters
        if f.length and in_data(footer, f)
    ]
    return sorted(ranges, key=lambda r: (r.start, r.end))


def overlaps(footer: Footer) -> Iterator[tuple[Region, Region]]:
    """Pairs of ranges that overlap, at least one of them a filter's."""
    reach: Region | None = None
    for region in regions(footer):
        if reach is not None and region.start < reach.end and (region.filter or reach.filter):
            yield reach, region
        if reach is None or region.end > reach.end:
            reach = region


@dataclass(frozen=True, slots=True)
class NewFilter:
    """A new filter."""

    column: int
    bits: SplitBlockFilter
    position: int = 1 << 32
    """Its position among the filters of the same column; a folded filter keeps its position."""


class Layout:
    """The layout of the new file, built step by step. Raises FilterProblem if a filter that stays can't be moved."""

    def __init__(self, footer: Footer, removed: set[FilterLocation]) -> None:
        self.footer = footer
        self.removed = removed
        overlapping = {r.filter for pair in overlaps(footer) for r in pair}
        self._kept: dict[int, list[FilterLocation]] = {}
        cuts: list[tuple[int, int]] = []
        for location in footer.filters:
            movable = in_data(footer, location) and location not in overlapping
            if movable and location.length:
                cuts.append((location.offset, location.end))
            if location in removed:
                continue  # one that can't be cut out loses its entry, its bytes stay
            if not movable:
                reason = "the filter overlaps something else or lies outside the data:"
                raise problem(footer, location, f"{reason} it can't stay in a changed file", "filter-offset")
            self._kept.setdefault(location.row_group, []).append(location)
        self._cuts = sorted(cuts)
        self.steps: list[tuple[int, RowGroup]] = self._insertion_points()
        """(offset where its filters are inserted, row group), in the order of the new file."""
        self._consumed = 0
        self._next_cut = 0
        self._position = 0
        self._moves: list[tuple[int, int]] = []
        self._entries: dict[int, list[tuple[int, int, int]]] = {}
        self._written: list[tuple[int, int, int]] = []
        """(row group, offset, XXH64 of the bitset) of each new filter. The bits aren't kept, to save memory."""
        self._index = b""

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are copied to the new file."""
        kept = sum(p.length for locations in self._kept.values() for p in locations)
        return self.footer.index_at - sum(end - start for start, end in self._cuts) + kept

    def _insertion_points(self) -> list[tuple[int, RowGroup]]:
        """The offsets after each row group's last bucket, but never within another bucket."""
        buckets = [r for r in regions(self.footer) if r.filter is None]
        points: list[tuple[int, RowGroup]] = []
        point = 0
        for group in self.footer.row_groups:
            point = max((b.end for b in group.buckets if b.size), default=point)
            points.append((point, group))
        points.sort(key=lambda p: (p[0], p[1].ordinal))
        out: list[tuple[int, RowGroup]] = []
        at = reach = 0
        for point, group in points:
            while at < len(buckets) and buckets[at].start < max(point, reach):
                reach = max(reach, buckets[at].end)
                at += 1
            out.append((max(point, reach), group))
        return out

    def before(self, point: int) -> Iterator[Piece]:
        """The body up to `point`, without the removed ranges."""
        while self._next_cut < len(self._cuts) and self._cuts[self._next_cut][0] < point:
            start, end = self._cuts[self._next_cut]
            yield from self._keep(start)
            self._consumed = end
            self._next_cut += 1
            self._moves.append((end, start - end))
        yield from self._keep(point)

    def _keep(self, until: int) -> Iterator[Piece]:
        length = until - self._consumed
        if length > 0:
            yield KeptRange(self._consumed, length)
            self._position += length
            self._consumed = until

    def add(self, point: int, group: RowGroup, new: Sequence[NewFilter]) -> Iterator[Piece]:
        """Yield a row group's filters, kept and new ones, by column."""
        ready: list[tuple[int, int, NewFilter | FilterLocation]] = [
            (location.column, location.position, location) for location in self._kept.get(group.ordinal, ())
        ]
        ready += [(item.column, item.position, item) for item in new]
        entries = self._entries.setdefault(group.ordinal, [])
        started = self._position
        for column, _, item in sorted(ready, key=lambda r: r[:2]):
            offset = self._position
            if isinstance(item, FilterLocation):
                self._position += item.length
                if item.length:
                    yield KeptRange(item.offset, item.length)
            else:
                header = write_header(item.bits.nbytes)
                self._written.append((group.ordinal, offset, kernels.xxh64(item.bits.bitset)))
                self._position += len(header) + item.bits.nbytes
                yield header
                yield item.bits.bitset
            entries.append((column, offset, self._position - offset))
        if self._position != started:
            self._moves.append((point, self._position - started))

    def tail(self) -> Iterator[Piece]:
        """The rest of the body, the schema block, the new index and footer."""
        footer = self.footer
        yield from self.before(footer.schema_at)
        schema_at = self._position
        yield KeptRange(footer.schema_at, footer.index_at - footer.schema_at)
        index_at = schema_at + footer.index_at - footer.schema_at
        version = spec.DRAFT if any(self._entries.values()) else spec.RELEASED
        self._index = self._new_index(version)
        tail = bytearray(footer.tail)
        tail[0:8] = index_at.to_bytes(8, "big")
        tail[8:16] = schema_at.to_bytes(8, "big")
        tail[spec.VERSION_AT] = version
        self._position = index_at + len(self._index) + len(tail)
        yield self._index + bytes(tail)

    def _new_index(self, version: int) -> bytes:
        moves = sorted(self._moves)
        points = [at for at, _ in moves]
        shifts = [0, *accumulate(shift for _, shift in moves)]
        out = bytearray()
        for group in self.footer.row_groups:
            moved = {b.offset_at: b.offset + shifts[bisect_right(points, b.offset)] for b in group.buckets}
            filters = encode_filters(self._entries.get(group.ordinal, ())) if version == spec.DRAFT else b""
            out += group.encoded(moved, filters)
        return bytes(out)

    def verify(self, written: Source) -> None:
        """Re-read the finished file: its index is the planned one, and the new filters have the planned bits."""
        if written.size != self._position:
            raise WriteError(
                f"{counted(written.size, 'byte')} {were(written.size)} written, {self._position} were planned"
            )
        again = Footer(written)
        if written.read_at(again.index_at, again.footer_at - again.index_at) != self._index:
            raise WriteError("the index that was written isn't the one that was planned")
        filters = Filters(again)
        locations = {(f.row_group, f.offset): f for f in again.filters}
        for ordinal, offset, digest in self._written:
            location = locations[ordinal, offset]
            if kernels.xxh64(filters.load(location).bits.bitset) != digest:
                raise WriteError(f"the filter at {location.offset} isn't the one that was built")


def differs_only_in_filters(before: Footer, after: Footer, columns: set[int] | None) -> bool:
    """Whether the metadata of two files is the same except for filters of these columns (all if None)."""

    def index(footer: Footer) -> list[object]:
        groups = [
            (
                group.encoded({b.offset_at: 0 for b in group.buckets}, b""),
                [(f.column, f.length) for f in group.filters if columns is not None and f.column not in columns],
            )
            for group in footer.row_groups
        ]
        return [footer.tail[16 : spec.VERSION_AT], groups]

    def schema(footer: Footer) -> bytes:
        return footer.source.read_at(footer.schema_at, footer.index_at - footer.schema_at)

    return index(before) == index(after) and schema(before) == schema(after)


def encode_filters(entries: Sequence[tuple[int, int, int]]) -> bytes:
    """The filters' part of an index entry, from (column, offset, bytes)."""
    out = bytearray(kernels.encoded_varint(len(entries)))
    for column, offset, length in entries:
        out += kernels.encoded_varint(column) + offset.to_bytes(8, "big") + kernels.encoded_varint(length)
    return bytes(out)
