"""Counts the SDK's requests, including retries."""

from __future__ import annotations

import time
import urllib.parse
from http import HTTPStatus
from typing import Any

import requests
from azure.core.pipeline.transport import RequestsTransport

from bloomcli.storage import traffic
from bloomcli.storage.objects.bounded import BoundedAdapter
from bloomcli.storage.objects.ranges import content_length


class _Adapter(BoundedAdapter, requests.adapters.HTTPAdapter):
    """Connections on which answers have bounds. Answers aren't decompressed."""

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request. Its Content-Encoding is that of the blob, whose stored bytes are needed."""
        response = super().send(*arguments, **options)
        response.raw.headers.pop("Content-Encoding", None)
        return response


class CountingTransport(RequestsTransport):  # type: ignore[misc]  # the SDK loads the class by an untyped function
    """The SDK's transport. Counts each request, and the bytes of blobs in requests and answers."""

    def __init__(self, attempts: int) -> None:
        super().__init__()
        self.attempts = attempts

    def _init_session(self, session: Any) -> None:
        super()._init_session(session)
        session.get_redirect_target = lambda _: None  # the SDK follows redirects; `requests` would read their bodies
        session.headers["Accept-Encoding"] = "identity"
        for scheme in list(session.adapters):
            session.mount(scheme, _Adapter(max_retries=False))

    def send(self, request: Any, **options: Any) -> Any:
        """Send a request, and retry it after a pause if the answer is 429, which the SDK doesn't retry."""
        for attempt in range(self.attempts):
            response = self._send(request, **options)
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS or attempt == self.attempts - 1:
                break
            response.internal_response.close()
            time.sleep(2**attempt)
        return response

    def _send(self, request: Any, **options: Any) -> Any:
        meter = traffic.current()
        operation = urllib.parse.parse_qs(urllib.parse.urlsplit(request.url).query).get("comp", [""])[0]
        meter.count(uploaded=_body_bytes(request) if request.method == "PUT" and operation in {"", "block"} else 0)
        response = super().send(request, **options)
        if request.method == "GET" and not operation and response.status_code in {200, 206}:
            meter.count(requests=0, downloaded=content_length(response.headers))
        return response


def _body_bytes(request: Any) -> int:
    return content_length(request.headers)
