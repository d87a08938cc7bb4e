"""Reads a column's values in an ORC file as the commands do: hashes and texts, row group by row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.orc import values
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.sample_values import ShownValues
from bloomcli.formats.orc.schema import OrcType
from bloomcli.storage.base import Source


@dataclass
class Hashed:
    """A row group's non-null values."""

    count: int
    hashes: bytes
    has_zero: bool
    shifted: bytes
    owners: list[int]
    """For each hash in `shifted`, the number of its value in the row group."""
    texts: list[Callable[[], str]]
    """Functions that return the text of each value."""

    def value(self, index: int) -> str:
        """The text of one value."""
        return self.texts[index]()


def row_groups(source: Source, footer: Footer, stripe: Stripe, orc: OrcType) -> Iterator[Hashed]:
    """Yield every row group of a stripe, with its batches merged."""
    streams = footer.stripe_footer(stripe)
    shown = ShownValues(source, footer, streams, orc, Stop())
    for batches in values.row_groups(source, footer, streams, orc, Stop()):
        found = Hashed(0, b"", has_zero=False, shifted=b"", owners=[], texts=[])
        for batch in batches:
            text = shown.texts(batch.count)
            found.texts += [lambda i=i, text=text: text(i) for i in range(batch.count)]
            found.owners += [found.count + n for n in memoryview(batch.owners).cast("q")]
            found.count += batch.count
            found.hashes += batch.hashes
            found.has_zero |= batch.has_zero
            found.shifted += batch.other_hashes
        yield found
