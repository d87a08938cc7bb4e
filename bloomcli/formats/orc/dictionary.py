"""The dictionary of a column in a stripe, in which `probe` looks values up.

In a stripe whose encoding of a column is DICTIONARY or DICTIONARY_V2, every value of the column is an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.answer import DictionaryEntries, DictionaryLookup, Lookup, ReadBudget
from bloomcli.formats.orc import statistics
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.hashes import hashed_entries
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import ColumnStreams, LeafReader
from bloomcli.model.file import Column

_KINDS: Final = ("STRING", "VARCHAR")
"""Not CHAR: writers differ in whether they pad entries."""


Entries = Callable[[], DictionaryEntries | None]


def entries_of(footer: Footer, streams: StripeFooter, orc: OrcType, budget: ReadBudget) -> Entries:
    """Return the function that returns the entries of a column's dictionary in a stripe, which are read once; None
    without a dictionary, or if it is too large. It raises CorruptFile, UnsupportedError."""

    @cache
    def entries() -> DictionaryEntries | None:
        column = ColumnStreams(footer, streams, orc, Stop())
        leaf = LeafReader(column)
        if leaf.entries is None:
            return None
        size = sum(s.length for s in streams.of_column(orc.id) if s.kind in {"DICTIONARY_DATA", "LENGTH"})
        most = limits.PROBED_DICTIONARY_MAX_BYTES
        if max(size, 8 * leaf.entries) > most:
            return None
        size += _unpacked(column, leaf.entries)
        return DictionaryEntries(hashed_entries(leaf)) if size <= most and budget.take(size) else None

    return entries


def lookup_of(entries: Entries, stats: Any, orc: OrcType, typed: Column) -> DictionaryLookup | None:
    """Return the lookup for one row group; None for types whose values can't be compared.

    Args:
        entries: as `entries_of` returns them.
        stats: the statistics of the row group, or None. If their minimum or maximum isn't an entry, nothing is looked
            up.
        orc: the column.
        typed: the column of the literals.
    """
    if orc.kind not in _KINDS or orc.fault is not None:
        return None

    def excludes(lookup: Lookup) -> bool | None:
        dictionary = entries()
        if dictionary is None or any(statistics.missing_bounds(stats, orc, typed, dictionary)):
            return None
        return not any(map(dictionary.check, lookup.hashes))

    return excludes


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
