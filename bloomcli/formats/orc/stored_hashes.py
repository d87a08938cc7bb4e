"""Reads the hashes of a column's values, for a search that looks them up among millions of sought values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.formats.finding import StoredHashes
from bloomcli.formats.orc.filters import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.value_reader import ValueReader


def of_row_groups(
    filters: Filters, streams: StripeFooter, orc: OrcType, hashes_of: Callable[[pa.Array], bytes], stop: Stop
) -> Iterator[Iterator[StoredHashes]]:
    """The hashes of a stripe's values, row group by row group; each is taken before the next. Those of a dictionary's
    entries come with the first.

    Args:
        filters: those of the file.
        streams: of the stripe.
        orc: the column, which isn't in a union.
        hashes_of: hashes values as `ValueReader` gives them.
        stop: ends the reading.

    Raises:
        CorruptFile, UnsupportedError: the column's streams can't be read, or a string is too long to be read here.
        Stopped: soon after `stop` is set.
    """
    footer, stripe = filters.footer, streams.stripe
    reader = ValueReader(filters.source, footer, streams, orc, 0, stop)
    if reader.entries is not None:
        yield _hashed(reader.dictionary(), hashes_of)
        while True:
            yield iter(())
    if not footer.stride:
        yield _hashed((found.values for found in reader.take(stripe.rows)), hashes_of)
        return
    for group in range(footer.row_groups(stripe)):
        yield _hashed((found.values for found in reader.take(footer.rows_in(stripe, group))), hashes_of)


def _hashed(parts: Iterable[pa.Array], hashes_of: Callable[[pa.Array], bytes]) -> Iterator[StoredHashes]:
    for values in parts:
        if values.null_count:
            raise UnsupportedError("a string that is longer than those that are looked for together")
        if len(values):
            yield StoredHashes(hashes_of(values), len(values), 0)
