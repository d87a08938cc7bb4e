"""Hashes a page's values in slices, in every encoding that a column with a filter can have.

The Parquet format's Encodings.md defines which types each encoding can store. A slice has at most 65,536 values,
regardless of the number in the page header. Equal neighbours that the encoding marks as equal (a run of zero deltas,
a value that only repeats the previous one) count as one value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.codecs import AnyBody, Buffer, Feed
from bloomcli.formats.parquet.pages import Page
from bloomcli.formats.parquet.spec import Location
from bloomcli.model.file import Column
from bloomcli.words import are, counted

_WIDTHS: Final = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_PREFIX: Final = 4
"""Size of the length that precedes a PLAIN byte array."""


def width_of(column: Column) -> int | None:
    """Bytes of a value of a fixed-width column; None for BYTE_ARRAY."""
    return column.type_length if column.physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(column.physical)


_Bounds = kernels.Bounds | None


class Slice(NamedTuple):
    """Some of a page's values, with their hashes: uint64s in native order."""

    hashes: bytearray
    hashed: int
    """The number of hashes; 0 if only the bounds of the values are wanted."""
    fixed: Buffer | None = None
    """The values of a fixed-width column, contiguous and with equal neighbours; None if they aren't in memory."""
    data: Buffer = b""
    """The bytes of the values of other columns, from `start` on."""
    start: int = 0
    sizes: bytearray = bytearray()
    """The lengths, int64s; empty if each value has its length in front. With `before`, (prefix, suffix) pairs."""
    before: bytes | None = None
    """DELTA_BYTE_ARRAY: the value before the first one of the slice."""
    every: bool = False
    """The slice is a dictionary: equal neighbours have a hash each, because they have an index each."""
    long: int | None = None
    """The length of the only value, if it is too long to be kept."""

    def values(self, width: int | None) -> Iterator[bytes]:
        """The bytes of the values, in order. Slow: only for the few values that are reported."""
        if self.long is not None:
            raise ValueError("the value wasn't kept")
        if self.fixed is not None and width is not None:
            yield from self._hashed_values(
                bytes(self.fixed[at : at + width]) for at in range(0, len(self.fixed), width)
            )
            return
        if self.before is None and not self.sizes:
            yield from self._hashed_values(self._prefixed())
            return
        data, at = memoryview(self.data), self.start
        numbers = memoryview(self.sizes).cast("q")
        if self.before is not None:
            value = self.before
            for index in range(self.hashed):
                prefix, size = numbers[2 * index], numbers[2 * index + 1]
                value = value[:prefix] + bytes(data[at : at + size])
                at += size
                yield value
            return
        for size in numbers[: self.hashed]:
            yield bytes(data[at : at + size])
            at += size

    def value(self, index: int, width: int | None) -> bytes | int:
        """The bytes of the value with the hash at `index`; its length if it is too long to be kept or shown."""
        if self.long is not None:
            return self.long
        fixed = self.fixed is not None and width is not None
        if fixed or (self.before is None and not self.sizes):
            data = self.fixed if self.fixed is not None else self.data
            start = 0 if fixed else self.start
            at, size = kernels.plain_at(data, start, width or 0 if fixed else 0, index, self.every)
            return size if size > parquet_limits.VALUE_AT_ONCE_BYTES else bytes(memoryview(data)[at : at + size])
        return next(islice(self.values(width), index, None))

    def _hashed_values(self, values: Iterator[bytes]) -> Iterator[bytes]:
        return islice(values if self.every else (value for value, _ in groupby(values)), self.hashed)

    def _prefixed(self) -> Iterator[bytes]:
        """Yield values that each follow their length, up to the end of the data, which may be after the slice's."""
        data, at = memoryview(self.data), self.start
        while at < len(data):
            end = at + _PREFIX + int.from_bytes(data[at : at + _PREFIX], "little")
            yield bytes(data[at + _PREFIX : end])
            at = end


