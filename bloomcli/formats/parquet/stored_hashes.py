"""Reads the hashes of a column chunk's values, for a search that looks them up among millions of values to find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.finding import StoredHashes
from bloomcli.formats.parquet.pages import chunk_range
from bloomcli.formats.parquet.values import hashed_pages
from bloomcli.formats.unit_search import SOUGHT_FOR_EACH
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source


def read_first(chunks: Sequence[ColumnChunk], count: int, request_bytes: int) -> bool:
    """Whether reading the chunks takes less time than looking up `count` values in their filters.

    Of millions of absent values, a filter of the usual size lets some through, so that the chunk is read anyway.

    Args:
        chunks: chunks of a column.
        count: the number of values to find.
        request_bytes: `Source.request_bytes`. For larger chunks in a store, filters and page indexes are used.
    """
    if request_bytes and any(chunk.compressed_bytes > request_bytes for chunk in chunks):
        return False
    with_filter = [chunk for chunk in chunks if chunk.bloom_filter_offset is not None]
    return sum(chunk.num_values for chunk in with_filter) * SOUGHT_FOR_EACH <= count * len(with_filter)


def stored_hashes(source: Source, chunk: ColumnChunk, data_end: int, stop: Stop) -> Iterator[StoredHashes]:
    """Yield the hashes of a chunk's values, and those of dictionary entries once. Raises CorruptFile,
    UnsupportedError, Stopped."""
    if source.request_bytes:
        source.will_read([chunk_range(chunk)])
    last = None
    for page in hashed_pages(source, chunk, data_end, unreferenced=True, stop=stop, checked=True):
        pages = int(not page.dictionary and page.end != last)  # a large page is several slices
        last = page.end
        yield StoredHashes(page.hashes, page.count, pages)
