"""Decompresses pages into at most as many bytes as the header gives: small pages at once, large ones in windows.

Each codec uses the library that loads fastest, because importing pyarrow takes longer than building a filter for a
small file: zlib for GZIP, cramjam for SNAPPY and LZ4, zstandard for ZSTD, and pyarrow for BROTLI. All of them release
the GIL. pyarrow also decompresses what the others can't do exactly, such as several ZSTD frames.

A page may have 2 GiB, or 32 KiB of a file may claim it. Large pages are therefore never loaded as a whole: a reader
loads a window, consumes what it can, and loads the next one. If several parts of a value section are read together
(lengths, and the bytes that they describe), the section is opened several times.
"""

from __future__ import annotations

import io
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.spec import Location
from bloomcli.storage.base import Source
from bloomcli.words import are, counted

_GZIP_WINDOW: Final = 31
"""zlib's 15 bits, plus 16 for the gzip format."""

_WINDOW: Final = 1 << 20
"""Bytes of a large page that are loaded at a time."""

_OF_THREAD: Final = threading.local()

Buffer = bytes | bytearray | memoryview


class CodecError(ValueError):
    """The bytes aren't valid for the codec, or decompress to another size than the header gives."""


def supported(codec: str) -> bool:
    """Whether `decompress` supports the codec of this name."""
    return codec in _CODECS


def streams(codec: str) -> bool:
    """Whether `windows` needs only the memory of a window and of the codec's history."""
    return codec == "UNCOMPRESSED" or codec in _STREAMS


def decompress(codec: str, packed: memoryview, size: int) -> Buffer:
    """Decompress to exactly `size` bytes. Raises CodecError."""
    if size == 0:
        return b""
    try:
        found = _CODECS[codec](packed, size)
    except CodecError:
        raise
    except Exception as error:  # noqa: BLE001  each library has its own errors, and some aren't documented
        raise CodecError(str(error) or type(error).__name__) from None
    if len(found) != size:
        raise CodecError(f"{counted(len(found), 'byte')} came out, {size} were announced")
    return found


def windows(codec: str, raw: Iterator[bytes], packed: int, size: int, window: int) -> Iterator[Buffer]:
    """Decompress in parts of `window` bytes, from parts of the compressed bytes; any part may be the last.

    The caller counts the bytes. Raises CodecError, and UnsupportedError if a codec needs more bytes at once than
    `parquet_limits.PAGE_WHOLE_MAX_BYTES`.
    """
    if codec == "UNCOMPRESSED":
        yield from raw
        return
    opened = _STREAMS.get(codec)
    if opened is None:
        if max(packed, size) > parquet_limits.PAGE_WHOLE_MAX_BYTES:
            raise UnsupportedError(
                f"a page of {counted(size, 'byte')} ({packed} in the file); with {codec} at most"
                f" {parquet_limits.PAGE_WHOLE_MAX_BYTES} are read",
                hint="rewrite the file with smaller pages, or with ZSTD",
            )
        yield decompress(codec, memoryview(b"".join(raw)), size)
        return
    try:
        yield from opened(raw, window)
    except BloomError:
        raise
    except Exception as error:  # noqa: BLE001  as above
        raise CodecError(str(error) or type(error).__name__) from None


class _PartsFile(io.RawIOBase):
    """A file object that reads from an iterator of byte strings."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = b""

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, into: Any) -> int:
        """Read the bytes that are available."""
        if not self._rest:
            self._rest = next(self._parts, b"")
        count = min(len(into), len(self._rest))
        into[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _zstd_windows(raw: Iterator[bytes], window: int) -> Iterator[bytes]:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(
        io.BufferedReader(_PartsFile(raw)), read_across_frames=True
    ) as reader:
        while part := reader.read(window):
            yield part


def _gzip_windows(raw: Iterator[bytes], window: int) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    for part in raw:
        rest = part
        while rest:
            if unpacker.eof:  # another member follows
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
            yield unpacker.decompress(rest, window)
            rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    while not unpacker.eof and (found := unpacker.decompress(b"", window)):
        yield found
    if not unpacker.eof:
        raise CodecError("the stream is cut off")


def _brotli_windows(raw: Iterator[bytes], window: int) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(io.BufferedReader(_PartsFile(raw)), mode="r"), "brotli") as reader:
        while part := reader.read(window):
            yield part


def _snappy(packed: memoryview, size: int) -> Buffer:
    import cramjam

    out = bytearray(size)
    return _filled(out, cramjam.snappy.decompress_raw_into(packed, out))


def _filled(out: bytearray, count: int) -> Buffer:
    return out if count == len(out) else memoryview(out)[:count]


def _lz4_block(packed: memoryview, size: int) -> Buffer:
    import cramjam

    out = bytearray(size)
    return _filled(out, cramjam.lz4.decompress_block_into(packed, out))


def _hadoop_lz4(packed: memoryview, size: int) -> Buffer:
    """Decompress the codec named LZ4: Hadoop's frames (two u32 BE sizes before each raw block), or one raw block."""
    out, position = bytearray(), 0
    while len(packed) - position >= 8:
        want = int.from_bytes(packed[position : position + 4], "big")
        have = int.from_bytes(packed[position + 4 : position + 8], "big")
        position += 8
        if want > size - len(out) or have > len(packed) - position:
            break
        block = packed[position : position + have]
        out += _lz4_block(block, want) if want else b""
        position += have
    if len(out) == size and position == len(packed):
        return out
    del out
    return _lz4_block(packed, size)


