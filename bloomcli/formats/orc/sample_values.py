"""Texts of the few hashed values that reports show: reads a column again while its hashes are read."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.orc.column_reader import DIRECT, FLOATS, REPEATED, TIMESTAMPS, VERSIONS, Streams
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import ByteStream, byte_runs, integers
from bloomcli.storage.base import Source
from bloomcli.values import calendar
from bloomcli.words import counted

_MOST_SHOWN: Final = 1024
"""Maximum bytes of a string that are shown."""
_EXACT: Final = Context(prec=200)
"""Enough digits for any decimal that was hashed."""

Values = Callable[[int], list[Any]]
"""Returns the requested number of next values."""


class ShownValues:
    """Reads the texts of a column's values in a stripe, batch by batch. Slow."""

    def __init__(self, source: Source, footer: Footer, stripe: StripeFooter, orc: OrcType, stop: Stop) -> None:
        self._orc = orc
        self._values = _values(Streams(source, footer, stripe, orc, stop), orc)

    def texts(self, count: int) -> Callable[[int], str]:
        """Read the next `count` values. Returns a function that gives the text of a value by its number."""
        values = self._values(count)
        return lambda index: text_of(values[index], self._orc)


def text_of(value: Any, orc: OrcType) -> str:
    """A value's text. Bytes that aren't UTF-8 are escaped."""
    if orc.kind == "DATE":
        return calendar.format_date(value)
    if orc.kind in TIMESTAMPS:
        return calendar.format_timestamp(value).replace("T", " ") + ("Z" if orc.kind == "TIMESTAMP_INSTANT" else "")
    if isinstance(value, partial):
        value = value()
    if isinstance(value, _Bytes):
        text = str(value.start) if orc.kind == "BINARY" else value.start.decode("utf-8", "backslashreplace")
        return text if len(value.start) == value.size else f"{text}... ({counted(value.size, 'byte')})"
    if orc.kind == "DECIMAL":
        return f"{value:.{orc.scale}f}"
    return str(value)


class _Bytes(NamedTuple):
    """A string or binary: its first bytes, and its size."""

    start: bytes
    size: int


def _bytes(data: ByteStream, size: int) -> _Bytes:
    """Read the next value. Only the bytes that are shown take memory."""
    start = b""
    for piece in data.pieces(size):
        if len(start) < _MOST_SHOWN:
            start += piece[: _MOST_SHOWN - len(start)]
    return _Bytes(start, size)


def _values(streams: Streams, orc: OrcType) -> Values:
    encoding, _ = streams.encoding()
    if orc.kind in REPEATED:
        lengths = streams.lengths()
        return lambda count: lengths.take(count).cast("q").tolist()
    data = streams.open("DATA")
    if orc.kind in TIMESTAMPS:
        seconds = integers(data, VERSIONS[encoding], signed=True)
        nanos = integers(streams.open("SECONDARY"), VERSIONS[encoding], signed=False)
        wall = streams.zone().wall
        return lambda count: list(map(wall, seconds.take(count).cast("q"), nanos.take(count).cast("q")))
    if orc.kind == "BYTE":
        runs = byte_runs(data)
        return lambda count: runs.take(count).cast("b").tolist()
    if orc.kind == "FLOAT":
        return lambda count: memoryview(bytes(data.take(count * FLOATS["FLOAT"]))).cast("f").tolist()
    if orc.kind == "DOUBLE":
        return lambda count: memoryview(bytes(data.take(count * FLOATS["DOUBLE"]))).cast("d").tolist()
    if orc.kind == "DECIMAL":
        scales = integers(streams.open("SECONDARY"), VERSIONS[encoding], signed=True)
        return lambda count: [
            Decimal(data.take_varint()).scaleb(-scale, _EXACT) for scale in scales.take(count).cast("q").tolist()
        ]
    if orc.kind not in {"STRING", "VARCHAR", "CHAR", "BINARY"}:
        numbers = integers(data, VERSIONS[encoding], signed=True)
        return lambda count: numbers.take(count).cast("q").tolist()
    sizes = streams.lengths()
    if encoding in DIRECT:
        return lambda count: [_bytes(data, size) for size in sizes.take(count).cast("q").tolist()]
    indexes = integers(data, VERSIONS[encoding], signed=False)
    return lambda count: [partial(_entry, streams, index) for index in indexes.take(count).cast("q").tolist()]


def _entry(streams: Streams, index: int) -> _Bytes:
    """Read the dictionary up to one entry: all entries may not fit in memory."""
    sizes, data = streams.lengths(), streams.open("DICTIONARY_DATA")
    while index:
        count = min(index, limits.ROWS_PER_BATCH)
        for _ in data.pieces(kernels.orc_sum(sizes.take(count), count)):
            pass
        index -= count
    (size,) = sizes.take(1).cast("q")
    return _bytes(data, size)
