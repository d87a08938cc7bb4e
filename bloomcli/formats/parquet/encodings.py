"""Hashes a page's values in slices, in every encoding that a column with a filter can have.

The Parquet format's Encodings.md defines which types each encoding can store. A slice has at most 65,536 values,
regardless of the number in the page header. Equal neighbours that the encoding marks as equal (a run of zero deltas,
a value that only repeats the previous one) count as one value.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import compress, groupby, islice, repeat
from typing import Any, Final

from bloomcli import kernels, limits
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.codecs import Body, Buffer, Feed
from bloomcli.formats.parquet.pages import Page
from bloomcli.formats.parquet.spec import Location
from bloomcli.formats.parquet.statistics import width_of
from bloomcli.model.file import Column
from bloomcli.words import are, counted

_PREFIX: Final = 4
"""Size of the length that precedes a PLAIN byte array."""


_Bounds = kernels.Bounds | None


class Slice:
    """Some of a data page's values, or all entries of a dictionary, with their hashes.

    Args:
        page: the page.
        column: its column.
        hashes: the hashes, uint64s in native order.
        count: their number; 0 if only the bounds of the values are wanted.
        data: the bytes of the values, from `start` on, those of equal neighbours too; none if they aren't in memory.
        start: where they start.
        sizes: the lengths, int64s; empty if the values have one width, or their lengths in front. With `before`,
            (prefix, suffix) pairs.
        before: DELTA_BYTE_ARRAY: the value before the first one.
        long: the length of the only value, if it is too long to be kept.

    Attributes:
        dictionary: they are a dictionary's entries: equal neighbours have a hash each, as they have an index each.
        end: the file offset up to which these values took reading.
    """

    def __init__(
        self,
        page: Page,
        column: Column,
        hashes: bytearray,
        count: int,
        *,
        data: Buffer = b"",
        start: int = 0,
        sizes: Buffer = b"",
        before: bytes | None = None,
        long: int | None = None,
    ) -> None:
        self.column, self.hashes, self.count = column, hashes, count
        self.data, self.start, self.long = data, start, long
        self.dictionary, self.end = page.dictionary, page.end
        self._location, self._sizes, self._before = page.location, sizes, before
        self._width = width_of(column) or 0
        self._kept: bytearray | None = None

    def keep(self, kept: bytearray) -> None:
        """Leave out the values whose byte in `kept` is 0."""
        self._kept = kept
        self.hashes = bytearray(array("Q", compress(memoryview(self.hashes).cast("Q"), kept)).tobytes())
        self.count = len(self.hashes) // 8

    @property
    def fixed(self) -> Buffer | None:
        """The contiguous values of a fixed-width column; None if they aren't in memory, or some were left out."""
        return self.data if self._width and self._before is None and self._kept is None else None

    def values(self) -> Iterator[bytes]:
        """The bytes of the hashed values, in order. Slow: only for the few values that are reported."""
        if self.long is not None:
            most = parquet_limits.VALUE_AT_ONCE_BYTES
            reason = f"a value of {counted(self.long, 'byte')}; at most {most} are held in memory"
            raise self._location.unsupported(reason, "rewrite the file with smaller pages")
        hashed = self._hashed()
        return islice(hashed, self.count) if self._kept is None else compress(hashed, self._kept)

    def value(self, index: int) -> bytes | int:
        """The bytes of the value with the hash at `index`; its length if it is too long to be kept or shown."""
        if self.long is not None:
            return self.long
        if self._kept is not None:
            index = self._positions[index]
        if self._before is not None or self._sizes:
            return next(islice(self._hashed(), index, None))
        at, size = kernels.plain_at(self.data, self.start, self._width, index, self.dictionary)
        return size if size > parquet_limits.VALUE_AT_ONCE_BYTES else bytes(memoryview(self.data)[at : at + size])

    @cached_property
    def _positions(self) -> array[int]:
        """The positions of the kept values among all values."""
        return array("q", compress(range(len(self._kept or ())), self._kept or ()))

    def _hashed(self) -> Iterator[bytes]:
        """Yield the hashed values, with those that were left out, and perhaps others after them."""
        if self._before is None and not self._sizes:
            values = self._plain()
            yield from values if self.dictionary else (value for value, _ in groupby(values))
            return
        value, data, at = self._before or b"", memoryview(self.data), self.start
        numbers = memoryview(self._sizes).cast("q")
        prefixes: Iterable[int] = repeat(0) if self._before is None else numbers[::2]
        for prefix, size in zip(prefixes, numbers if self._before is None else numbers[1::2], strict=False):
            value = value[:prefix] + bytes(data[at : at + size])
            at += size
            yield value

    def _plain(self) -> Iterator[bytes]:
        """Yield values in PLAIN encoding up to the end of the data, which may be after the slice's."""
        data, at, size = memoryview(self.data), self.start, self._width
        while at < len(data):
            if not self._width:
                size = int.from_bytes(data[at : at + _PREFIX], "little")
                at += _PREFIX
            yield bytes(data[at : at + size])
            at += size


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
        yield from read(page, page.body, column, bounds)
    except kernels.PageError as error:
        raise page.location.fault(f"the page's values can't be read: {error}", 0) from None
    except kernels.CompactError as error:
        raise page.location.fault(f"the page's values can't be read: {error.reason}", 0) from None


