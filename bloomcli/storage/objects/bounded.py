"""Connections on which no answer takes more bytes or more time than its request allows.

urllib3 and the SDKs read an answer's head, the body of a redirect or of an error, and a listing for as long as the
server sends. Their timeouts are those of single reads, so a server that sends a byte a second never reaches one. The
connections of this module count the bytes where they are read from the socket, below any SDK, and raise an OSError,
which each SDK treats as a broken connection.
"""

from __future__ import annotations

import http.client
import io
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from bloomcli.words import counted

HEAD_MAX_BYTES: Final = 256 << 10
"""The largest head of an answer, with the heads of all its `100 Continue`. Servers limit heads to 8 to 64 KiB."""
ERROR_MAX_BYTES: Final = 256 << 10
"""The largest body of a redirect or an error that is read. The stores' errors have some hundred bytes."""
DOCUMENT_MAX_BYTES: Final = 64 << 20
"""The largest document, such as a page of a listing: 5,000 blobs, each with 8 KiB of metadata, have 40 MiB."""
PROGRESS_BYTES_PER_SECOND: Final = 1 << 10
"""The least speed of an answer after its first byte: 32 concurrent requests reach it at a quarter of a Mbit/s."""
READ_GRACE_SECONDS: Final = 30.0
"""The time by which an answer may be later than at the least speed."""
WRITE_GRACE_SECONDS: Final = 1800.0
"""The same for requests that write: while S3 completes a large upload, it sends a blank from time to time."""
_FRAMING_BYTES: Final = 64 << 10
"""Additional bytes of a body, for the lengths of its chunks and for what a buffer reads ahead. A body in chunks may
have twice its bytes too, as small chunks have long lengths."""


class Bounds(NamedTuple):
    """The bounds of an answer."""

    body_bytes: int
    """Maximum size of the body of a success."""
    grace_seconds: float


_bounds: ContextVar[Bounds | None] = ContextVar("bounds", default=None)
"""The bounds of the current thread's requests; None for those of a document that is read."""


class AnswerTooLong(ConnectionError):
    """An answer has more bytes than its request allows."""


class AnswerTooSlow(TimeoutError):
    """An answer arrives more slowly than at `PROGRESS_BYTES_PER_SECOND`."""


def content_of(length: int) -> AbstractContextManager[None]:
    """Answers to the block's requests have a content of at most `length` bytes."""
    return _bounded(Bounds(length, READ_GRACE_SECONDS))


def answers_to_writes() -> AbstractContextManager[None]:
    """Answers to the block's requests may take `WRITE_GRACE_SECONDS`."""
    return _bounded(Bounds(DOCUMENT_MAX_BYTES, WRITE_GRACE_SECONDS))


@contextmanager
def _bounded(bounds: Bounds) -> Iterator[None]:
    token = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(token)


class _Wire(io.RawIOBase):
    """The bytes of an answer as they come from a connection.

    Attributes:
        count: the number of bytes so far.
        most: the maximum number of bytes.
    """

    def __init__(self, raw: io.RawIOBase, grace_seconds: float) -> None:
        self._raw, self._grace = raw, grace_seconds
        self._waited = 0.0
        self.count, self.most = 0, HEAD_MAX_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """The descriptor of the connection."""
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        """Read bytes. Raises AnswerTooLong, AnswerTooSlow, OSError."""
        began = time.monotonic()
        size: int | None = self._raw.readinto(buffer)
        if self.count:  # the connection's own timeout limits the wait for the first byte
            self._waited += time.monotonic() - began
        self.count += size or 0
        if self.count > self.most:
            raise AnswerTooLong(f"the answer has more than {counted(self.most, 'byte')}")
        if self._waited > self._grace + self.count / PROGRESS_BYTES_PER_SECOND:
            raise AnswerTooSlow(f"{counted(self.count, 'byte')} of the answer took {self._waited:.0f} seconds")
        return size

    def close(self) -> None:
        """Close the file object of the connection."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer within the bounds of its request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._bounds = _bounds.get() or Bounds(DOCUMENT_MAX_BYTES, READ_GRACE_SECONDS)
        self._wire = _Wire(self.fp.detach(), self._bounds.grace_seconds)
        self.fp = io.BufferedReader(self._wire)

    def begin(self) -> None:
        """Read the head, then allow the bytes of the body."""
        super().begin()
        body = self._bounds.body_bytes if self.status < http.HTTPStatus.MULTIPLE_CHOICES else ERROR_MAX_BYTES
        self._wire.most = self._wire.count + _FRAMING_BYTES + (2 * body if self.chunked else body)


def bounded_pools(pools: Mapping[str, Any]) -> dict[str, Any]:
    """The classes of urllib3's connection pools by scheme, with answers within their bounds."""
    return {
        scheme: type(
            pool.__name__,
            (pool,),
            {
                "ConnectionCls": type(
                    pool.ConnectionCls.__name__, (pool.ConnectionCls,), {"response_class": _Response}
                )
            },
        )
        for scheme, pool in pools.items()
    }


def bound(manager: Any) -> Any:
    """Bound the answers of a urllib3 PoolManager. Returns the manager."""
    manager.pool_classes_by_scheme = bounded_pools(manager.pool_classes_by_scheme)
    return manager


class BoundedAdapter:
    """Bounds the answers of an adapter of `requests`. It comes before the adapter's class among the base classes."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*arguments, **options)  # type: ignore[misc]
        bound(self.poolmanager)  # type: ignore[attr-defined]

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        """The pools of connections through a proxy."""
        managers = set(self.proxy_manager.values())  # type: ignore[attr-defined]
        manager = super().proxy_manager_for(*arguments, **options)  # type: ignore[misc]
        return manager if manager in managers else bound(manager)
