"""Hashes the values of a column chunk, to build its filter or to check it.

Dictionary-encoded pages hold indices, and the dictionary's values are hashed once. An entry that no index refers to
isn't a value of the column: Arrow writes an array's whole dictionary into each row group. Nulls aren't hashed; every
element of a repeated leaf is. If a floating-point column has a zero of either sign, both signs are inserted, so that
readers that hash the zero of a literal with its sign (parquet-java does) find it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import draft_hash
from bloomcli.formats.parquet.encodings import Slice, slices
from bloomcli.formats.parquet.pages import WINDOW, Page, read_pages
from bloomcli.formats.parquet.statistics import has_floats, width_of
from bloomcli.model.file import Column, ColumnChunk
from bloomcli.storage.base import Source

_ZEROS: Final = {2: (b"\0\0", b"\0\x80"), 4: (bytes(4), b"\0\0\0\x80"), 8: (bytes(8), bytes(7) + b"\x80")}
INTERVAL_BYTES: Final = 12
"""Months, days and milliseconds. Source: the Parquet format's LogicalTypes.md."""
_DAY_MILLIS: Final = 86_400_000
_MONTH_DAYS: Final = 30
_MOST_MONTHS: Final = 0x7FFF_FFFF
DICTIONARY_ENCODINGS: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


def zero_width(column: Column) -> int | None:
    """The size of a floating-point value; None for columns without signed zeros."""
    return width_of(column) if has_floats(column) else None


def is_interval(column: Column) -> bool:
    """Whether the column has intervals, with their width."""
    return column.logical == "INTERVAL" and column.type_length == INTERVAL_BYTES


def interval_hashes(part: Slice) -> bytes:
    """The hashes of the normal forms of intervals, which DuckDB looks up."""
    forms = normal_intervals(b"".join(part.values()) if part.fixed is None else part.fixed)
    ends = range(INTERVAL_BYTES, len(forms) + 1, INTERVAL_BYTES)
    return array("Q", (kernels.xxh64(forms[end - INTERVAL_BYTES : end]) for end in ends)).tobytes()


def draft_hashes(part: Slice) -> bytearray:
    """The Murmur3 hashes of the 2018 drafts, computed value by value: few files need them."""
    return bytearray(array("Q", map(draft_hash, part.values())).tobytes())


def normal_intervals(data: bytes | bytearray | memoryview) -> bytes:
    """The normal forms of intervals, which DuckDB compares and looks up: a day has 24 hours, a month 30 days.

    DuckDB's writer reads days as unsigned, its reader as signed; if that makes a difference, an interval has two
    forms, the second ones after all of the first. Both read months as signed. An interval that DuckDB's INTERVAL
    can't represent has none. Source: DuckDB, interval.hpp, Normalize and Borrow; parquet_interval.hpp, Encode.
    """
    import numpy as np  # few files have intervals

    unsigned, signed = (np.frombuffer(data, form).reshape(-1, 3).astype(np.int64) for form in ("<u4", "<i4"))
    twice = signed[:, 1] < 0
    months = np.concatenate((signed[:, 0], signed[twice, 0]))
    days = np.concatenate((signed[:, 1], unsigned[twice, 1]))
    millis = np.concatenate((unsigned[:, 2], unsigned[twice, 2]))
    days, millis = days + millis // _DAY_MILLIS, millis % _DAY_MILLIS
    months, days = months + days // _MONTH_DAYS, days % _MONTH_DAYS
    beyond = np.maximum(months - _MOST_MONTHS, 0)  # months beyond 32 bits stay in the days
    months, days = months - beyond, days + beyond * _MONTH_DAYS
    held = (months >= -_MOST_MONTHS - 1) & (days < 1 << 32)
    return bytes(np.column_stack((months, days, millis))[held].astype("<u4").tobytes())


