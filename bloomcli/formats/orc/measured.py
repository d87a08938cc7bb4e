"""What a column's statistics should say, measured from its decoded values.

Values are compared in the order of ORC's statistics, as

    integers, booleans, dates     int
    floating point                float, without NaN
    strings                       bytes, which are compared as unsigned numbers
    decimals                      int, the digits in the column's scale
    timestamps                    int, nanoseconds since 1970 in the writer's local time

A dictionary's entries stay in memory, up to a limit. If they are ascending, which is usual, indexes are compared in
place of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from struct import unpack
from typing import Any, Final

from bloomcli import kernels
from bloomcli.formats.base import MeasuredColumn
from bloomcli.formats.geospatial import Claims
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import BINARIES, DECIMAL_BYTES, FLOATS, REPEATED, STRINGS, LeafReader, Values
from bloomcli.model.table_statistics import Key
from bloomcli.values import calendar
from bloomcli.values.literals import WIDE

Extremes = tuple[Any, Any]
"""The least and the greatest value, None if none is compared."""
_NOTHING: Final[Extremes] = (None, None)
_BYTES: Final = {"BOOLEAN": 1, "BYTE": 1, "DECIMAL": DECIMAL_BYTES}
"""Bytes of an integer in `Values.data`, if not 8."""
_ENTRIES_KEPT: Final = 64
"""Row groups of one stripe often have the same extremes."""


def _key_of(value: Any, orc: OrcType) -> Key:
    """A compared value as a `Key`."""
    if orc.kind == "DECIMAL":
        return Decimal(value).scaleb(-orc.scale, context=WIDE)
    key: Key = value * calendar.DAY_NANOS if orc.kind == "DATE" else value
    return key


class Entries:
    """The entries of a stripe's dictionary, whose indexes stand for them."""

    def __init__(self, leaf: LeafReader) -> None:
        self._leaf = leaf
        self._data = bytearray()
        self._lengths = bytearray()
        self._parts = [(0, 0)]
        """The entries and the bytes before each part that was added."""
        self._order: list[int] | None = None
        """The entries in ascending order; None if that is their own order."""
        self._ranks = b""
        self._entry = lru_cache(maxsize=_ENTRIES_KEPT)(self._read)
        self.fits = True
        """Whether the entries are in memory."""

    def take(self, parts: Iterator[Values]) -> Iterator[Values]:
        """Add the entries, which are passed on."""
        for values in parts:
            self._add(values)
            yield values
        count = len(self._lengths) // 8
        bounds = kernels.Bounds(kernels.BYTEWISE, 0, tracked=True)
        bounds.sized(self._data, 0, self._lengths, count)
        if self.fits and not bounds.rises:
            ends = pairwise(accumulate(memoryview(self._lengths).cast("q"), initial=0))
            entries = [bytes(self._data[start:end]) for start, end in ends]
            self._order = sorted(range(count), key=entries.__getitem__)
            ranks = array("q", bytes(8 * count))
            for rank, entry in enumerate(self._order):
                ranks[entry] = rank
            self._ranks = ranks.tobytes()

    def _add(self, values: Values) -> None:
        self.fits = self.fits and len(self._data) + len(values.data) <= orc_limits.COMPARED_ENTRIES_MAX_BYTES
        if not self.fits:
            self._data, self._lengths = bytearray(), bytearray()
            return
        self._data += values.data
        if values.cut:
            self._lengths += len(values.data).to_bytes(8, "little")
        else:
            self._lengths += (values.lengths or b"")[: values.count * 8]
        self._parts.append((len(self._lengths) // 8, len(self._data)))

    def extremes(self, indexes: Values) -> Extremes:
        """The extremes of the entries with these indexes. Raises CorruptFile."""
        compared = indexes.data
        if self._order is not None:
            compared = bytearray(indexes.count * 8)
            try:
                kernels.orc_gather(self._ranks, indexes.data, indexes.count, compared)
            except kernels.RunError as error:
                raise self._leaf.fault(str(error)) from None
        first, last = _integers(compared, indexes.count)
        if self._order is not None:
            first, last = self._order[first], self._order[last]
        if first < 0 or last * 8 >= len(self._lengths):
            raise self._leaf.fault("an index beyond the dictionary's entries")
        return self._entry(first), self._entry(last)

    def _read(self, index: int) -> bytes:
        first, offset = next(part for part in reversed(self._parts) if part[0] <= index)
        offset += kernels.orc_sum(memoryview(self._lengths)[first * 8 :], index - first)
        return bytes(self._data[offset : offset + _integer(self._lengths, index, 8)])


_READINGS: Final = 4
"""Readings of a timestamp in a zone with one offset, which readers read alike."""


class Measuring:
    """Measures the values of a column's row groups, one after the other.

    Args:
        leaf: the column's values.
        claims: what is stated about the column's geometries, if they are measured.
    """

    def __init__(self, leaf: LeafReader, claims: Claims | None = None) -> None:
        self._claims = claims
        self.entries = None if leaf.entries is None else Entries(leaf)
        self._leaf = leaf
        self._extremes = self._comparison()
        self.differ = False
        """Whether timestamps weren't compared that may be extremes, because readers read them differently."""
        self._begin()

    def _begin(self) -> None:
        self._values = self._nans = 0
        self._low: Any = None
        self._high: Any = None
        self._compared = True
        self._shapes = None if self._claims is None else self._claims.shapes()

    def take(self, values: Values) -> None:
        """Measure the next values."""
        self._values += values.count
        if not values.count:
            return
        if self.entries is not None and not self.entries.fits:
            self._compared = False
        elif self._shapes is not None:
            ends = list(accumulate(memoryview(values.lengths or b"").cast("q")[: values.count], initial=0))
            for start, end in pairwise(ends):
                self._shapes.add(b"" if values.cut else bytes(values.data[start:end]))
        elif self._extremes is not None:
            low, high = self._extremes(values)
            if low is not None and (self._low is None or low < self._low):
                self._low = low
            if high is not None and (self._high is None or high > self._high):
                self._high = high

    def finish(self, rows: int) -> MeasuredColumn:
        """The result for the values since the last call. `rows`: their number, with nulls."""
        orc, nulls = self._leaf.orc, rows - self._values
        low, high = (None if end is None else _key_of(end, orc) for end in (self._low, self._high))
        measured = MeasuredColumn(orc.id, rows, nulls, self._nans, low, high, self._compared, self._shapes)
        self._begin()
        return measured

    def _comparison(self) -> Callable[[Values], Extremes] | None:
        """The function that returns the extremes of values; None for a kind whose statistics have no bounds."""
        kind, zone = self._leaf.orc.kind, self._leaf.zone
        if self.entries is not None:
            return self.entries.extremes
        if kind in {*REPEATED, *BINARIES}:
            return None
        if kind in STRINGS:
            return _texts
        if kind in FLOATS:
            return self._floats
        if zone is not None:
            return partial(self._moments, zone)
        return lambda values: _integers(values.data, values.count, _BYTES.get(kind, 8))

    def _floats(self, values: Values) -> Extremes:
        width = FLOATS[self._leaf.orc.kind]
        bounds = kernels.Bounds(kernels.FLOATING, width)
        bounds.fixed(values.data, values.count)
        self._nans += bounds.nans
        low, high = bounds.least_and_greatest
        form = "<f" if width == 4 else "<d"
        return _NOTHING if low is None or high is None else (*unpack(form, low), *unpack(form, high))

    def _moments(self, zone: kernels.WriterZone, values: Values) -> Extremes:
        nanos = values.nanos or memoryview(b"")
        extremes = kernels.orc_moment_extremes(values.data, nanos, values.count, zone)
        if zone.readings > _READINGS and not self.differ:
            compared = tuple(_integer(values.data, at, 8) for at in extremes)
            self.differ = extremes[0] < 0 or compared != _integers(values.data, values.count)
        if extremes[0] < 0:
            return _NOTHING
        low, high = (zone.wall(_integer(values.data, at, 8), _integer(nanos, at, 8)) for at in extremes)
        return low, high


def _integer(data: bytes | bytearray | memoryview, at: int, width: int) -> int:
    return int.from_bytes(data[at * width : (at + 1) * width], "little", signed=True)


def _integers(data: bytes | bytearray | memoryview, count: int, width: int = 8) -> tuple[int, int]:
    """The extremes of one or more integers."""
    bounds = kernels.Bounds(kernels.WIDE if width == DECIMAL_BYTES else kernels.SIGNED, width)
    bounds.fixed(data, count)
    low, high = (int.from_bytes(end or b"", "little", signed=True) for end in bounds.least_and_greatest)
    return low, high


def _texts(values: Values) -> Extremes:
    if values.cut:
        start = bytes(values.data)
        return start, start
    bounds = kernels.Bounds(kernels.BYTEWISE, 0)
    bounds.sized(values.data, 0, values.lengths or b"", values.count)
    return bounds.least_and_greatest


_COMPRESSED: Final = 4
"""How far text is usually compressed."""


def memory(streams: StripeFooter, orc: OrcType) -> int:
    """The usual bytes of memory for the entries of a column's dictionary; the limit bounds them."""
    stream = streams.find("DICTIONARY_DATA", orc.id)
    return 0 if stream is None else min(_COMPRESSED * stream.length, orc_limits.COMPARED_ENTRIES_MAX_BYTES)