def _zstd(packed: memoryview, size: int) -> Buffer:
    import zstandard

    content = zstandard.frame_content_size(packed)
    if content > size:  # -1 if the frame doesn't give its size
        raise CodecError(f"{counted(content, 'byte')} {are(content)} in the frame, {size} were announced")
    decompressor = getattr(_OF_THREAD, "zstd", None)
    if decompressor is None:  # one for each thread: creating it allocates memory
        decompressor = _OF_THREAD.zstd = zstandard.ZstdDecompressor()
    found: bytes = decompressor.decompress(packed, max_output_size=size)
    return found if len(found) == size else _arrow("zstd", packed, size)


def _gzip(packed: memoryview, size: int) -> Buffer:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    found = unpacker.decompress(packed, size)
    return found if len(found) == size else _arrow("gzip", packed, size)


def _brotli(packed: memoryview, size: int) -> Buffer:
    return _arrow("brotli", packed, size)


def _arrow(name: str, packed: memoryview, size: int) -> Buffer:
    import pyarrow as pa

    found: Any = pa.Codec(name).decompress(pa.py_buffer(packed), decompressed_size=size)
    return memoryview(found).cast("B")  # the bytes of Arrow's buffers are signed


_CODECS: Final[dict[str, Callable[[memoryview, int], Buffer]]] = {
    "SNAPPY": _snappy,
    "GZIP": _gzip,
    "BROTLI": _brotli,
    "ZSTD": _zstd,
    "LZ4_RAW": _lz4_block,
    "LZ4": _hadoop_lz4,
}

_STREAMS: Final[dict[str, Callable[[Iterator[bytes], int], Iterator[bytes]]]] = {
    "GZIP": _gzip_windows,
    "BROTLI": _brotli_windows,
    "ZSTD": _zstd_windows,
}


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
    """A page's decompressed bytes, all in memory."""

    def __init__(self, data: Buffer, stop: Stop) -> None:
        self._data = data
        self._stop = stop
        self.size = len(data)

    def open(self, at: int) -> Feed:
        """The bytes from `at` on."""
        return Feed(None, self._stop, self._data, at)

    def whole(self) -> Buffer:
        """All bytes."""
        return self._data


class PageBytes(NamedTuple):
    """The location of a page's compressed bytes, their codec and their decompressed size."""

    source: Source
    offset: int
    packed: int
    codec: str
    size: int


class LargeBody:
    """A page's bytes, decompressed on demand."""

    def __init__(self, packed: PageBytes, location: Location, stop: Stop) -> None:
        """`location`: that of the page, for errors."""
        self._packed = packed
        self._location = location
        self._stop = stop
        self.size = packed.size

    def open(self, at: int) -> Feed:
        """The bytes from `at` on."""
        feed = Feed(self._windows(), self._stop)
        feed.skip_to(at)
        return feed

    def whole(self) -> Buffer:
        """Return all bytes, for encodings without windowed decoding. Raises UnsupportedError above a ceiling."""
        if self.size > parquet_limits.PAGE_WHOLE_MAX_BYTES and streams(self._packed.codec):
            raise self._located(
                UnsupportedError(
                    f"a page of {counted(self.size, 'byte')}; in its encoding at most"
                    f" {parquet_limits.PAGE_WHOLE_MAX_BYTES} are read",
                    hint="rewrite the file with smaller pages",
                )
            )
        out = bytearray()
        for window in self._windows():
            self._stop.check()
            out += window
        return out

    def _located(self, error: UnsupportedError) -> UnsupportedError:
        error.path, error.offset, error.field = self._location.path, self._location.base, self._location.field
        return error

    def _windows(self) -> Iterator[Buffer]:
        packed = self._packed
        came = 0
        try:
            for window in windows(packed.codec, raw_windows(packed), packed.packed, packed.size, _WINDOW):
                came += len(window)
                if came > packed.size:
                    break
                yield window
        except CodecError as error:
            raise self._location.fault(f"the page can't be decompressed ({error})", 0) from None
        except UnsupportedError as error:
            raise self._located(error) from None
        if came != packed.size:
            came_out = f"{counted(came, 'byte')} {'or more ' if came > packed.size else ''}came out"
            raise self._location.fault(
                f"the page can't be decompressed ({came_out}, {packed.size} were announced)", 0
            )


def raw_windows(page: PageBytes) -> Iterator[bytes]:
    """Yield the compressed bytes as stored in the file."""
    for at in range(page.offset, page.offset + page.packed, _WINDOW):
        yield page.source.read_at(at, min(_WINDOW, page.offset + page.packed - at))


AnyBody = Body | LargeBody


def is_large(packed: int, size: int) -> bool:
    """Whether a page is read in windows."""
    return max(packed, size) > parquet_limits.PAGE_AT_ONCE_BYTES