def unread(encoding: str, location: Location) -> UnsupportedError:
    """The error about a page of values in an encoding that isn't read."""
    hint = "choose other columns, or write this one again in another encoding"
    return location.unsupported(f"values in the encoding {encoding}", hint)


def slices(page: Page, column: Column, bounds: _Bounds = None) -> Iterator[Slice]:
    """Hash the values of a data page or a dictionary, and add them to `bounds`. Raises CorruptFile,
    UnsupportedError."""
    encoding = page.encoding
    types, read = _ENCODINGS.get("PLAIN" if page.dictionary else encoding, ((), None))
    if read is None:
        raise unread(encoding, page.location)
    if column.physical not in types:
        raise page.location.fault(
            f"values of the type {column.physical} in the encoding {encoding}, which doesn't support it", 0
        )
    if page.non_null == 0:
        return
    assert page.body is not None  # noqa: S101  skipped pages have no values
    try:
        yield from read(page, page.body, width_of(column), bounds)
    except kernels.PageError as error:
        raise page.location.fault(f"the page's values can't be read: {error}", 0) from None
    except kernels.CompactError as error:
        raise page.location.fault(f"the page's values can't be read: {error.reason}", 0) from None


def _check_room(page: Page, body: AnyBody, least: int) -> None:
    """Raise PageError if a page has too few bytes for values of at least `least` bytes each."""
    room = (body.size - page.start) // least
    if page.non_null > room:
        raise kernels.PageError(f"its header says {page.non_null}, its bytes can hold {room}")


