"""Looks up values in the dictionary of a column chunk, for `probe`.

Every value of a chunk is an entry of its dictionary if all of its data pages are dictionary-encoded. The footer's
encoding statistics report this or, in files without them, the page headers.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.answer import DictionaryEntries, DictionaryLookup, Lookup, ReadBudget
from bloomcli.formats.parquet import statistics
from bloomcli.formats.parquet.bloom_filter import Filters
from bloomcli.formats.parquet.pages import HEADER_WINDOW, ChunkReader, read_page, read_pages
from bloomcli.formats.parquet.values import DICTIONARY_ENCODINGS, ChunkHasher, has_zero, is_interval, zero_hashes
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source

_HEADERS_READ: Final = 64
"""The maximum number of page headers that are read for a chunk without encoding statistics: each may take a read."""


def lookup_of(filters: Filters, chunk: ColumnChunk, budget: ReadBudget) -> DictionaryLookup | None:
    """Return the lookup in a chunk's dictionary, which is read for the first one; None if not all values of the chunk
    may be in one."""
    if chunk.encrypted or not chunk.num_values or not _may_exclude(chunk):
        return None

    @cache
    def read() -> DictionaryEntries | CorruptFile | UnsupportedError | None:
        try:
            entries = _entries(filters.source, chunk, budget)
        except (CorruptFile, UnsupportedError) as error:
            return error
        # a dictionary without its chunk's bounds is wrong, or the bounds are
        return None if entries is None or any(statistics.lost(chunk, entries)) else entries

    def excludes(lookup: Lookup) -> bool | None:
        entries = read()
        if isinstance(entries, CorruptFile | UnsupportedError):  # raised for each value
            raise entries
        return None if entries is None else not any(entries.check(kernels.xxh64(form)) for form in lookup.encodings)

    return excludes


def _may_exclude(chunk: ColumnChunk) -> bool:
    """Whether all pages may be dictionary-encoded, and equal values have equal bytes."""
    if chunk.column.physical == "INT96" or is_interval(chunk.column):
        return False
    return chunk.only_dictionary_encoded or (not chunk.encodings_known and chunk.dictionary_bytes is not None)


def _entries(source: Source, chunk: ColumnChunk, budget: ReadBudget) -> DictionaryEntries | None:
    """The entries; None if the chunk may have other values. Raises CorruptFile, UnsupportedError."""
    most = limits.PROBED_DICTIONARY_MAX_BYTES
    if (chunk.dictionary_bytes or 0) > most:
        return None
    reader = ChunkReader(source, chunk, max(chunk.dictionary_bytes or 0, HEADER_WINDOW), checked=True)
    stored = reader.page()
    if not stored.is_dictionary:
        return None
    if max(stored.packed, stored.size) > most or not budget.take(stored.packed + stored.size):
        return None
    page = read_page(stored)
    if page is None or not (chunk.only_dictionary_encoded or _all_encoded(source, chunk)):
        return None
    dictionary = ChunkHasher(chunk, Stop()).dictionary(page)
    return DictionaryEntries(dictionary.hashes, zero_hashes(chunk.column) if has_zero(dictionary) else ())


def _all_encoded(source: Source, chunk: ColumnChunk) -> bool:
    """Whether all data pages are dictionary-encoded, according to their headers. Raises CorruptFile."""
    pages = read_pages(source, chunk, lambda _: True, window=HEADER_WINDOW)
    return all(
        number <= _HEADERS_READ and (page.dictionary or page.encoding in DICTIONARY_ENCODINGS)
        for number, page in enumerate(pages)
    )
