"""Decodes a column's values with their rows, from the start of any row group whose positions the row index has.

    rows of the stripe -> PRESENT and LENGTH of the column's ancestors -> the column's own PRESENT -> values

Values have the form of `finding.WantedValues.forms`: integers, floating point unchanged, strings without the blanks
that a CHAR ends with, decimals as 16 bytes (little-endian, in the column's scale), timestamps as 12 (milliseconds on
the writer's wall clock and the nanoseconds above them). Strings longer than any value to find are skipped. A batch,
or 4 MiB of strings, is in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels, limits
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.column_reader import DIRECT, FLOATS, INTEGERS, REPEATED, TIMESTAMPS, VERSIONS, Streams
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import SHORT_DIGITS, OrcType
from bloomcli.formats.orc.streams import Bits, ByteStream, Position, Runs, byte_runs, integers
from bloomcli.storage.base import Source
from bloomcli.words import counted

MOMENT_BYTES: Final = 12
DECIMAL_BYTES: Final = 16
_TOGETHER_BYTES: Final = 4 << 20
"""Maximum bytes of strings that are decoded together."""

Decode = Callable[[int], Iterator[pa.Array]]
"""Yields the next values, at most a batch, in parts."""


class SeekableStream(Protocol):
    """A stream that can be read from a position."""

    def seek(self, position: Position) -> None:
        """Go to a position. Raises CorruptFile."""

    def read_until(self, chunk: int | None) -> None:
        """As `ByteStream.read_until`."""


class ValueBatch(NamedTuple):
    """Non-null values of a column, in order. A string longer than any value to find is null."""

    values: pa.Array
    rows: pa.Int64Array
    """The row of each value, counted from the first requested row."""


class ValueReader:
    """Reads one column of one stripe, from the first row or from a position that its `parts` seek.

    Args:
        source, footer: the file.
        stripe: the stripe's footer.
        orc: the column.
        longest: bytes of the longest string to find.
        stop: ends reading.
    """

    def __init__(
        self, source: Source, footer: Footer, stripe: StripeFooter, orc: OrcType, longest: int, stop: Stop
    ) -> None:
        self._footer, self._stripe, self._orc, self._stop = footer, stripe.stripe, orc, stop
        types = footer.ancestors(orc)
        opened = [Streams(source, footer, stripe, t, stop) for t in (*types, orc)]
        self._levels = [_Level(streams, t) for streams, t in zip(opened, types, strict=False)]
        self._presence = _presence(opened[-1])
        self.entries: int | None = None
        """The number of the dictionary's entries; None without a dictionary."""
        self._streams = opened[-1]
        self._longest = longest
        decode, parts = self._leaf(opened[-1], orc)
        self._decode: Decode = decode
        own = parts if self._presence is None else {"PRESENT": self._presence, **parts}
        self.parts: list[Mapping[str, SeekableStream]] = [*(level.parts for level in self._levels), own]
        """For each type from the root down to the column, its streams with positions, by kind."""
        self._seen = 0

    def dictionary(self) -> Iterator[pa.Array]:
        """The entries of the dictionary, in parts. Raises CorruptFile."""
        entries = self.entries or 0
        if entries > orc_limits.DICTIONARY_MAX:
            raise self._streams.open("DATA").fault(
                f"a dictionary of {counted(entries, 'entry')}, more than the {orc_limits.DICTIONARY_MAX}"
                f" that are read"
            )
        decode = _strings(self._streams.open("DICTIONARY_DATA"), self._streams.lengths(), self._orc, self._longest)
        while entries:
            count = min(entries, limits.ROWS_PER_BATCH)
            self._stop.check()
            yield from decode(count)
            entries -= count

    def fault(self, reason: str) -> CorruptFile:
        """An error about the column's values."""
        return self._streams.open("DATA").fault(reason)

    def take(self, rows: int) -> Iterator[ValueBatch]:
        """The values of the next rows. Consume all of them before the next call. With a dictionary, values are
        positions of its entries, int64s. Raises CorruptFile, UnsupportedError, Stopped."""
        chunks = _counted(rows)
        for level in self._levels:
            chunks = level.children(self._bounded(chunks))
        for chunk in self._bounded(chunks):
            if self._presence is not None:
                chunk = chunk.filter(self._presence.take(len(chunk)))
            at = 0
            for values in self._decode(len(chunk)):
                yield ValueBatch(values, chunk[at : at + len(values)])
                at += len(values)

    def _bounded(self, chunks: Iterator[pa.Int64Array]) -> Iterator[pa.Int64Array]:
        for chunk in chunks:
            self._stop.check()
            self._seen += len(chunk)
            if self._seen > orc_limits.VALUES_MAX * len(self.parts):
                raise UnsupportedError(
                    f"a stripe with more than {orc_limits.VALUES_MAX} values of a column",
                    path=self._footer.path,
                    offset=self._stripe.offset,
                    field=self._stripe.field,
                    hint="write the file with smaller stripes",
                )
            yield chunk

    def _leaf(self, streams: Streams, orc: OrcType) -> tuple[Decode, dict[str, SeekableStream]]:
        if orc.kind == "BOOLEAN":
            bits = Bits(streams.open("DATA"))
            return lambda count: iter((bits.take(count).cast(pa.uint8()),)), {"DATA": bits}
        encoding, entries = streams.encoding()
        version = VERSIONS[encoding]
        data = streams.open("DATA")
        if orc.kind in INTEGERS:
            numbers = integers(data, version, signed=True)
            return _integers(numbers, data, INTEGERS[orc.kind]), {"DATA": numbers}
        if orc.kind == "BYTE":
            small = byte_runs(data)
            return lambda count: iter((_array(pa.int8(), small.take(count), count).cast(pa.int32()),)), {
                "DATA": small
            }
        if orc.kind in FLOATS:
            return _floats(data, FLOATS[orc.kind]), {"DATA": data}
        if orc.kind in TIMESTAMPS:
            seconds = integers(data, version, signed=True)
            nanos = integers(second := streams.open("SECONDARY"), version, signed=False)
            return _moments(seconds, nanos, second, streams.zone()), {"DATA": seconds, "SECONDARY": nanos}
        if orc.kind == "DECIMAL":
            scales = integers(streams.open("SECONDARY"), version, signed=True)
            return _decimals(data, scales, orc), {"DATA": data, "SECONDARY": scales}
        if encoding in DIRECT:
            lengths = streams.lengths()
            return _strings(data, lengths, orc, self._longest), {"DATA": data, "LENGTH": lengths}
        self.entries = entries
        indexes = integers(data, version, signed=False)
        return lambda count: iter((_array(pa.int64(), indexes.take(count), count),)), {"DATA": indexes}


