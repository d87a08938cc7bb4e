"""The values of a column chunk as hashes: what goes into its filter, and what has to be found there.

A chunk whose data pages are all dictionary-encoded is done with its dictionary page. Nulls are never
hashed; every element of a repeated leaf is. If a zero of either sign occurs in a floating-point column,
both signs are given: a reader that hashes its literal's own zero (parquet-java does) then finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet.pages import Page, read_dictionary, read_pages
from bloomcli.model import Column, ColumnChunk
from bloomcli.source import Source

_WIDTHS: Final = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_ZEROS: Final = {2: (b"\0\0", b"\0\x80"), 4: (bytes(4), b"\0\0\0\x80"), 8: (bytes(8), bytes(7) + b"\x80")}
_DICTIONARY: Final = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")


def width_of(column: Column) -> int | None:
    """Bytes of a value of a fixed-width column; None for BYTE_ARRAY."""
    return column.type_length if column.physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(column.physical)


def zero_width(column: Column) -> int | None:
    """Bytes of a floating-point value; None for columns that have no signed zero."""
    if column.physical in {"FLOAT", "DOUBLE"}:
        return _WIDTHS[column.physical]
    return 2 if column.logical == "FLOAT16" and column.type_length == 2 else None


class HashedPage:
    """The hashes of one page's present values, 8 bytes each in native order, and the values on request."""

    __slots__ = ("_page", "_values", "_width", "count", "has_zero", "hashes")

    def __init__(self, page: Page, column: Column) -> None:
        self._page = page
        self._width = width_of(column)
        self.count = page.present
        self.hashes = bytearray(page.present * 8)
        self._values: Any = None
        self.has_zero = False
        try:
            self._hash(page)
            width = zero_width(column)
            if width is not None and page.present:
                self.has_zero = kernels.has_zero(self._values, width, 0, page.present, None)
        except (kernels.PageError, ValueError) as error:
            raise page.place.fault(f"the page's values can't be read: {error}", 0) from None

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
            kernels.hash_delta_byte_array(
                page.body, start, prefixes, suffixes, page.present, scratch, self.hashes
            )
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
        page = self._page
        if self._width is not None and self._values is not None:
            return bytes(self._values[index * self._width : (index + 1) * self._width])
        body = bytes(memoryview(page.body))
        if page.dictionary or page.encoding == "PLAIN":
            at = page.start
            for _ in range(index):
                at += 4 + int.from_bytes(body[at : at + 4], "little")
            size = int.from_bytes(body[at : at + 4], "little")
            return body[at + 4 : at + 4 + size]
        if page.encoding == "DELTA_LENGTH_BYTE_ARRAY":
            lengths, at = _lengths(page, page.start)
            sizes = memoryview(lengths).cast("q")
            at += sum(sizes[:index])
            return body[at : at + sizes[index]]
        prefixes, at = _lengths(page, page.start)
        suffixes, at = _lengths(page, at)
        value = b""
        for prefix, suffix in zip(
            memoryview(prefixes).cast("q")[: index + 1], memoryview(suffixes).cast("q")[: index + 1], strict=True
        ):
            value = value[:prefix] + body[at : at + suffix]
            at += suffix
        return value


def _lengths(page: Page, start: int) -> tuple[bytearray, int]:
    lengths = bytearray(page.present * 8)
    got, end = kernels.delta_binary_packed(page.body, start, page.present, lengths)
    if got != page.present:
        raise kernels.PageError(f"{got} lengths for {page.present} values")
    return lengths, end


def hashed_pages(source: Source, chunk: ColumnChunk, data_end: int) -> Iterator[HashedPage]:
    """The chunk's distinct-enough values, page by page: its dictionary, and every page that doesn't use it.

    Values of dictionary-encoded pages are in the dictionary, so those pages aren't looked into, and where
    the encoding stats say that there are no others, not read. Raises CorruptFile, UnsupportedError.
    """
    if chunk.num_values == 0:
        return
    if chunk.only_dictionary_encoded:
        page = read_dictionary(source, chunk, data_end)
        if page is not None:
            yield HashedPage(page, chunk.column)
            return
    dictionary = False
    for page in read_pages(source, chunk, data_end):
        if page.dictionary:
            dictionary = True
        elif page.encoding in _DICTIONARY:
            if not dictionary:
                raise page.place.fault("a dictionary-encoded page without a dictionary", 0)
            continue
        yield HashedPage(page, chunk.column)


def zero_hashes(column: Column) -> tuple[int, ...]:
    """The hashes of both zeros of a floating-point column."""
    width = zero_width(column)
    return () if width is None else tuple(kernels.xxh64(z) for z in _ZEROS[width])


def zero_encodings(width: int) -> tuple[bytes, ...]:
    """Both zeros of a floating-point type of 2, 4 or 8 bytes, +0 first."""
    return _ZEROS[width]


