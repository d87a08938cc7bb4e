"""The base class of plans for Mosaic files: removes filters, and bounds the size of the new metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.formats.base import ChangeResult, PlanBase
from bloomcli.formats.mosaic.filter_header import HEADER_BOUND
from bloomcli.formats.mosaic.filters import Filters
from bloomcli.formats.mosaic.footer import FilterLocation
from bloomcli.formats.mosaic.splice import Layout
from bloomcli.storage.base import KeptRange, Pieces

if TYPE_CHECKING:
    from bloomcli.model.change import FilterChange

_ENTRY_BOUND: Final = 18
"""Bytes of a filter's entry in the index: two varints of at most 5, an offset of 8."""


class Change(PlanBase):
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

    def finish(
        self, layout: Layout, changes: Sequence[FilterChange], decoded: int, remarks: tuple[str, ...] = ()
    ) -> Pieces:
        """The last pieces; then sets the result."""
        yield from layout.tail()
        self._result = ChangeResult(
            changes=tuple(changes), bytes_decoded=decoded, verify=layout.verify, remarks=remarks
        )
