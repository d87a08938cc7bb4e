"""A page's decompressed bytes: all at once for small pages, in windows for large ones.

A page may have 2 GiB, or 32 KiB of a file may claim it. Large pages are therefore never loaded as a whole: a reader
loads a window, consumes what it can, and loads the next one. If several parts of a value section are read together
(lengths, and the bytes that they describe), the section is opened several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import codecs
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.codecs import Buffer, CodecError
from bloomcli.formats.parquet.spec import Location
from bloomcli.storage.base import Source
from bloomcli.words import counted

_WINDOW: Final = 1 << 20


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
        if self.size > parquet_limits.PAGE_WHOLE_MAX_BYTES and codecs.streams(self._packed.codec):
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
            for window in codecs.windows(packed.codec, raw_windows(packed), packed.packed, packed.size, _WINDOW):
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
