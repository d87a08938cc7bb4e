"""Reads a stripe's data streams: decompresses them window by window, and decodes runs of numbers and bits.

    bytes on disk -> chunks -> ByteStream -> Runs (integers, bytes) -> Bits

Only a window of the file, one or two chunks, and the requested values are in memory. The file's numbers determine how
much is requested, so memory grows only with bytes that are actually read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.compression import HEADER, Unpacker
from bloomcli.formats.orc.footer import Footer, Stream, Stripe

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_CHUNK: Final = 256 << 10
"""Bytes loaded at a time from uncompressed streams: they fit in the processor's cache."""

_MOST_OF_A_RUN: Final = {8: 512, 1: 130}
"""Values of the longest run, by their width. That many values may be decoded beyond the requested ones, plus one."""

_LOWEST_FIRST: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""For each byte, the byte with its bits reversed, which is Arrow's order."""
_DIGITS: Final = bytes.maketrans(b"01", b"\0\1")

Decode = Callable[[bytes, int, bytearray, int, int, kernels.RunStarts, int, int], tuple[int, int]]
"""(data, position, out, values in out, values requested, starts of runs, bytes before the data, values before those
in out) -> (values in out now, position after them)."""

_CHUNKS_KEPT: Final = 8192
"""The last chunks whose starts are kept: more than hold the values that a writer buffers, if each has one byte."""


class Position(NamedTuple):
    """A place in a stream, as in a row index."""

    chunk: int
    """Bytes from the stream's start to the compressed chunk; in uncompressed files to the place itself."""
    skip: int = 0
    """Bytes of the decompressed chunk before the place."""
    values: int = 0
    """Values of the run that starts there before the place."""
    bits: int = 0
    """Bits of the next byte before the place."""