def has_zero(part: Slice) -> bool:
    """Whether values of a floating-point column have a zero of either sign."""
    width = zero_width(part.column)
    if width is None or not part.count:
        return False
    if part.fixed is not None:
        return kernels.has_zero(part.fixed, width, len(part.fixed) // width)
    return not set(zero_hashes(part.column)).isdisjoint(memoryview(part.hashes).cast("Q"))


class ChunkHasher:
    """Hashes a chunk's pages, and refuses more values than its bytes in the file can plausibly hold."""

    def __init__(self, chunk: ColumnChunk, stop: Stop) -> None:
        self.column = chunk.column
        self._most = max(parquet_limits.VALUES_FREE, chunk.compressed_bytes * parquet_limits.VALUES_PER_BYTE)
        self._hashed = 0
        self._stop = stop

    def slices(self, page: Page, bounds: kernels.Bounds | None = None) -> Iterator[Slice]:
        """Yield the hashed slices of a page, and add its values to `bounds`. Raises CorruptFile, UnsupportedError."""
        for part in slices(page, self.column, bounds):
            self._stop.check()
            self._hashed += part.count
            if self._hashed > self._most:
                raise page.location.unsupported(
                    f"a column chunk with more than {self._most} different values, the most that are read"
                    " from so few bytes",
                    "rewrite the file with smaller row groups",
                )
            yield part

    def dictionary(self, page: Page) -> Slice:
        """Hash all entries of a dictionary. Raises CorruptFile, UnsupportedError."""
        size = 0 if page.body is None else page.body.size
        count = min(page.non_null, size // (width_of(self.column) or 4))  # a wrong count is reported later
        for number, most, what in (
            (count, parquet_limits.DICTIONARY_MAX_VALUES, "values"),
            (size, parquet_limits.PAGE_WHOLE_MAX_BYTES, "bytes"),
        ):
            if number > most:
                reason = f"a dictionary of {number} {what}, more than the {most} that are read"
                raise page.location.unsupported(reason, "rewrite the file without dictionaries in this column")
        (part,) = [*self.slices(page)] or [Slice(page, self.column, bytearray(), 0)]
        return part


def hashed_slices(
    source: Source,
    chunk: ColumnChunk,
    *,
    unreferenced: bool = False,
    stop: Stop | None = None,
    checked: bool = False,
) -> Iterator[Slice]:
    """Yield the chunk's hashed values: its dictionary, and slices of all pages that aren't dictionary-encoded.

    Dictionary-encoded pages are decoded until every entry has been referred to. After that only headers are read, to
    find pages with another encoding. With `unreferenced`, no indices are decoded and all entries are returned, even
    those that no row refers to. With `checked`, every page is compared with its checksum.

    Raises CorruptFile, UnsupportedError; Stopped soon after `stop` is set.
    """
    if chunk.num_values == 0:
        return
    stop = stop or Stop()
    hasher = ChunkHasher(chunk, stop)
    alone = chunk.dictionary_bytes if chunk.only_dictionary_encoded and unreferenced else None
    dictionary: Slice | None = None
    marks = bytearray()
    unseen = 0
    waits = False  # for indices that refer to the other entries

    def skip(encoding: str) -> bool:
        return encoding in DICTIONARY_ENCODINGS and dictionary is not None and not waits

    for page in read_pages(source, chunk, skip, stop=stop, window=alone or WINDOW, checked=checked):
        if page.dictionary:
            dictionary = hasher.dictionary(page)
            marks, unseen = bytearray(dictionary.count), dictionary.count
            waits = not unreferenced or not dictionary.count  # no index may refer to an empty dictionary
            if unreferenced:
                yield dictionary
        elif page.encoding not in DICTIONARY_ENCODINGS:
            yield from hasher.slices(page)
        elif dictionary is None:
            raise page.location.fault("a dictionary-encoded page without a dictionary", 0)
        elif waits:
            unseen = mark(page, marks, unseen, stop)
            dictionary.end = page.end
            if marks and not unseen:
                waits = False
                yield dictionary
    if dictionary is not None and waits and not unreferenced:
        dictionary.keep(marks)
        yield dictionary


def mark(page: Page, marks: bytearray, unseen: int, stop: Stop, entries: kernels.Entries | None = None) -> int:
    """Mark the entries that a dictionary-encoded page refers to, and measure their use. Returns how many of `unseen`
    remain without a mark. Without `entries`, indices are read until none remains."""
    indices = kernels.Indices(page.non_null, marks, unseen, entries)
    if indices.done or page.body is None:
        return unseen
    feed = page.body.open(page.start)
    try:
        while True:
            stop.check()
            feed.position = indices.feed(feed.data, feed.position, feed.final)
            if indices.done or feed.final:
                return indices.unseen
            feed.more()
    except kernels.PageError as error:
        raise page.location.fault(f"the page's values can't be read: {error}", 0) from None


def zero_hashes(column: Column, *, draft: bool = False) -> tuple[int, ...]:
    """The hashes of +0 and -0 of a floating-point column."""
    width = zero_width(column)
    function = draft_hash if draft else kernels.xxh64
    return () if width is None else tuple(function(z) for z in _ZEROS[width])
