"""Decompresses pages into at most as many bytes as the header gives: small pages at once, large ones in windows.

cramjam decompresses pages at once: it releases the GIL, and importing pyarrow takes longer than building a filter for
a small file. It writes into a buffer of the announced size, so that a page never takes more memory than that. Usual
ZSTD frames take less memory and time with zstandard.

A page may have 2 GiB, or 32 KiB of a file may claim it. Large pages are therefore never loaded as a whole: a reader
loads a window, consumes what it can, and loads the next one. If several parts of a value section are read together
(lengths, and the bytes that they describe), the section is opened several times.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Final

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.spec import Location
from bloomcli.storage.base import Source
from bloomcli.words import counted

WINDOW: Final = 1 << 20
"""Bytes of a large page that are loaded at a time."""

_OF_THREAD: Final = threading.local()

Buffer = bytes | bytearray | memoryview


class CodecError(ValueError):
    """The bytes aren't valid for the codec, or decompress to another size than the header gives."""


def supported(codec: str) -> bool:
    """Whether pages in the codec of this name can be read."""
    return codec == "UNCOMPRESSED" or codec in _CODECS


def streams(codec: str) -> bool:
    """Whether pages in a codec are decompressed in windows, which takes the memory of a window and of its history."""
    return codec == "UNCOMPRESSED" or codec in _STREAMED


def decompress(codec: str, packed: memoryview, size: int) -> Buffer:
    """Decompress to exactly `size` bytes. Raises CodecError."""
    if size == 0:
        return b""
    try:
        if codec == "ZSTD" and (data := _zstd_frame(packed, size)) is not None:
            return data
        out = bytearray(size)
        count = _decompressor(codec)(packed, out)
    except Exception as error:  # noqa: BLE001  the library's errors aren't documented
        raise CodecError(str(error) or type(error).__name__) from None
    if count != size:
        raise CodecError(f"{counted(count, 'byte')} came out, {size} were announced")
    return out


def _zstd_frame(packed: memoryview, size: int) -> bytes | None:
    """Decompress a frame that states this size, as writers make them; None for others. One call does it, without the
    window that cramjam allocates for each page."""
    import zstandard

    if zstandard.frame_content_size(packed) != size:
        return None
    decompressor = getattr(_OF_THREAD, "zstd", None)
    if decompressor is None:  # one for each thread: creating it allocates memory
        decompressor = _OF_THREAD.zstd = zstandard.ZstdDecompressor()
    data: bytes = decompressor.decompress(packed, max_output_size=size)
    return data


def streamed(source: Source, offset: int, packed: int, codec: str) -> Iterator[Buffer]:
    """Decompress bytes of a file in parts of `WINDOW` bytes; any part may be the last. The caller counts the bytes.
    Raises CodecError."""
    import pyarrow as pa

    from bloomcli.formats.arrays import SourceStream

    stream = SourceStream(source, offset + packed)
    stream.seek(offset)
    file = pa.PythonFile(io.BufferedReader(stream, WINDOW), mode="r")
    try:
        with pa.CompressedInputStream(file, codec.lower()) as reader:
            while part := reader.read(WINDOW):
                yield part
    except BloomError:
        raise
    except Exception as error:  # noqa: BLE001  errors of Arrow, and those that it makes of Python's
        raise CodecError(str(error) or type(error).__name__) from None


def _hadoop_lz4(packed: memoryview, out: bytearray | memoryview) -> int:
    """Decompress the codec named LZ4: Hadoop's frames (two u32 BE sizes before each raw block), or one raw block."""
    block = _decompressor("LZ4_RAW")
    position = filled = 0
    while len(packed) - position >= 8:
        want = int.from_bytes(packed[position : position + 4], "big")
        have = int.from_bytes(packed[position + 4 : position + 8], "big")
        position += 8
        if want > len(out) - filled or have > len(packed) - position:
            break
        if want:
            part = memoryview(out)[filled : filled + want]
            filled += block(packed[position : position + have], part)
        position += have
    if filled == len(out) and position == len(packed):
        return filled
    return block(packed, out)


_CODECS: Final = {
    "SNAPPY": "snappy.decompress_raw_into",
    "GZIP": "gzip.decompress_into",
    "BROTLI": "brotli.decompress_into",
    "ZSTD": "zstd.decompress_into",
    "LZ4_RAW": "lz4.decompress_block_into",
    "LZ4": "",
}
"""cramjam's function for each codec; Hadoop's LZ4 has none."""
_STREAMED: Final = ("GZIP", "BROTLI", "ZSTD")
"""The codecs that Arrow decompresses in windows, under these names."""


_Decompressor = Callable[[memoryview, bytearray | memoryview], int]
"""Decompresses all bytes into a buffer, and returns how many came out."""


@cache
def _decompressor(codec: str) -> _Decompressor:
    import cramjam

    decompressor: _Decompressor = _hadoop_lz4 if codec == "LZ4" else attrgetter(_CODECS[codec])(cramjam)
    return decompressor


class Feed:
    """A stream of bytes: `data` from `position` on is loaded; nothing follows it if `final`."""

    __slots__ = ("_base", "_stop", "_windows", "data", "final", "position")

    def __init__(self, windows: Iterator[Buffer] | None, stop: Stop, data: Buffer = b"", position: int = 0) -> None:
        """`windows` loads more data; if it is None, `data` is the whole body."""
        self._windows = windows
        self._stop = stop
        self._base = 0
        self.data = data
        self.position = position
        self.final = windows is None

    def skip_to(self, at: int) -> None:
        """Advance to a position, counted from the start of the body."""
        while not self.final and at >= self._base + len(self.data):
            self.position = len(self.data)
            self.more()
        self.position = at - self._base

    @property
    def at(self) -> int:
        """The position, counted from the body's start."""
        return self._base + self.position

    @property
    def left(self) -> int:
        """The number of loaded bytes."""
        return len(self.data) - self.position

    def more(self, want: int = 1) -> None:
        """Load at least `want` more bytes, or all remaining ones."""
        parts: list[Buffer] = [memoryview(self.data)[self.position :]] if self.left > 0 else []
        got = 0
        while got < want:
            self._stop.check()
            window = None if self._windows is None else next(self._windows, None)
            if window is None:
                self.final = True
                break
            got += len(window)
            parts.append(window)
        self._base += self.position
        self.position = 0
        self.data = parts[0] if len(parts) == 1 else b"".join(parts)


class Body:
    """A page's decompressed bytes.

    Args:
        data: the bytes, or a function that decompresses them in windows each time they are read.
        size: their number.
        location: the page, for errors.
        stop: ends the reading.
    """

    def __init__(
        self, data: Buffer | Callable[[], Iterator[Buffer]], size: int, location: Location, stop: Stop
    ) -> None:
        self._data, self.size, self._location, self._stop = data, size, location, stop

    def open(self, at: int) -> Feed:
        """The bytes from `at` on."""
        if not callable(self._data):
            return Feed(None, self._stop, self._data, at)
        feed = Feed(self._data(), self._stop)
        feed.skip_to(at)
        return feed

    def whole(self) -> Buffer:
        """Return all bytes, for encodings without windowed decoding. Raises UnsupportedError above a ceiling."""
        if not callable(self._data):
            return self._data
        most = parquet_limits.PAGE_WHOLE_MAX_BYTES
        if self.size > most:
            raise self._location.unsupported(
                f"a page of {counted(self.size, 'byte')}; in its encoding at most {most} are read",
                "rewrite the file with smaller pages",
            )
        out = bytearray()
        for window in self._data():
            self._stop.check()
            out += window
        return out
