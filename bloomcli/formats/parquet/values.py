"""The values of a column chunk as hashes: what goes into its filter, and what has to be found there.

Dictionary-encoded pages hold indices, and their values are hashed once, in the dictionary. An entry that no
index refers to is no value of the column: Arrow writes an array's whole dictionary into each row group. Nulls
are never hashed; every element of a repeated leaf is. If a zero of either sign occurs in a floating-point column,
both signs are given: a reader that hashes its literal's own zero (parquet-java does) then finds it.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator
from typing import Any, Final

from bloomcli import hashes, kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet.pages import Page, read_dictionary, read_pages
from bloomcli.literals import Literal, kind_of
from bloomcli.model import Column, ColumnChunk
from bloomcli.source import Source

_WIDTHS: Final = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_ZEROS: Final = {2: (b"\0\0", b"\0\x80"), 4: (bytes(4), b"\0\0\0\x80"), 8: (bytes(8), bytes(7) + b"\x80")}
_DECIMAL_BYTES: Final = 17
"""128 bits, as most engines compute with, and a byte for the sign."""
INTERVAL_BYTES: Final = 12
"""Months, days and milliseconds. Source: the Parquet format's LogicalTypes.md."""
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


def width_of(column: Column) -> int | None:
    """Bytes of a value of a fixed-width column; None for BYTE_ARRAY."""
    return column.type_length if column.physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(column.physical)


def zero_width(column: Column) -> int | None:
    """Bytes of a floating-point value; None for columns that have no signed zero."""
    if column.physical in {"FLOAT", "DOUBLE"}:
        return _WIDTHS[column.physical]
    return 2 if column.logical == "FLOAT16" and column.type_length == 2 else None


def is_interval(column: Column) -> bool:
    """Whether the column's values are intervals, of the width that these have."""
    return column.logical == "INTERVAL" and column.type_length == INTERVAL_BYTES