def _check_room(page: Page, body: Body, least: int) -> None:
    """Raise PageError if a page has too few bytes for values of at least `least` bytes each."""
    room = (body.size - page.start) // least
    if page.non_null > room:
        raise kernels.PageError(f"its header says {page.non_null}, its bytes can hold {room}")


def _plain(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
    width = width_of(column)
    _check_room(page, body, width or _PREFIX)
    feed = body.open(page.start)
    if page.dictionary and not feed.final:
        feed.more(body.size)  # it is one slice, because it is kept in memory anyway
    if width is None:
        yield from _plain_binary(page, feed, column, bounds)
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
        yield _fixed(page, column, values, count, bounds)
        feed.position += count * width
        left -= count


def _batch(page: Page) -> int:
    """The maximum number of values of a slice."""
    return parquet_limits.DICTIONARY_MAX_VALUES if page.dictionary else limits.ROWS_PER_BATCH


def _fixed(page: Page, column: Column, values: Buffer, count: int, bounds: _Bounds) -> Slice:
    if bounds is not None:
        bounds.fixed(values, count)
        if bounds.alone:
            return Slice(page, column, bytearray(), 0, data=values)
    hashes = bytearray(count * 8)
    hash_count = kernels.hash_plain_fixed(values, width_of(column) or 0, count, hashes, page.dictionary)
    return Slice(page, column, _cut(hashes, hash_count), hash_count, data=values)


def _plain_binary(page: Page, feed: Feed, column: Column, bounds: _Bounds) -> Iterator[Slice]:
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
            yield Slice(page, column, _cut(hashes, count), count, data=feed.data, start=start)
            left -= value_count
        elif feed.left < _PREFIX:
            feed.more(_PREFIX - feed.left)
        else:
            head = memoryview(feed.data)[feed.position : feed.position + _PREFIX]
            size = int.from_bytes(head, "little")
            if size > parquet_limits.VALUE_AT_ONCE_BYTES:
                feed.position += _PREFIX
                yield _long(page, feed, size, column, bounds)
                left -= 1
            else:
                feed.more(size + _PREFIX - feed.left)


def _cut(hashes: bytearray, count: int) -> bytearray:
    del hashes[count * 8 :]
    return hashes


def _long(page: Page, feed: Feed, size: int, column: Column, bounds: _Bounds) -> Slice:
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
    return Slice(page, column, bytearray(hasher.digest().to_bytes(8, "little")), 1, long=size)


class _Numbers:
    """The `count` DELTA_BINARY_PACKED numbers of a page from a position on."""

    def __init__(self, body: Body, at: int, count: int) -> None:
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


def _delta(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
    numbers = _Numbers(body, page.start, page.non_null)
    numbers.deltas.every = bounds is not None and bounds.tracked
    width = width_of(column) or 0
    status = None
    while status != kernels.ALL_DONE:
        limit = min(page.non_null, limits.ROWS_PER_BATCH)
        values = bytearray(limit * width)
        count, status = numbers.deltas.read(values, limit, width == 4)
        numbers.checked()
        if count:
            yield _fixed(page, column, memoryview(values)[: count * width], count, bounds)
        if status == kernels.MORE_BYTES:
            numbers.more()


def _delta_length(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
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
            yield Slice(page, column, _cut(hashes, count), count, data=feed.data, start=start, sizes=sizes)
        if status == kernels.MORE_LENGTHS:
            lengths.more()
        elif status == kernels.MORE_BYTES and lengths.deltas.length() > parquet_limits.VALUE_AT_ONCE_BYTES:
            yield _long(page, feed, lengths.deltas.length(), column, bounds)
            lengths.deltas.take()
        elif status == kernels.MORE_BYTES:
            feed.more(max(lengths.deltas.length() - feed.left, 1))


def _delta_byte_array(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
    middle = _Numbers(body, page.start, page.non_null).end()
    feed = body.open(_Numbers(body, middle, page.non_null).end())
    prefixes, suffixes = _Numbers(body, page.start, page.non_null), _Numbers(body, middle, page.non_null)
    values = kernels.DeltaByteArrayHasher(parquet_limits.DELTA_VALUE_MAX_BYTES, width_of(column) or -1)
    limit = min(page.non_null, limits.ROWS_PER_BATCH)
    status = None
    while status != kernels.ALL_DONE:
        hashes, shapes = bytearray(limit * 8), bytearray(limit * 16)
        start, before = feed.position, values.before
        count, feed.position, status = values.hash(
            prefixes.deltas, suffixes.deltas, feed.data, start, feed.final, hashes, shapes, limit, bounds
        )
        if count:
            hashes = _cut(hashes, count)
            yield Slice(page, column, hashes, count, data=feed.data, start=start, sizes=shapes, before=before)
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


def _split(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
    width = width_of(column)
    assert width is not None  # noqa: S101  all types of this encoding have a fixed width
    _check_room(page, body, width)
    whole = body.whole()
    for first in range(0, page.non_null, limits.ROWS_PER_BATCH):
        count = min(page.non_null - first, limits.ROWS_PER_BATCH)
        values = bytearray(count * width)
        for byte in range(width):
            at = page.start + byte * page.non_null + first
            values[byte::width] = whole[at : at + count]
        yield _fixed(page, column, values, count, bounds)


def _alp(page: Page, body: Body, column: Column, bounds: _Bounds) -> Iterator[Slice]:
    width = width_of(column)
    assert width is not None  # noqa: S101  as above
    vectors = kernels.Alp(body.whole(), page.start, page.non_null, width)
    left = page.non_null
    while left:
        values = bytearray(min(left, limits.ROWS_PER_BATCH) * width)
        count = vectors.read(values)  # a batch has room for the largest vector
        yield _fixed(page, column, values, count, bounds)
        left -= count


_PLAIN_TYPES: Final = ("INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")
_ENCODINGS: Final[dict[str, tuple[Collection[str], Any]]] = {
    "PLAIN": (_PLAIN_TYPES, _plain),
    "DELTA_BINARY_PACKED": (("INT32", "INT64"), _delta),
    "DELTA_LENGTH_BYTE_ARRAY": (("BYTE_ARRAY",), _delta_length),
    "DELTA_BYTE_ARRAY": (("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"), _delta_byte_array),
    "BYTE_STREAM_SPLIT": (("FLOAT", "DOUBLE", "INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"), _split),
    "ALP": (("FLOAT", "DOUBLE"), _alp),
}
"""The types that each encoding can store, and the function that hashes its values."""
