"""The filters of an open ORC file: finds their streams, reads a stream, and reads the row index of its column."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.orc import hashes, spec, statistics
from bloomcli.formats.orc.filter_header import KINDS, LoadedStream, load, problem
from bloomcli.formats.orc.filterable import unfilterable_types
from bloomcli.formats.orc.footer import Footer, Stream, StripeFooter
from bloomcli.storage.base import Source


class Location(NamedTuple):
    """The location of one column's filters in one stripe."""

    streams: StripeFooter
    stream: Stream


class Filters:
    """The filter streams that the stripes' footers list. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, source: Source, footer: Footer) -> None:
        self.source = source
        self.footer = footer

    def locations(self, columns: set[int] | None) -> Iterator[Location]:
        """Every filter stream of these columns (None: all), stripe by stripe, in the order of the file."""
        self.footer.will_read_stripes()
        for stripe in self.footer.stripes:
            streams = self.footer.stripe_footer(stripe)
            chosen = streams.streams
            if columns is not None:
                chosen = tuple(sorted((s for c in columns for s in streams.of_column(c)), key=lambda s: s.position))
            yield from (Location(streams, stream) for stream in chosen if stream.kind in KINDS)

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of these columns' filter streams (None: all)."""
        return ((stream.offset, stream.length) for _, stream in self.locations(columns))

    def ranges_with_index(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of these columns' filter streams and row indexes."""
        for streams, stream in self.locations(columns):
            yield stream.offset, stream.length
            index = streams.find("ROW_INDEX", stream.column)
            if index is not None:
                yield index.offset, index.length

    def value_ranges(self, streams: StripeFooter, column: int) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the streams with a column's values in a stripe, and of its row index."""
        above = self.footer.ancestors(self.footer.types[column])
        for stream in streams.of_column(column):
            if stream.kind not in KINDS:
                yield stream.offset, stream.length
        for kind in ("PRESENT", "LENGTH"):
            found = (streams.find(kind, orc.id) for orc in above)
            yield from ((s.offset, s.length) for s in found if s is not None)

    def preferred(self, streams: StripeFooter, column: int) -> Stream | None:
        """The filter stream of a column that readers use; None where it has none in the stripe."""
        return next((s for kind in KINDS if (s := streams.find(kind, column)) is not None), None)

    def location(self, column: int, row_group: int, stripe: int) -> Location | None:
        """The filters of a column in a stripe that readers use; None where it has none."""
        del row_group
        streams = self.footer.stripe_footer(self.footer.stripes[stripe])
        stream = self.preferred(streams, column)
        return None if stream is None else Location(streams, stream)

    def load(self, location: Location) -> LoadedStream:
        """Read a stream's filters. Raises FilterProblem."""
        streams, stream = location
        if stream.column >= len(self.footer.types):
            raise problem(
                f"the stream is of column {stream.column}, the file has {len(self.footer.types)}",
                self.footer,
                stream,
                streams.stripe.ordinal,
                "filter-column",
            )
        if stream.column in self.footer.encrypted_columns:
            raise problem(
                "the filters are encrypted with their column",
                self.footer,
                stream,
                streams.stripe.ordinal,
                "filter-encrypted",
            )
        return load(self.footer, streams, stream)

    def columns(self) -> set[int]:
        """Ids of the columns with filters in any stripe; without structs, whose filters are empty."""
        types = self.footer.types
        found = {stream.column for _, stream in self.locations(None)}
        return {column for column in found if column < len(types) and types[column].kind != "STRUCT"}

    def bitset_bytes(self, location: Location) -> int | None:
        """Bytes of each filter in a stream; None if the stream can't be read, or sizes differ."""
        try:
            sizes = {len(f.bitset) for f in self.load(location).filters}
        except FilterProblem:
            return None
        return sizes.pop() if len(sizes) == 1 else None

    def row_index(self, streams: StripeFooter, column: int) -> list[Any]:
        """The statistics of each row group of a column; empty where there is no (readable) row index."""
        return [entry.statistics for entry in self.index_entries(streams, column)]

    def index_entries(self, streams: StripeFooter, column: int) -> Sequence[Any]:
        """The row index entry of each row group of a column. Empty if there is no readable row index, or if it has
        another number of entries than the stripe has row groups: its statistics and positions are of other rows."""
        stream = streams.find("ROW_INDEX", column)
        if stream is None or not self.footer.stride or column in self.footer.encrypted_columns:
            return []  # the index of an encrypted column describes its mask
        try:
            data = self.footer.read_index(stream, streams.stripe)
            index = spec.parse("RowIndex", data, self.source.path, stream.offset, streams.stripe.field)
        except (CorruptFile, UnsupportedError):
            return []  # statistics are optional
        entries = list(index.entry)
        statistics.believe((e.statistics for e in entries), self.footer.types[column], self.footer.created_by)
        return entries if len(entries) == self.footer.row_groups(streams.stripe) else []

    @cached_property
    def unfilterable(self) -> dict[int, str]:
        """Why types can't have a filter, by id. Types that can have one are left out."""
        return unfilterable_types(self.footer)

    @cached_property
    def not_comparable(self) -> dict[int, str]:
        """Why the values of columns can't be compared with their filters, by id. Others are left out."""
        found = ((t.id, hashes.why_not_comparable(self.footer, t)) for t in self.footer.types)
        return {column: why for column, why in found if why is not None}

    def checkable(self, stream: Stream, columns: set[int] | None) -> bool:
        """Whether a stream holds filters of these columns (None: all) that can be compared with the values."""
        return (
            stream.kind in KINDS
            and (columns is None or stream.column in columns)
            and stream.column < len(self.footer.types)
            and stream.column not in self.footer.encrypted_columns
        )

    def bytes_to_check(self, streams: StripeFooter, column: int) -> int:
        """Compressed bytes of a column's values in a stripe, which are compared with its filters."""
        found = () if column in self.not_comparable else streams.of_column(column)
        return sum(s.length for s in found if s.kind not in KINDS)

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of all values of these columns that are compared with filters in the stripes `units`."""
        total = 0
        self.footer.will_read_stripes()
        for stripe in self.footer.stripes:
            if units is None or stripe.ordinal in units:
                streams = self.footer.stripe_footer(stripe)
                wanted = {s.column for s in streams.streams if self.checkable(s, columns)}
                total += sum(self.bytes_to_check(streams, column) for column in wanted)
        return total