class ByteStream:
    """The bytes of one stream; the loaded ones are ``data[at:]``.

    A missing stream is empty: writers omit empty streams.
    """

    def __init__(self, footer: Footer, stripe: Stripe, stream: Stream | None, stop: Stop) -> None:
        self._source = footer.source
        self._stop = stop
        self._codec = footer.codec
        self._unpacker = Unpacker(footer.codec)
        self._ahead = footer.source.read_ahead_bytes
        self._field = stripe.field if stream is None else f"{stripe.field}.streams[{stream.position}]"
        self._start = self._next = stripe.offset if stream is None else stream.offset
        self._end = self._start if stream is None else stream.offset + stream.length
        self._until = self._end
        self._window = b""
        self._window_at = 0
        self._unpacked = 0
        self._chunks: deque[tuple[int, int, int]] = deque(maxlen=_CHUNKS_KEPT)
        """Of each compressed chunk: the bytes before it on disk, those before it decompressed, and its decompressed
        bytes."""
        self.data = b""
        self.at = 0

    def fault(self, reason: str) -> CorruptFile:
        """An error about this stream's bytes."""
        return CorruptFile(
            reason,
            path=self._source.path,
            offset=self._start,
            field=self._field,
            hint="the column's data is damaged; get the file from its source again",
        )

    def seek(self, position: Position) -> None:
        """Go to a position of a row index. Raises CorruptFile if it is beyond the stream's end."""
        if not 0 <= position.chunk <= self._end - self._start:
            raise self.fault("the row index has a position behind the stream's end")
        self._next = self._start + position.chunk
        self.data, self.at = b"", 0
        if position.skip:
            for _ in self.pieces(position.skip):
                pass

    @property
    def before(self) -> int:
        """Decompressed bytes before `data`, in a stream that is read from its start."""
        return self._unpacked - len(self.data)

    def offset_of(self, position: Position) -> int | None:
        """Decompressed bytes before a position close to the reader's; None if no chunk there has it."""
        if self._codec.name == "NONE":
            return position.chunk
        if (position.chunk, position.skip) == (self._next - self._start, 0):
            return self._unpacked
        chunk = next((c for c in reversed(self._chunks) if c[0] == position.chunk), None)
        return None if chunk is None or position.skip > chunk[2] else chunk[1] + position.skip

    def lands(self, position: Position) -> bool:
        """Whether a reader that goes to a position reads the bytes that come next here. For streams that are read
        from their start, as those of `Runs` and `Bits`."""
        return self.offset_of(position) == self.before + self.at

    def read_until(self, chunk: int | None) -> None:
        """Read ahead at most to the chunk at this distance from the start (to the stream's end if None). Bytes after
        it are read on demand."""
        until = self._end if chunk is None else self._start + chunk
        self._until = min(until, self._end)

    def more(self) -> None:
        """Load at least one more byte. Raises CorruptFile at the stream's end."""
        rest = self.data[self.at :]
        self.data, self.at = rest + self._some(), 0

    def take(self, size: int) -> bytes | memoryview:
        """Return exactly `size` bytes, at most those of a batch of numbers, and advance past them. Raises as
        `pieces`."""
        if len(self.data) - self.at >= size:
            self.at += size
            return memoryview(self.data)[self.at - size : self.at]
        return b"".join(self.pieces(size))

    def pieces(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes as loaded, and advance past them. Raises CorruptFile at the end."""
        while True:
            part = memoryview(self.data)[self.at : self.at + size]
            self.at += len(part)
            size -= len(part)
            yield part
            if not size:
                return
            self.data, self.at = self._some(), 0

    def check_size(self, size: int) -> None:
        """Raise UnsupportedError if `size` is more than the bytes of a stream that are read."""
        if size > orc_limits.DATA_STREAM_MAX_BYTES:
            raise UnsupportedError(
                f"a stream of more than {orc_limits.DATA_STREAM_MAX_BYTES} bytes",
                path=self._source.path,
                offset=self._start,
                field=self._field,
                hint="write the file with smaller stripes",
            )

    def _some(self) -> bytes:
        """The next chunk that isn't empty."""
        while (chunk := self._chunk()) is not None:
            self._stop.check()
            self._unpacked += len(chunk)
            self.check_size(self._unpacked)
            if chunk:
                return chunk
        raise self.fault("the stream ends before the stripe's last value")

    def _chunk(self) -> bytes | None:
        """The next chunk, decompressed; None at the end."""
        left = self._end - self._next
        if not left:
            return None
        if self._codec.name == "NONE":
            return bytes(self._read(min(left, _PLAIN_CHUNK)))
        at = self._next
        length, original = self._codec.header(self._read(min(HEADER, left)), left, at, self._field)
        chunk = self._read(length)
        data = bytes(chunk) if original else self._unpacker.block(chunk, at, self._field)
        self._chunks.append((at - self._start, self._unpacked, len(data)))
        return data

    def _read(self, size: int) -> memoryview:
        """The next bytes on disk. The caller ensures that they lie within the stream."""
        skip = self._next - self._window_at
        if skip < 0 or len(self._window) - skip < size:
            self._window_at, skip = self._next, 0
            ahead = min(self._ahead, self._until - self._next)
            self._window = self._source.read_at(self._next, min(max(size, ahead), self._end - self._next))
        self._next += size
        return memoryview(self._window)[skip : skip + size]


class Runs:
    """Decodes run-length encoded values, as many at a time as requested."""

    def __init__(self, stream: ByteStream, decode: Decode, width: int) -> None:
        self._stream = stream
        self._decode = decode
        self._width = width
        self._out = bytearray()
        self._first = 0
        self._have = 0
        self._starts = kernels.RunStarts()
        self.values_read = 0
        """Values that were taken."""

    def take(self, count: int) -> memoryview:
        """The next `count` values, valid until the next call. Raises CorruptFile."""
        out, width, stream = self._out, self._width, self._stream
        left = self._have - self._first  # values of the last run that weren't taken
        room = (max(count, left) + _MOST_OF_A_RUN[width]) * width
        if len(out) < room:
            self._out = out = out.ljust(room, b"\0")
        out[: left * width] = out[self._first * width : self._have * width]
        have = left
        try:
            while True:
                before, values = stream.before, self.values_read
                have, stream.at = self._decode(stream.data, stream.at, out, have, count, self._starts, before, values)
                if have >= count:
                    break
                stream.more()
        except kernels.RunError as error:
            raise stream.fault(str(error)) from None
        self._first, self._have = count, have
        self.values_read += count
        return memoryview(out)[: count * width]

    def value_at(self, position: Position) -> int | None:
        """The number of values before a position close to the reader's; None if no run starts there."""
        if self._first == self._have and not position.values and self._stream.lands(position):
            return self.values_read
        offset = self._stream.offset_of(position)
        start = -1 if offset is None else self._starts.value_at(offset)
        return None if start < 0 else start + position.values

    def lands(self, position: Position) -> bool:
        """Whether a reader that goes to a position reads the values that come next here."""
        return self.value_at(position) == self.values_read

    def seek(self, position: Position) -> None:
        """Go to a position. Raises CorruptFile."""
        self._stream.seek(position)
        self._first = self._have = 0
        if not 0 <= position.values <= _MOST_OF_A_RUN[self._width]:
            raise self._stream.fault("the row index has a position within a run that is longer than any")
        if position.values:
            self.take(position.values)

    def read_until(self, chunk: int | None) -> None:
        """Read ahead at most to this chunk; see `ByteStream.read_until`."""
        self._stream.read_until(chunk)


def integers(stream: ByteStream, version: int, *, signed: bool) -> Runs:
    """Read a stream of integers as int64s; `version` 1 or 2 of the encoding."""
    return Runs(stream, lambda data, at, *rest: kernels.orc_runs(data, at, version, signed, *rest), 8)


def byte_runs(stream: ByteStream) -> Runs:
    """Read a stream of bytes in runs."""
    return Runs(stream, kernels.orc_byte_runs, 1)


@dataclass(frozen=True, slots=True)
class Bitmap:
    """Some bits of a stream."""

    data: bytes
    """The bytes that have them, the highest bit of a byte first."""
    first: int
    """The bits of the first byte before them."""
    count: int

    def ones(self) -> int:
        """The number of bits that are set."""
        bits = int.from_bytes(self.data, "big") >> (8 * len(self.data) - self.first - self.count)
        return (bits & ((1 << self.count) - 1)).bit_count()

    def arrow(self) -> pa.BooleanArray:
        """The bits as Arrow's booleans."""
        import pyarrow as pa

        buffer = pa.py_buffer(self.data.translate(_LOWEST_FIRST))
        return pa.Array.from_buffers(pa.bool_(), self.count, [None, buffer], offset=self.first)

    def flags(self) -> bytes:
        """A byte for each bit, 0 or 1."""
        bits = f"{int.from_bytes(self.data, 'big'):0{8 * len(self.data)}b}"
        return bits[self.first : self.first + self.count].encode().translate(_DIGITS)


class Bits:
    """Reads a stream of bits: PRESENT has a 1 for each row that has a value."""

    def __init__(self, stream: ByteStream) -> None:
        self._bytes = byte_runs(stream)
        self._last = b""
        self._left = 0
        """Bits of the last byte that aren't consumed yet."""
        self._bits_read = 0

    def take(self, count: int) -> Bitmap:
        """The next `count` bits, a batch at most. Raises CorruptFile."""
        first = 8 - self._left if self._left else 0
        before = self._last if self._left else b""
        data = before + bytes(self._bytes.take(max(-(-(count - self._left) // 8), 0)))
        self._last, self._left = data[-1:], 8 * len(data) - first - count
        self._bits_read += count
        return Bitmap(data, first, count)

    def lands(self, position: Position) -> bool:
        """Whether a reader that goes to a position reads the values that come next here."""
        whole = self._bytes.value_at(position)
        return whole is not None and 8 * whole + position.bits == self._bits_read

    def seek(self, position: Position) -> None:
        """Go to a position. Raises CorruptFile."""
        self._bytes.seek(position)
        self._left = 0
        if position.bits:
            self.take(position.bits)

    def read_until(self, chunk: int | None) -> None:
        """Read ahead at most to this chunk; see `ByteStream.read_until`."""
        self._bytes.read_until(chunk)
