"""Reads a column's values in an ORC file as the commands do: hashes and texts, row group by row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from bloomcli.concurrency.threads import Stop
from bloomcli.formats.orc.arrow_forms import texts_of
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.hashes import column_hasher
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import Values


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


def row_groups(footer: Footer, stripe: Stripe, orc: OrcType) -> Iterator[Hashed]:
    """Yield every row group of a stripe, with its batches merged."""
    streams = footer.stripe_footer(stripe)
    hasher = column_hasher(footer, streams, orc, Stop())
    texts = texts_of(hasher.leaf)
    for rows in footer.units(stripe):
        found = Hashed(0, b"", has_zero=False, shifted=b"", owners=[], texts=[])
        for batch in hasher.take(rows):
            text = texts(_held(batch.values))
            found.texts += [partial(text, at) for at in range(batch.count)]
            found.owners += [found.count + n for n in memoryview(batch.owners).cast("q")]
            found.count += batch.count
            found.hashes += batch.hashes
            found.has_zero |= batch.has_zero
            found.shifted += batch.other_hashes
        yield found


def _held(values: Values) -> Values:
    """A copy that stays valid."""
    copies = {
        name: None if (part := getattr(values, name)) is None else memoryview(bytes(part))
        for name in ("data", "lengths", "nanos")
    }
    return replace(values, **copies)
