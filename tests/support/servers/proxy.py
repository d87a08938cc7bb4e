"""A proxy in front of a store: it records requests and their bytes, delays them, and breaks some.

Clients use the proxy's address instead of the store's. The Host header is passed on unchanged, because S3's
signatures include it. Each connection has its own thread. Bodies of any size are passed on in pieces.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import BinaryIO, Final, NoReturn, Self

from support.servers.dialects import Dialect
from support.servers.faults import Action, Fault
from support.servers.messages import CHUNK, Broken, Request, Response, body, framed, read_head

_IDLE_SECONDS: Final = 1.0
"""Seconds for which a connection to the store is reused: servers close connections after some seconds."""
_ERRORS: Final = {Action.ERROR_500: 500, Action.ERROR_503: 503, Action.ERROR_429: 429, Action.FORBIDDEN: 403}
_DRIPS: Final = 10


@dataclass
class Recorded:
    """A request that the proxy received."""

    kind: str
    method: str
    path: str
    sent: int = 0
    """Bytes of the request's body that the client sent."""
    received: int = 0
    """Bytes of the answer's body that were sent to the client."""
    status: int = 0
    """The status of the answer that was sent to the client; 0 without an answer."""
    fault: Action | None = None


class Guard:
    """Checks that a store's emulator doesn't make, so that the proxy makes them. This class makes none."""

    def reads_body(self, request: Request) -> bool:
        """Whether `refusal` needs the request's body."""
        del request
        return False

    def alone(self, request: Request) -> AbstractContextManager[object]:
        """A lock from the check of a request to the store's answer."""
        del request
        return nullcontext()

    def refusal(self, request: Request, content: bytes) -> tuple[Response, bytes] | None:
        """The answer to a request that isn't passed on to the store."""
        del request, content
        return None

    def answered(self, request: Request, response: Response) -> None:
        """Called after the store's answer to a request, before the client gets the answer's head."""


class Limit:
    """A bandwidth that all connections share."""

    def __init__(self, bytes_per_second: float | None) -> None:
        self._rate, self._free_at, self._lock = bytes_per_second, 0.0, threading.Lock()

    def take(self, count: int) -> None:
        """Wait for as long as this number of bytes takes."""
        if self._rate is None:
            return
        with self._lock:
            self._free_at = max(time.monotonic(), self._free_at) + count / self._rate
            wait = self._free_at - time.monotonic()
        if wait > 0.001:
            time.sleep(wait)


class Proxy:
    """A proxy for a store at a port of this machine. Use it as a context manager.

    Attributes:
        recorded: the requests so far, in the order in which they came.
        faults: the rules; the first rule that matches a request applies.
        latency: additional seconds of each request.
    """

    def __init__(
        self,
        port: int,
        dialect: Dialect,
        *,
        guard: Guard | None = None,
        latency: float = 0.0,
        bytes_per_second: float | None = None,
    ) -> None:
        self.dialect, self.latency = dialect, latency
        self.guard = guard or Guard()
        self.recorded: list[Recorded] = []
        self.faults: list[Fault] = []
        self.upload, self.download = Limit(bytes_per_second), Limit(bytes_per_second)
        """The bandwidth in each direction."""
        self.store = ("127.0.0.1", port)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), lambda *args: _Connection(self, *args))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.server_address[1]
        return port

    @property
    def url(self) -> str:
        """The proxy's URL for clients."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kinds(self) -> Counter[str]:
        """The number of requests of each kind."""
        with self._lock:
            return Counter(request.kind for request in self.recorded)

    def of_kind(self, *kinds: str) -> list[Recorded]:
        """The requests of some kinds."""
        with self._lock:
            return [request for request in self.recorded if request.kind in kinds]

    def forget(self) -> None:
        """Forget the requests so far, and the rules."""
        with self._lock:
            self.recorded.clear()
            self.faults.clear()

    @contextmanager
    def injecting(self, *faults: Fault) -> Iterator[None]:
        """Add rules within the block."""
        with self._lock:
            self.faults += faults
        try:
            yield
        finally:
            with self._lock:
                self.faults = [fault for fault in self.faults if not any(fault is mine for mine in faults)]

    def record(self, request: Request) -> tuple[Recorded, Fault | None]:
        """Record a request, and find the rule for it."""
        kind = self.dialect.kind(request)
        recorded = Recorded(kind, request.method, request.path)
        with self._lock:
            self.recorded.append(recorded)
            # Each rule counts the request, even if another one applies.
            chosen = [fault for fault in self.faults if fault.chooses(kind)]
        fault = chosen[0] if chosen else None
        recorded.fault = fault.action if fault else None
        return recorded, fault


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Don't report a client or a store that closes its connection."""
        if not isinstance(sys.exception(), OSError | Broken):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Reset(Exception):
    """Raised to reset the client's connection."""


