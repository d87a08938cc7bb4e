"""The dictionary of a column in a stripe, in which `probe` looks values up.

In a stripe whose encoding of a column is DICTIONARY or DICTIONARY_V2, every value of the column is an entry.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.answer import DictionaryEntries, DictionaryLookup, Lookup, ReadBudget
from bloomcli.formats.orc import statistics
from bloomcli.formats.orc.bloom_filter import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.hashes import hashed_entries
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import ColumnStreams, LeafReader
from bloomcli.model.file import Column

_KINDS: Final = ("STRING", "VARCHAR")
"""Not CHAR: writers differ in whether they pad entries."""


class StripeDictionary:
    """The dictionary of one column in one stripe. It is read at the first lookup."""

    def __init__(self, filters: Filters, streams: StripeFooter, orc: OrcType, budget: ReadBudget) -> None:
        self._filters = filters
        self._streams = streams
        self._orc = orc
        self._budget = budget
        self._entries = cache(self._read)

    def lookup_of(self, stats: Any, typed: Column) -> DictionaryLookup | None:
        """Return the lookup for one row group; None if the metadata show that the dictionary can't exclude values.

        Args:
            stats: the statistics of the row group, or None. If their minimum or maximum isn't an entry, nothing is
                looked up.
            typed: the column of the literals.
        """
        orc = self._orc
        if orc.kind not in _KINDS or orc.id in self._filters.footer.encrypted_columns or orc.fault is not None:
            return None

        def excludes(lookup: Lookup) -> bool | None:
            found = self._entries()
            if found is None or any(statistics.missing_bounds(stats, orc, typed, found)):
                return None
            return not any(map(found.check, lookup.hashes))

        return excludes

    def _read(self) -> DictionaryEntries | None:
        """The entries; None without a dictionary, or if it is too large. Raises CorruptFile, UnsupportedError."""
        footer, orc = self._filters.footer, self._orc
        streams = ColumnStreams(footer, self._streams, orc, Stop())
        leaf = LeafReader(streams)
        if leaf.entries is None:
            return None
        size = sum(
            stream.length
            for stream in self._streams.of_column(orc.id)
            if stream.kind in {"DICTIONARY_DATA", "LENGTH"}
        )
        most = limits.PROBED_DICTIONARY_MAX_BYTES
        if max(size, 8 * leaf.entries) > most:
            return None
        size += _unpacked(streams, leaf.entries)
        return DictionaryEntries(hashed_entries(leaf)) if size <= most and self._budget.take(size) else None


def _unpacked(streams: ColumnStreams, entries: int) -> int:
    """The bytes of all entries, by their lengths. Raises CorruptFile, UnsupportedError."""
    lengths, total = streams.lengths(), 0
    try:
        while entries:
            batch = min(entries, limits.ROWS_PER_BATCH)
            total += kernels.orc_sum(lengths.take(batch), batch)
            entries -= batch
    except kernels.RunError as error:
        raise streams.open("LENGTH").fault(str(error)) from None
    return total
