"""The base class of plans for ORC files: refuses files that can't be changed, and verifies the finished file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from bloomcli.errors import CorruptFile, WriteError
from bloomcli.formats.base import PlanBase
from bloomcli.formats.orc.filters import Filters, Location
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.splice import Layout, kept_bytes
from bloomcli.model.change import FilterChange
from bloomcli.storage.base import KeptRange, Source

FOOTER_GROWTH: Final = 64
"""Bytes by which a footer may grow for each entry that changes, at most."""


class Change(PlanBase):
    """A change to a file that removes the streams at the positions `removed`, by stripe, and verifies the result."""

    def __init__(self, filters: Filters) -> None:
        footer = filters.footer
        footer.refuse_unknown_version()
        for before, stripe in itertools.pairwise(footer.stripes):
            if stripe.offset < before.end:
                raise CorruptFile(
                    f"stripe {stripe.ordinal} overlaps the one before it",
                    path=footer.path,
                    offset=stripe.offset,
                    field=stripe.field,
                    hint="the file is damaged; get it from its source again",
                )
        self.filters = filters
        self.footer = footer
        footer.will_read_stripes()
        self.removed: dict[int, set[int]] = {}
        self.bytes_to_decode = 0

    def outline(self) -> Iterator[KeptRange | int]:
        """Each stripe's index and data as kept, and an equal share of the new bytes."""
        share = self.new_bytes_bound // (len(self.footer.stripes) + 1)
        for stripe in self.footer.stripes:
            yield KeptRange(stripe.offset, stripe.index_length + stripe.data_length)
            yield share
        yield share

    def _count(self) -> None:
        streams = [
            (s.offset, s.length)
            for stripe in self.footer.stripes
            for s in self.footer.stripe_footer(stripe).streams
            if s.position in self.removed.get(stripe.ordinal, ())
        ]
        self.bytes_to_copy = kept_bytes(self.footer, streams)

    def verify(self, written: Source, layout: Layout, filters: dict[tuple[int, str, int], int]) -> None:
        """Re-read the finished file: every stripe has the planned streams, and the new filters have the planned
        bytes.

        `filters` has the checksum of each, by stripe, kind and column.
        """
        again = Footer(written)
        again.will_read_stripes()
        if len(again.stripes) != len(self.footer.stripes) or again.rows != self.footer.rows:
            raise WriteError("the footer that was written isn't the one that was planned")
        for old, stripe, (offset, new) in zip(self.footer.stripes, again.stripes, layout.stripes, strict=True):
            if (stripe.offset, stripe.index_length, stripe.data_length) != (
                offset,
                new.index_length,
                new.data_length,
            ):
                raise WriteError(f"stripe {stripe.ordinal} isn't where it was planned")
            removed = self.removed.get(stripe.ordinal, set())
            before = self.footer.stripe_footer(old)
            after = again.stripe_footer(stripe)
            kept = [(s.kind, s.column, s.length) for s in before.streams if s.position not in removed]
            planned = [(stripe.ordinal, s.kind, s.column) in filters for s in after.streams]
            added = list(itertools.compress(after.streams, planned))
            rest = [s for s, new in zip(after.streams, planned, strict=True) if not new]
            if [(s.kind, s.column, s.length) for s in rest] != kept:
                raise WriteError(f"stripe {stripe.ordinal} lost or gained a stream")
            for stream in added:
                if again.stream_checksum(stream, stripe) != filters[stripe.ordinal, stream.kind, stream.column]:
                    raise WriteError(f"the filters at {stream.offset} aren't the ones that were built")


def removal(filters: Filters, location: Location) -> FilterChange:
    """The report about the removal of a filter stream."""
    streams, stream = location
    known = stream.column < len(filters.footer.types)
    return FilterChange(
        stripe=streams.stripe.ordinal,
        row_group=None,
        filters=filters.footer.row_groups(streams.stripe),
        column=filters.footer.types[stream.column].label if known else f"column {stream.column}",
        action="remove",
        bitset_bytes=None,
        old_bitset_bytes=filters.bitset_bytes(location),
    )
