"""HTTP/1.1 messages as bytes on a connection, as far as a proxy has to parse them."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

CHUNK: Final = 64 << 10


class Broken(Exception):
    """A connection ended in the middle of a message."""


@dataclass
class Message:
    """A request or a response, up to its body."""

    start: str
    """The first line."""
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """A header's value; empty if the message has no such header."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def put(self, name: str, value: str) -> None:
        """Set an existing header."""
        self.headers = [(key, value if key.lower() == name else old) for key, old in self.headers]

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks that start with their length."""
        return "chunked" in self.get("transfer-encoding").lower()

    @property
    def length(self) -> int | None:
        """The body's size in bytes; None if the message doesn't say it."""
        text = self.get("content-length")
        return int(text) if text and not self.chunked else None

    def head(self) -> bytes:
        """The message up to its body."""
        lines = [self.start, *(f"{name}: {value}" for name, value in self.headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass
class Request(Message):
    """A request."""

    method: str = field(init=False)
    path: str = field(init=False)
    """The path, decoded and without the query."""
    query: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.method, target, _ = self.start.split(" ", 2)
        parts = urllib.parse.urlsplit(target)
        self.path = urllib.parse.unquote(parts.path)
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))

    def has_no_body(self) -> bool:
        """Whether nothing follows the head."""
        return not self.chunked and not self.length


@dataclass
class Response(Message):
    """A response."""

    @property
    def status(self) -> int:
        """The status code."""
        return int(self.start.split(" ", 2)[1])

    def has_no_body(self, method: str) -> bool:
        """Whether nothing follows the head."""
        return method == "HEAD" or self.status in {204, 304} or self.status < 200 or self.length == 0


def read_head(stream: BinaryIO) -> tuple[str, list[tuple[str, str]]] | None:
    """The first line and the headers; None if the connection ended before them."""
    first = stream.readline(CHUNK)
    if not first:
        return None
    headers = []
    while (line := stream.readline(CHUNK)) not in {b"\r\n", b"\n"}:
        if not line:
            raise Broken
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    return first.decode("latin-1").rstrip("\r\n"), headers


def body(stream: BinaryIO, message: Message) -> Iterator[bytes]:
    """The body, in pieces. A body without a length ends with the connection."""
    if message.chunked:
        yield from _chunks(stream)
        return
    left = message.length
    while left is None or left > 0:
        piece = stream.read1(CHUNK if left is None else min(CHUNK, left))  # type: ignore[attr-defined]
        if not piece:
            if left is None:
                return
            raise Broken
        if left is not None:
            left -= len(piece)
        yield piece


def framed(pieces: Iterator[bytes], message: Message) -> Iterator[bytes]:
    """A body in the form that it has on the connection."""
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece) if message.chunked else piece
    if message.chunked:
        yield b"0\r\n\r\n"


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        size = int(stream.readline(CHUNK).split(b";")[0] or b"-1", 16)
        if size < 0:
            raise Broken
        left = size
        while left:
            piece = stream.read1(min(CHUNK, left))  # type: ignore[attr-defined]
            if not piece:
                raise Broken
            left -= len(piece)
            yield piece
        if size == 0:
            while stream.readline(CHUNK) not in {b"\r\n", b"\n", b""}:
                pass  # trailers
            return
        stream.readline(CHUNK)