class _Level:
    """Maps the children of a struct, list or map above the column to rows."""

    def __init__(self, streams: Streams, orc: OrcType) -> None:
        self._presence = _presence(streams)
        self._lengths = streams.lengths() if orc.kind in REPEATED else None
        self._fault = streams.open("LENGTH").fault
        self.parts: dict[str, SeekableStream] = {}
        if self._presence is not None:
            self.parts["PRESENT"] = self._presence
        if self._lengths is not None:
            self.parts["LENGTH"] = self._lengths

    def children(self, chunks: Iterator[pa.Int64Array]) -> Iterator[pa.Int64Array]:
        """The rows of the children of each chunk's rows, at most a batch at a time."""
        for chunk in chunks:
            there = chunk if self._presence is None else chunk.filter(self._presence.take(len(chunk)))
            if self._lengths is None:
                yield there
            elif len(there):
                yield from self._elements(there, self._lengths)

    def _elements(self, rows: pa.Int64Array, lengths: Runs) -> Iterator[pa.Int64Array]:
        sizes = lengths.take(len(rows))
        try:
            total = kernels.orc_sum(sizes, len(rows))
        except kernels.RunError as error:
            raise self._fault(str(error)) from None
        ends = pc.cumulative_sum(_array(pa.int64(), sizes, len(rows)))
        if total <= limits.ROWS_PER_BATCH:
            yield rows.take(_parents(pa.concat_arrays([pa.array([0], pa.int64()), ends]), total))
            return
        bounds = [0, *ends.to_pylist()]
        for start in range(0, total, limits.ROWS_PER_BATCH):
            count = min(limits.ROWS_PER_BATCH, total - start)
            first, last = bisect_right(bounds, start) - 1, bisect_left(bounds, start + count)
            clipped = [min(max(bound - start, 0), count) for bound in bounds[first : last + 1]]
            yield rows[first:last].take(_parents(pa.array(clipped, pa.int64()), count))


def _parents(bounds: pa.Int64Array, total: int) -> pa.Int64Array:
    return pc.list_parent_indices(pa.LargeListArray.from_arrays(bounds, pa.nulls(total)))


