"""A directory on a web server in this process, which supports ranges and conditions, or some of them."""

from __future__ import annotations

import hashlib
import re
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bloomcli.storage.base import Store
from bloomcli.storage.remote_stores import HttpStore
from support.stores import Place

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass
class Behaviour:
    """A server's behaviour, and its requests so far."""

    files: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    """Content and modification time by path."""
    ranges: bool = True
    suffixes: bool = True
    """Whether the server supports ranges that count from the end."""
    tags: str = "strong"
    """"strong", "weak", "time", or "none"."""
    conditions: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers, instead of the content."""
    cut: list[int] = field(default_factory=list)
    """Numbers of bytes after which the next answers break off."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of successful answers, which replace the true ones."""
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Paths and headers, names in lower case."""


def _handler(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            asked = {name.lower(): value for name, value in self.headers.items()}
            behaviour.seen.append((self.path, asked))
            parts = urllib.parse.urlsplit(self.path)
            path = urllib.parse.unquote(parts.path)
            if behaviour.statuses and (status := behaviour.statuses.pop(0)) != 200:
                return self._answer(status, {"X-Request-Id": "abc123"}, b"no")
            if path in behaviour.redirects:
                return self._answer(302, {"Location": behaviour.redirects[path]}, b"")
            if path not in behaviour.files:
                return self._answer(404, {}, b"not here")
            data, written = behaviour.files[path]
            known = {"Last-Modified": formatdate(written, usegmt=True)} if behaviour.tags != "none" else {}
            tag = f'"{hashlib.sha256(data).hexdigest()[:16]}-{written}"'
            if behaviour.tags in {"strong", "weak"}:
                known["ETag"] = tag if behaviour.tags == "strong" else f"W/{tag}"
            if behaviour.conditions:
                if asked.get("if-match", tag) != tag:
                    return self._answer(412, known, b"")
                wanted = asked.get("if-range", "")
                if wanted and (
                    wanted.startswith("W/") or wanted not in {known.get("ETag"), known.get("Last-Modified")}
                ):
                    return self._answer(200, known, data)
            found = _RANGE.fullmatch(asked.get("range", ""))
            if not behaviour.ranges or found is None:
                return self._answer(200, known, data)
            first, last = found.groups()
            size = len(data)
            start = int(first) if first else max(size - int(last), 0)
            end = min(int(last) + 1, size) if first and last else size
            if start >= size or (not first and not behaviour.suffixes):
                return self._answer(416, {**known, "Content-Range": f"bytes */{size}"}, b"")
            known["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            return self._answer(206, known, data[start:end])

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            sent = {**headers, "Content-Length": str(len(content))}
            for name, value in (sent | behaviour.headers if status in {200, 206} else sent).items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = bool(behaviour.headers)
            if behaviour.cut and status in {200, 206}:
                self.wfile.write(content[: behaviour.cut.pop(0)])
                self.close_connection = True
                return
            self.wfile.write(content)

    return Handler


class HttpPlace(Place):
    """A directory on a separate web server."""

    def __init__(self, patched: pytest.MonkeyPatch, behaviour: Behaviour | None = None) -> None:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patched.delenv(name, raising=False)
        self.behaviour = behaviour or Behaviour()
        self.store: Store = HttpStore()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.behaviour))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def host(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def path(self, name: str = "") -> str:
        return f"http://{self.host}/lake" + (f"/{name}" if name else "")

    def put(self, name: str, data: bytes) -> None:
        written = max(time.time(), self.behaviour.files.get(f"/lake/{name}", (b"", 0.0))[1] + 1)
        self.behaviour.files[f"/lake/{name}"] = (data, written)

    def get(self, name: str) -> bytes | None:
        found = self.behaviour.files.get(f"/lake/{name}")
        return None if found is None else found[0]

    def remove(self, name: str) -> None:
        del self.behaviour.files[f"/lake/{name}"]

    def names(self) -> set[str]:
        return {path.removeprefix("/lake/") for path in self.behaviour.files}
