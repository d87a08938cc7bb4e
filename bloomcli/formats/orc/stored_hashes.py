"""Hashes a column's values, for a search that looks them up among millions of values to find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.formats import finding
from bloomcli.formats.finding import StoredHashes
from bloomcli.formats.orc import search_forms
from bloomcli.formats.orc.filters import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.value_reader import ValueReader
from bloomcli.model.file import Column


def row_group_hashes(
    filters: Filters, streams: StripeFooter, orc: OrcType, typed: Column, stop: Stop
) -> Iterator[Iterator[StoredHashes]]:
    """Yield the hashes of a stripe's values, row group by row group; consume each before the next. The hashes of a
    dictionary's entries come with the first row group.

    Args:
        filters: the file's filters.
        streams: the stripe's footer.
        orc: the column, which isn't in a union.
        typed: the column with the type by which literals are parsed.
        stop: ends the reading.

    Raises:
        CorruptFile, UnsupportedError: the column's streams can't be read, or a string is too long to be read here.
        Stopped: soon after `stop` is set.
    """
    footer, stripe = filters.footer, streams.stripe

    def hashed(parts: Iterable[pa.Array]) -> Iterator[StoredHashes]:
        for values in parts:
            if values.null_count:
                raise UnsupportedError("a string that is longer than those that are looked for together")
            if len(values):
                forms = finding.comparable(values, typed)
                yield StoredHashes(search_forms.hashes_of(forms, orc, typed), len(forms), 0)

    reader = ValueReader(filters.source, footer, streams, orc, 0, stop)
    if reader.entries is not None:
        yield hashed(reader.dictionary())
        while True:
            yield iter(())
    if not footer.stride:
        yield hashed(found.values for found in reader.take(stripe.rows))
        return
    for group in range(footer.row_groups(stripe)):
        yield hashed(found.values for found in reader.take(footer.rows_in(stripe, group)))