class _Connection(socketserver.BaseRequestHandler):
    """A client's connection."""

    request: socket.socket

    def __init__(self, proxy: Proxy, *args: object) -> None:
        self.proxy = proxy
        self._upstream: socket.socket | None = None
        self._from_store: BinaryIO | None = None
        self._used = 0.0
        super().__init__(*args)  # type: ignore[arg-type]

    def handle(self) -> None:
        """Pass on requests until the connection ends."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = self.request.makefile("rb", 256 << 10)
        try:
            while (head := read_head(stream)) is not None:
                request = Request(*head)
                if not self._answer(request, stream, *self.proxy.record(request)):
                    break
        except _Closed:
            return
        except (_Reset, ConnectionError, TimeoutError, Broken):
            # with a linger time of 0, close resets the connection
            with suppress(OSError):
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            stream.close()
            self._drop_upstream()

    def _answer(self, request: Request, stream: BinaryIO, recorded: Recorded, fault: Fault | None) -> bool:
        """Answer a request. Returns whether the connection stays open."""
        action = fault.action if fault else Action.PASS
        if request.get("expect").lower() == "100-continue":
            self.request.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.headers = [(name, value) for name, value in request.headers if name.lower() != "expect"]
        if self.proxy.latency:
            time.sleep(self.proxy.latency)
        if fault is not None and fault.call is not None and action not in {Action.LOSE, Action.ANSWERED}:
            fault.call()
        pieces = self._incoming(body(stream, request) if not request.has_no_body() else iter(()), recorded)
        if action is Action.REFUSE:
            for _ in pieces:
                if recorded.sent * 2 >= (request.length or 0):
                    break
            raise _Reset
        if fault is not None and action in {Action.ENDLESS, Action.CONTINUES, Action.DRIP}:
            for _ in pieces:
                pass
            self._send_without_end(recorded, fault)
        answer = self._own_answer(action)
        if answer is not None:
            for _ in pieces:
                pass
            return self._send_own(request, recorded, *answer)
        if self.proxy.guard.reads_body(request):
            content = b"".join(pieces)
            pieces = iter([content] if content else [])
        else:
            content = b""
        with self.proxy.guard.alone(request):
            refusal = self.proxy.guard.refusal(request, content)
            if refusal is None:
                response = self._ask(request, pieces)
                self.proxy.guard.answered(request, response)
        if refusal is not None:
            for _ in pieces:
                pass
            return self._send_own(request, recorded, *refusal)
        self._relay(request, response, recorded, fault)
        closing = "close" in (request.get("connection") + response.get("connection")).lower()
        ends = response.length is None and not response.chunked and not response.has_no_body(request.method)
        if closing or ends or action is Action.SHORTEN:
            self._drop_upstream()
            return False
        return True

    def _send_without_end(self, recorded: Recorded, fault: Fault) -> NoReturn:
        """Send an answer until the client closes the connection."""
        recorded.status = fault.status
        framing = "Content-Length: 1000" if fault.action is Action.DRIP else "Transfer-Encoding: chunked"
        head = f"HTTP/1.1 {fault.status} Any\r\nLocation: /elsewhere\r\n{framing}\r\n\r\n".encode()
        piece = {
            Action.ENDLESS: b"%x\r\n%b\r\n" % (CHUNK, b"x" * CHUNK),
            Action.CONTINUES: b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
            Action.DRIP: b"x",
        }[fault.action]
        if fault.action is not Action.CONTINUES:
            self.request.sendall(head)
        while True:
            if fault.action is Action.DRIP:
                time.sleep(fault.seconds)
            self.request.sendall(piece)
            recorded.received += len(piece)

    def _own_answer(self, action: Action) -> tuple[Response, bytes] | None:
        if action in _ERRORS:
            return self.proxy.dialect.error(_ERRORS[action])
        return self.proxy.dialect.failed_completion() if action is Action.FAILED_200 else None

    def _send_own(self, request: Request, recorded: Recorded, response: Response, content: bytes) -> bool:
        recorded.status = response.status
        content = b"" if response.has_no_body(request.method) else content
        recorded.received = len(content)
        self.request.sendall(response.head() + content)
        return "close" not in request.get("connection").lower()

    def _incoming(self, pieces: Iterator[bytes], recorded: Recorded) -> Iterator[bytes]:
        for piece in pieces:
            recorded.sent += len(piece)
            self.proxy.upload.take(len(piece))
            yield piece

    def _ask(self, request: Request, pieces: Iterator[bytes]) -> Response:
        """Send the store a request, and read its answer's head."""
        upstream = self._connected()
        try:
            upstream.sendall(request.head())
            for piece in framed(pieces, request):
                upstream.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            for _ in pieces:  # the store has answered before it had the whole body
                pass
        assert self._from_store is not None
        while True:
            head = read_head(self._from_store)
            if head is None:
                raise Broken
            response = Response(*head)
            if response.status >= 200:
                self._used = time.monotonic()
                return response

    def _connected(self) -> socket.socket:
        if self._upstream is not None and time.monotonic() - self._used > _IDLE_SECONDS:
            self._drop_upstream()
        if self._upstream is None:
            self._upstream = socket.create_connection(self.proxy.store, timeout=120)
            self._upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._from_store = self._upstream.makefile("rb", 256 << 10)
        return self._upstream

    def _drop_upstream(self) -> None:
        if self._upstream is not None and self._from_store is not None:
            self._from_store.close()
            self._upstream.close()
        self._upstream = self._from_store = None

    def _relay(self, request: Request, response: Response, recorded: Recorded, fault: Fault | None) -> None:
        """Send the client the store's answer, changed by the rule if one applies."""
        action = fault.action if fault else Action.PASS
        assert self._from_store is not None
        pieces = iter(()) if response.has_no_body(request.method) else body(self._from_store, response)
        if fault is not None and action is Action.LOSE:
            for _ in pieces:
                pass
            if fault.call is not None:
                fault.call()
            raise _Reset
        if fault is not None and action is Action.ANSWERED and fault.call is not None:
            fault.call()
        if response.get("location"):
            local = f"http://127.0.0.1:{self.proxy.store[1]}"
            response.put("location", response.get("location").replace(local, f"http://{request.get('host')}"))
        if action is Action.OTHER_TAG:
            for name in ("etag", "x-goog-generation", "x-goog-hash"):
                response.put(name, _other(response.get(name)))
        if fault is not None and fault.change is not None:
            content = fault.change(response, b"".join(pieces))
            recorded.status, recorded.received = response.status, len(content)
            self.request.sendall(response.head() + content)
            self.request.shutdown(socket.SHUT_WR)  # so that the length needn't be right
            raise _Closed
        if response.has_no_body(request.method):
            if action in {Action.RESET, Action.TRUNCATE}:
                raise _Reset
        elif fault is not None and action in {Action.RESET, Action.TRUNCATE, Action.SHORTEN, Action.SLOW}:
            self._mangle(response, b"".join(pieces), recorded, fault)
            return
        recorded.status = response.status
        self.request.sendall(response.head())
        if response.has_no_body(request.method):
            return
        for piece in framed(self._outgoing(pieces, recorded), response):
            self.request.sendall(piece)

    def _outgoing(self, pieces: Iterator[bytes], recorded: Recorded) -> Iterator[bytes]:
        for piece in pieces:
            self.proxy.download.take(len(piece))
            recorded.received += len(piece)
            yield piece

    def _mangle(self, response: Response, content: bytes, recorded: Recorded, fault: Fault) -> None:
        half = content[: len(content) // 2]
        response.headers = [
            h for h in response.headers if h[0].lower() not in {"transfer-encoding", "content-length"}
        ]
        said = half if fault.action is Action.SHORTEN else content
        response.headers.append(("Content-Length", str(len(said))))
        if fault.action is Action.SHORTEN:
            response.headers.append(("Connection", "close"))  # the connection ends with this answer
        recorded.status = response.status
        self.request.sendall(response.head())
        if fault.action is Action.SLOW:
            step = max(1, len(content) // _DRIPS)
            for at in range(0, len(content), step):
                time.sleep(fault.seconds / _DRIPS)
                self.request.sendall(content[at : at + step])
            recorded.received = len(content)
            return
        self.request.sendall(half)
        recorded.received = len(half)
        if fault.action is Action.RESET:
            time.sleep(0.02)  # sent bytes arrive before the reset
            raise _Reset
        if fault.action is Action.TRUNCATE:
            self.request.shutdown(socket.SHUT_WR)
            raise _Closed


class _Closed(ConnectionError):
    """The client's connection was closed in the middle of a body."""


def _other(tag: str) -> str:
    """A tag of the same form."""
    digits = {**{str(n): str(9 - n) for n in range(10)}, **dict(zip("abcdef", "fedcba", strict=True))}
    return "".join(digits.get(c, c) for c in tag)