def _plain(page: Page, body: AnyBody, width: int | None, bounds: _Bounds) -> Iterator[Slice]:
    _check_room(page, body, width or _PREFIX)
    feed = body.open(page.start)
    if page.dictionary and not feed.final:
        feed.more(body.size)  # it is one slice, because it is kept in memory anyway
    if width is None:
        yield from _plain_binary(page, feed, bounds)
        return
    left = page.non_null
    while left:
        if feed.left < width:
            if feed.final:
                raise kernels.PageError(f"the last {counted(left, 'value')} {are(left)} missing")
            feed.more(width - feed.left)
            continue
        count = min(left, feed.left // width, _batch(page))
        values = memoryview(feed.data)[feed.position : feed.position + count * width]
        yield _fixed(values, width, count, bounds, every=page.dictionary)
        feed.position += count * width
        left -= count


def _batch(page: Page) -> int:
    """The maximum number of values of a slice."""
    return parquet_limits.DICTIONARY_MAX_VALUES if page.dictionary else limits.ROWS_PER_BATCH


def _fixed(values: Buffer, width: int, count: int, bounds: _Bounds, *, every: bool = False) -> Slice:
    if bounds is not None:
        bounds.fixed(values, count)
        if bounds.alone:
            return Slice(bytearray(), 0, fixed=values)
    hashes = bytearray(count * 8)
    hash_count = kernels.hash_plain_fixed(values, width, count, hashes, every)
    return Slice(_cut(hashes, hash_count), hash_count, fixed=values, every=every)


def _plain_binary(page: Page, feed: Feed, bounds: _Bounds) -> Iterator[Slice]:
    left = page.non_null
    most = 1 if bounds is not None and bounds.alone else _batch(page)  # without hashes, no room for many is needed
    while left:
        limit = min(left, most, feed.left // _PREFIX + 1)
        hashes = bytearray(limit * 8)
        start = feed.position
        value_count, count, feed.position = kernels.hash_plain_binary(
            feed.data, start, feed.final, hashes, limit, left, page.dictionary, bounds
        )
        if value_count:
            yield Slice(_cut(hashes, count), count, data=feed.data, start=start, every=page.dictionary)
            left -= value_count
        elif feed.left < _PREFIX:
            feed.more(_PREFIX - feed.left)
        else:
            head = memoryview(feed.data)[feed.position : feed.position + _PREFIX]
            size = int.from_bytes(head, "little")
            if size > parquet_limits.VALUE_AT_ONCE_BYTES:
                feed.position += _PREFIX
                yield _long(feed, size, bounds)
                left -= 1
            else:
                feed.more(size + _PREFIX - feed.left)


def _cut(hashes: bytearray, count: int) -> bytearray:
    del hashes[count * 8 :]
    return hashes


def _long(feed: Feed, size: int, bounds: _Bounds) -> Slice:
    """Hash one value of `size` bytes in parts."""
    hasher = kernels.Hasher()
    if bounds is not None:
        bounds.too_long(size)
    left = size
    while left:
        if not feed.left:
            if feed.final:
                raise kernels.PageError("a byte array runs past the page's end")
            feed.more()
            continue
        part = min(feed.left, left)
        hasher.update(memoryview(feed.data)[feed.position : feed.position + part])
        feed.position += part
        left -= part
    return Slice(bytearray(hasher.digest().to_bytes(8, "little")), 1, long=size)


class _Numbers:
    """The `count` DELTA_BINARY_PACKED numbers of a page from a position on."""

    def __init__(self, body: AnyBody, at: int, count: int) -> None:
        self._feed = body.open(at)
        self._count = count
        self.deltas = kernels.Deltas()
        self._feed_window()

    def _feed_window(self) -> None:
        self.deltas.feed(self._feed.data, self._feed.position, self._feed.final)

    def more(self) -> None:
        """Load more bytes after those that were too few."""
        self.checked()
        self._feed.position = self.deltas.position
        self._feed.more()
        self._feed_window()

    def checked(self) -> None:
        """Raise PageError if the number of deltas differs from the page's number of values."""
        if self.deltas.count not in (-1, self._count):
            raise kernels.PageError(f"{counted(self.deltas.count, 'delta')} for {counted(self._count, 'value')}")

    def end(self) -> int:
        """Skip all numbers. Returns the position after them, counted from the start of the body."""
        while self.deltas.skip() == kernels.MORE_BYTES:
            self.more()
        self.checked()
        self._feed.position = self.deltas.position
        return self._feed.at


def _delta(page: Page, body: AnyBody, width: int | None, bounds: _Bounds) -> Iterator[Slice]:
    numbers = _Numbers(body, page.start, page.non_null)
    numbers.deltas.every = bounds is not None and bounds.tracked
    status = None
    while status != kernels.ALL_DONE:
        limit = min(page.non_null, limits.ROWS_PER_BATCH)
        wide = bytearray(limit * 8)
        count, status = numbers.deltas.read(wide, limit)
        numbers.checked()
        if count and width == 4:
            values = bytearray(count * 4)
            kernels.narrow_int32(wide, count, values)
            yield _fixed(values, 4, count, bounds)
        elif count:
            yield _fixed(wide, 8, count, bounds)
        if status == kernels.MORE_BYTES:
            numbers.more()


def _delta_length(page: Page, body: AnyBody, _: int | None, bounds: _Bounds) -> Iterator[Slice]:
    feed = body.open(_Numbers(body, page.start, page.non_null).end())
    lengths = _Numbers(body, page.start, page.non_null)
    limit = min(page.non_null, limits.ROWS_PER_BATCH)
    status = None
    while status != kernels.ALL_DONE:
        hashes, sizes = bytearray(limit * 8), bytearray(limit * 8)
        start = feed.position
        count, feed.position, status = kernels.hash_lengths(
            lengths.deltas, feed.data, start, feed.final, hashes, sizes, limit, bounds
        )
        if count:
            yield Slice(_cut(hashes, count), count, data=feed.data, start=start, sizes=sizes)
        if status == kernels.MORE_LENGTHS:
            lengths.more()
        elif status == kernels.MORE_BYTES and lengths.deltas.length() > parquet_limits.VALUE_AT_ONCE_BYTES:
            yield _long(feed, lengths.deltas.length(), bounds)
            lengths.deltas.take()
        elif status == kernels.MORE_BYTES:
            feed.more(max(lengths.deltas.length() - feed.left, 1))


def _delta_byte_array(page: Page, body: AnyBody, width: int | None, bounds: _Bounds) -> Iterator[Slice]:
    middle = _Numbers(body, page.start, page.non_null).end()
    feed = body.open(_Numbers(body, middle, page.non_null).end())
    prefixes, suffixes = _Numbers(body, page.start, page.non_null), _Numbers(body, middle, page.non_null)
    values = kernels.DeltaByteArrayHasher(parquet_limits.DELTA_VALUE_MAX_BYTES, -1 if width is None else width)
    limit = min(page.non_null, limits.ROWS_PER_BATCH)
    status = None
    while status != kernels.ALL_DONE:
        hashes, shapes = bytearray(limit * 8), bytearray(limit * 16)
        start, before = feed.position, values.before
        count, feed.position, status = values.hash(
            prefixes.deltas, suffixes.deltas, feed.data, start, feed.final, hashes, shapes, limit, bounds
        )
        if count:
            yield Slice(_cut(hashes, count), count, data=feed.data, start=start, sizes=shapes, before=before)
        if status == kernels.MORE_PREFIXES:
            prefixes.more()
        elif status == kernels.MORE_LENGTHS:
            suffixes.more()
        elif status == kernels.MORE_BYTES:
            feed.more(max(suffixes.deltas.length() - feed.left, 1))
        if status == kernels.TOO_LONG:
            raise _beyond(
                page, f"a value of more than {parquet_limits.DELTA_VALUE_MAX_BYTES} bytes in DELTA_BYTE_ARRAY"
            )
        if values.hashed > parquet_limits.DELTA_PAGE_MAX_BYTES:
            raise _beyond(
                page, f"a DELTA_BYTE_ARRAY page with more than {parquet_limits.DELTA_PAGE_MAX_BYTES} bytes of values"
            )


def _beyond(page: Page, what: str) -> UnsupportedError:
    return page.location.unsupported(f"{what}, the most that are read", "rewrite the file with another encoding")


def _split(page: Page, body: AnyBody, width: int | None, bounds: _Bounds) -> Iterator[Slice]:
    assert width is not None  # noqa: S101  all types of this encoding have a fixed width
    _check_room(page, body, width)
    whole = body.whole()
    for first in range(0, page.non_null, limits.ROWS_PER_BATCH):
        count = min(page.non_null - first, limits.ROWS_PER_BATCH)
        values = bytearray(count * width)
        for byte in range(width):
            at = page.start + byte * page.non_null + first
            values[byte::width] = whole[at : at + count]
        yield _fixed(values, width, count, bounds)


def _alp(page: Page, body: AnyBody, width: int | None, bounds: _Bounds) -> Iterator[Slice]:
    assert width is not None  # noqa: S101  as above
    vectors = kernels.Alp(body.whole(), page.start, page.non_null, width)
    left = page.non_null
    while left:
        values = bytearray(min(left, limits.ROWS_PER_BATCH) * width)
        count = vectors.read(values)  # a batch has room for the largest vector
        yield _fixed(values, width, count, bounds)
        left -= count


_ENCODINGS: Final[dict[str, tuple[Collection[str], Any]]] = {
    "PLAIN": ((*_WIDTHS, "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"), _plain),
    "DELTA_BINARY_PACKED": (("INT32", "INT64"), _delta),
    "DELTA_LENGTH_BYTE_ARRAY": (("BYTE_ARRAY",), _delta_length),
    "DELTA_BYTE_ARRAY": (("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"), _delta_byte_array),
    "BYTE_STREAM_SPLIT": (("FLOAT", "DOUBLE", "INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"), _split),
    "ALP": (("FLOAT", "DOUBLE"), _alp),
}
"""The types that each encoding can store, and the function that hashes its values."""
