"""The plan that removes filters from an ORC file. No column is read; filters of ORC can't be folded."""

from __future__ import annotations

from bloomcli.formats.base import ChangeResult, Tick
from bloomcli.formats.orc.filter_header import KINDS
from bloomcli.formats.orc.filters import Filters, Location
from bloomcli.formats.orc.plan_base import FOOTER_GROWTH, Change, removal
from bloomcli.formats.orc.splice import Layout, rebuild
from bloomcli.storage.base import Pieces


class RemovePlan(Change):
    """The plan that removes filters."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters)
        estimate = []
        filters.source.will_read(filters.ranges(columns))  # to report the size of each
        for stripe in self.footer.stripes:
            streams = filters.footer.stripe_footer(stripe)
            removed = [s for s in streams.streams if s.kind in KINDS and (columns is None or s.column in columns)]
            self.removed[stripe.ordinal] = {s.position for s in removed}
            estimate += [removal(filters, Location(streams, s)) for s in removed]
        self._estimated = tuple(estimate)
        self._count()
        self.new_bytes_bound = (
            self.footer.file_bytes
            - self.footer.footer_at
            + sum(s.footer_length for s in self.footer.stripes)
            + (len(self.footer.stripes) + 1) * FOOTER_GROWTH
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The file without the filters. Only the stripes' footers are read."""
        del threads, tick
        layout = Layout(self.footer)
        for stripe in self.footer.stripes:
            yield from layout.before(stripe)
            streams = self.footer.stripe_footer(stripe)
            yield from layout.add(rebuild(self.footer, streams, self.removed[stripe.ordinal], (), lambda _: ()))
        yield from layout.tail()
        self._result = ChangeResult(
            changes=self.estimate,
            bytes_decoded=0,
            verify=lambda written: self.verify(written, layout, {}),
        )