class HashedPage:
    """The hashes of one page's present values, 8 bytes each in native order, and the values on request."""

    __slots__ = ("_kept", "_page", "_values", "_width", "count", "dictionary", "end", "has_zero", "hashes")

    def __init__(self, page: Page, column: Column) -> None:
        self._page = page
        self.dictionary = page.dictionary
        self._width = width_of(column)
        self.count = page.present
        self._values: Any = b""
        self._kept: bytearray | None = None
        self.has_zero = False
        self.end = page.end
        """File offset up to which the chunk was read for these values."""
        try:
            room = self._room(page)
            if page.present > room:
                raise kernels.PageError(f"its header says {page.present}, its bytes can hold {room}")
            self.hashes = bytearray(page.present * 8)
            self._hash(page)
            width = zero_width(column)
            if width is not None and page.present:
                if len(self._values):
                    self.has_zero = kernels.has_zero(self._values, width, 0, page.present, None)
                else:  # DELTA_BYTE_ARRAY: the values were hashed one by one and not kept
                    self.has_zero = not set(zero_hashes(column)).isdisjoint(memoryview(self.hashes).cast("Q"))
        except (kernels.PageError, ValueError) as error:
            raise page.place.fault(f"the page's values can't be read: {error}", 0) from None

    def keep(self, kept: bytearray, column: Column) -> None:
        """Leave out the values whose byte in `kept` is 0."""
        left = array("Q", itertools.compress(memoryview(self.hashes).cast("Q"), kept))
        self._kept = kept
        self.count = len(left)
        self.hashes = bytearray(left.tobytes())
        self.has_zero = self.has_zero and not set(zero_hashes(column)).isdisjoint(left)

    def _room(self, page: Page) -> int:
        """How many values the page's bytes can hold: nothing is allocated by what a header claims."""
        if page.encoding.startswith("DELTA_"):
            return kernels.delta_count(page.body, page.start)
        return int(max(len(page.body) - page.start, 0) // (self._width or 4))

    def _hash(self, page: Page) -> None:
        encoding = page.encoding
        if page.dictionary or encoding == "PLAIN":
            if self._width is None:
                kernels.hash_plain_binary(page.body, page.start, page.present, self.hashes)
            else:
                self._fixed(memoryview(page.body)[page.start :])
        elif encoding == "DELTA_BINARY_PACKED":
            self._delta(page)
        elif encoding == "DELTA_LENGTH_BYTE_ARRAY":
            lengths, start = _lengths(page, page.start)
            kernels.hash_lengths(page.body, start, lengths, page.present, self.hashes)
        elif encoding == "DELTA_BYTE_ARRAY":
            prefixes, start = _lengths(page, page.start)
            suffixes, start = _lengths(page, start)
            scratch = bytearray(max(len(page.body) - start, 0))
            kernels.hash_delta_byte_array(page.body, start, prefixes, suffixes, page.present, scratch, self.hashes)
        elif encoding == "BYTE_STREAM_SPLIT" and self._width is not None:
            if page.present * self._width > len(page.body) - page.start:
                raise kernels.PageError("the byte streams run past the page's end")
            joined = bytearray(page.present * self._width)
            kernels.byte_stream_split(page.body, page.start, page.present, self._width, joined)
            self._fixed(joined)
        else:
            raise UnsupportedError(
                f"values in the encoding {encoding}",
                path=page.place.path,
                offset=page.place.base,
                field=page.place.field,
                hint="rewrite the file with a current engine",
            )

    def _fixed(self, values: Any) -> None:
        width = self._width
        assert width is not None  # noqa: S101  only called for fixed widths
        if len(values) < self.count * width:
            raise kernels.PageError(f"{self.count} values of {width} bytes don't fit in {len(values)}")
        self._values = values
        kernels.hash_fixed(values, width, 0, self.count, None, self.hashes)

    def _delta(self, page: Page) -> None:
        wide = bytearray(page.present * 8)
        got, _ = kernels.delta_binary_packed(page.body, page.start, page.present, wide)
        if got != page.present:
            raise kernels.PageError(f"{got} deltas for {page.present} values")
        if self._width == 4:
            values = bytearray(page.present * 4)
            kernels.narrow_int32(wide, page.present, values)
            self._fixed(values)
        else:
            self._fixed(wide)

    def value(self, index: int) -> bytes:
        """The value behind the hash at `index`, as its bytes. Slow: for the few that are reported."""
        return next(itertools.islice(self.values(), index, None))

    def values(self) -> Iterator[bytes]:
        """The values behind the hashes, as their bytes, in order."""
        every = self._every()
        return every if self._kept is None else itertools.compress(every, self._kept)

    def _every(self) -> Iterator[bytes]:
        page = self._page
        if self._width is not None and len(self._values):
            for at in range(0, page.present * self._width, self._width):
                yield bytes(self._values[at : at + self._width])
            return
        body = bytes(memoryview(page.body))
        if page.dictionary or page.encoding == "PLAIN":
            at = page.start
            for _ in range(page.present):
                end = at + 4 + int.from_bytes(body[at : at + 4], "little")
                yield body[at + 4 : end]
                at = end
        elif page.encoding == "DELTA_LENGTH_BYTE_ARRAY":
            lengths, at = _lengths(page, page.start)
            for size in memoryview(lengths).cast("q"):
                yield body[at : at + size]
                at += size
        else:
            prefixes, at = _lengths(page, page.start)
            suffixes, at = _lengths(page, at)
            value = b""
            for prefix, size in zip(memoryview(prefixes).cast("q"), memoryview(suffixes).cast("q"), strict=True):
                value = value[:prefix] + body[at : at + size]
                at += size
                yield value

    def interval_hashes(self) -> bytes:
        """The hashes of the normal forms of intervals, by which DuckDB looks them up."""
        plain = self._values if self._kept is None and len(self._values) else b"".join(self.values())
        out = bytearray(len(plain) // INTERVAL_BYTES * 16)
        count = kernels.hash_normal_intervals(plain, len(plain) // INTERVAL_BYTES, out)
        return bytes(memoryview(out)[: count * 8])

    def draft_hashes(self) -> bytearray:
        """The hashes that the drafts of 2018 use, one value at a time: few files need them."""
        return bytearray(array("Q", map(hashes.parquet_draft, self.values())).tobytes())


def _lengths(page: Page, start: int) -> tuple[bytearray, int]:
    lengths = bytearray(page.present * 8)
    got, end = kernels.delta_binary_packed(page.body, start, page.present, lengths)
    if got != page.present:
        raise kernels.PageError(f"{got} lengths for {page.present} values")
    return lengths, end


def hashed_pages(
    source: Source, chunk: ColumnChunk, data_end: int, *, unreferenced: bool = False
) -> Iterator[HashedPage]:
    """The chunk's distinct-enough values, page by page: those of its dictionary, and of every page that has its own.

    Dictionary-encoded pages are looked into until every entry of the dictionary was referred to; where the
    encoding stats say that there are no other pages, the rest isn't read. With `unreferenced` they aren't looked
    into at all, and all entries are given: values, and such as aren't, if the writer leaves any.

    Raises CorruptFile, UnsupportedError.
    """
    if chunk.num_values == 0:
        return
    if chunk.only_dictionary_encoded and unreferenced:
        page = read_dictionary(source, chunk, data_end)
        if page is not None:
            yield HashedPage(page, chunk.column)
            return
    dictionary: HashedPage | None = None
    seen = bytearray()
    unseen = 0
    waits = False  # for indices that refer to the rest of the dictionary

    def passed(encoding: str) -> bool:
        return encoding in _DICTIONARY and dictionary is not None and not waits

    for page in read_pages(source, chunk, data_end, passed):
        if page.dictionary:
            if dictionary is not None:
                raise page.place.fault("a second dictionary page", 0)
            dictionary = HashedPage(page, chunk.column)
            seen, unseen, waits = bytearray(dictionary.count), dictionary.count, not unreferenced
            if unreferenced:
                yield dictionary
        elif page.encoding not in _DICTIONARY:
            yield HashedPage(page, chunk.column)
        elif dictionary is None:
            raise page.place.fault("a dictionary-encoded page without a dictionary", 0)
        elif waits:
            unseen = _mark(page, seen, unseen)
            dictionary.end = page.end
            if seen and not unseen:
                waits = False
                yield dictionary
                if chunk.only_dictionary_encoded:
                    return
    if dictionary is not None and waits:
        dictionary.keep(seen, chunk.column)
        yield dictionary


def _mark(page: Page, seen: bytearray, unseen: int) -> int:
    try:
        return kernels.mark_indices(page.body, page.start, page.present, seen, unseen)
    except kernels.PageError as error:
        raise page.place.fault(f"the page's values can't be read: {error}", 0) from None


def stored_forms(literal: Literal, column: Column) -> tuple[bytes, ...]:
    """The PLAIN bytes by which a chunk may hold a typed value.

    A DECIMAL in a BYTE_ARRAY should be as short as can be, and the specification says no more than that: writers
    that repeat the sign in front give other bytes, and so another hash, for an equal number.
    """
    if column.physical != "BYTE_ARRAY" or kind_of(column) != "DECIMAL":
        return literal.encodings
    return tuple(
        (b"\xff" if shortest[0] & 0x80 else b"\0") * more + shortest
        for shortest in literal.encodings
        for more in range(max(_DECIMAL_BYTES - len(shortest), 0) + 1)
    )


def zero_hashes(column: Column, *, draft: bool = False) -> tuple[int, ...]:
    """The hashes of both zeros of a floating-point column."""
    width = zero_width(column)
    function = hashes.parquet_draft if draft else kernels.xxh64
    return () if width is None else tuple(function(z) for z in _ZEROS[width])