def _counted(rows: int) -> Iterator[pa.Int64Array]:
    """The numbers of rows, in batches."""
    batch = pa.array(range(min(rows, limits.ROWS_PER_BATCH)), pa.int64())
    for first in range(0, rows, limits.ROWS_PER_BATCH):
        yield pc.add(batch[: rows - first], first)


def _presence(streams: Streams) -> Bits | None:
    return Bits(streams.open("PRESENT")) if streams.presence() is not None else None


def _array(kind: pa.DataType, values: Any, count: int) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(bytes(values))])


def _integers(runs: Runs, data: ByteStream, width: int) -> Decode:
    def decode(count: int) -> Iterator[pa.Array]:
        values = runs.take(count)
        if not kernels.orc_fit(values, count, width):
            raise data.fault(f"an integer that its column's {counted(width, 'byte')} can't hold")
        yield _array(pa.int64(), values, count).cast(pa.int64() if width == 8 else pa.int32())

    return decode


def _bytes(runs: Runs) -> Decode:
    def decode(count: int) -> Iterator[pa.Array]:
        yield _array(pa.int8(), runs.take(count), count).cast(pa.int32())

    return decode


def _floats(data: ByteStream, width: int) -> Decode:
    kind = pa.float32() if width == 4 else pa.float64()

    def decode(count: int) -> Iterator[pa.Array]:
        yield _array(kind, data.take(count * width) if count else b"", count)

    return decode


def _moments(seconds: Runs, nanos: Runs, stream: ByteStream, zone: kernels.WriterZone) -> Decode:
    def decode(count: int) -> Iterator[pa.Array]:
        out = bytearray(count * MOMENT_BYTES)
        try:
            kernels.orc_moments(seconds.take(count), nanos.take(count), count, zone, out)
        except kernels.RunError as error:
            raise stream.fault(str(error)) from None
        yield _array(pa.binary(MOMENT_BYTES), out, count).cast(pa.large_binary())

    return decode


def _decimals(data: ByteStream, scales: Runs, orc: OrcType) -> Decode:
    most = SHORT_DIGITS if orc.precision <= SHORT_DIGITS else orc_limits.DECIMAL_DIGITS

    def decode(count: int) -> Iterator[pa.Array]:
        taken = scales.take(count)
        out = bytearray(count * DECIMAL_BYTES)
        done = 0
        try:
            while True:
                done, data.at = kernels.orc_decimals(data.data, data.at, taken, done, count, orc.scale, most, out)
                if done == count:
                    break
                data.more()
        except kernels.RunError as error:
            raise data.fault(str(error)) from None
        yield _array(pa.binary(DECIMAL_BYTES), out, count).cast(pa.large_binary())

    return decode


def _strings(data: ByteStream, runs: Runs, orc: OrcType, longest: int) -> Decode:
    total = 0

    def decode(count: int) -> Iterator[pa.Array]:
        nonlocal total
        lengths = runs.take(count)
        try:
            size = kernels.orc_sum(lengths, count)
        except kernels.RunError as error:
            raise data.fault(str(error)) from None
        total += size
        data.check_size(total)  # before that much is read
        ends = pc.cumulative_sum(_array(pa.int64(), lengths, count))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        if size <= _TOGETHER_BYTES:
            yield _trimmed(_taken(data, offsets, size), orc)
            return
        bounds = offsets.to_pylist()
        first = 0
        while first < count:
            last = max(bisect_right(bounds, bounds[first] + _TOGETHER_BYTES) - 1, first + 1)
            size = bounds[last] - bounds[first]
            if size > _TOGETHER_BYTES and size > longest:
                for _ in data.pieces(size):
                    pass
                yield pa.nulls(1, pa.large_binary())
            else:
                yield _trimmed(_taken(data, pc.subtract(offsets[first : last + 1], bounds[first]), size), orc)
            first = last

    return decode


def _taken(data: ByteStream, offsets: pa.Int64Array, size: int) -> pa.Array:
    buffer = pa.py_buffer(bytes(data.take(size)) if size else b"")
    start = offsets.offset
    return pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, offsets.buffers()[1], buffer], offset=start
    )


def _trimmed(values: pa.Array, orc: OrcType) -> pa.Array:
    """Values of a CHAR without the blanks at their ends, which have no meaning."""
    if orc.kind != "CHAR":
        return values
    return pc.ascii_rtrim(values.view(pa.large_string()), " ").view(pa.large_binary())
