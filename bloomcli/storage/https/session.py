"""Sends requests to web servers: counts them, retries them, and uses proxies."""

from __future__ import annotations

import os
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, Self

import urllib3
from urllib3.util import Retry, make_headers

from bloomcli.errors import UnreadableError
from bloomcli.model.paths import shown
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage import traffic
from bloomcli.storage.objects.client import Location
from bloomcli.storage.objects.network import connection_failure
from bloomcli.storage.objects.ranges import content_length

ATTEMPTS: Final = 5
"""Maximum number of attempts of a request, not counting redirects."""
_REDIRECTS: Final = 10
_PAUSE_SECONDS: Final = 0.5
"""Pause before the second attempt; it doubles before each further one."""
_RETRIED: Final = (429, 500, 502, 503, 504)
_CONNECTIONS: Final = 32


class Answer(NamedTuple):
    """A server's answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    """The body; empty if it is too long, as it isn't read then."""
    too_long: bool
    """The body is longer than `max_bytes` of the request."""


class _CountingRetry(Retry):
    """Counts each retry and each redirect as a request."""

    def increment(self, *args: Any, **options: Any) -> Self:
        """Count a request, unless this was the last attempt."""
        following = super().increment(*args, **options)
        traffic.current().count()
        return following


class Session:
    """Connections to servers, through proxies from environment variables such as HTTPS_PROXY. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[tuple[object, ...], urllib3.PoolManager] = {}

    def get(self, at: Location, headers: Mapping[str, str], max_bytes: int) -> Answer:
        """Send a GET request, with retries.

        Args:
            at: the file.
            headers: the request's headers.
            max_bytes: maximum size of the answer's body; a longer body isn't returned.

        Raises:
            UnreadableError: no attempt got an answer.
        """
        retries = _CountingRetry(
            total=None,
            connect=ATTEMPTS - 1,
            read=ATTEMPTS - 1,
            status=ATTEMPTS - 1,
            other=ATTEMPTS - 1,
            redirect=_REDIRECTS,
            status_forcelist=_RETRIED,
            backoff_factor=_PAUSE_SECONDS,
            raise_on_status=False,
        )
        url, secret = _without_userinfo(at.uri)
        wanted = {"Accept-Encoding": "identity", **headers, **secret}
        for attempt in range(ATTEMPTS):
            meter = traffic.current()
            meter.count()
            try:
                manager = self._manager(url)
                # leaving the block closes the connection unless the whole answer was read
                with manager.request("GET", url, headers=wanted, retries=retries, preload_content=False) as answer:
                    length = content_length(answer.headers)
                    if length > max_bytes:
                        return Answer(answer.status, answer.headers, b"", too_long=True)
                    content = answer.read(max_bytes + 1, decode_content=False)
                    meter.count(requests=0, downloaded=len(content))
                    if length > len(content):
                        raise urllib3.exceptions.IncompleteRead(len(content), length - len(content))
                    if len(content) > max_bytes:
                        return Answer(answer.status, answer.headers, b"", too_long=True)
                    return Answer(answer.status, answer.headers, content, too_long=False)
            except urllib3.exceptions.MaxRetryError as error:
                raise _connection_error(at, error) from None
            except ValueError:  # from a redirect: `locate` has checked the file's own URI
                why = "can't be read: the server redirects to a URI that isn't http:// or https://"
                raise UnreadableError(why, path=shown(at.uri), hint="check the URI") from None
            except (urllib3.exceptions.HTTPError, OSError) as error:  # the connection broke while the body was read
                if attempt == ATTEMPTS - 1:
                    raise _connection_error(at, error) from None
                time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("every attempt returns or raises")

    def _manager(self, url: str) -> urllib3.PoolManager:
        parts = urllib.parse.urlsplit(url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and urllib.request.proxy_bypass(parts.hostname or ""):
            proxy = None
        certificates = os.environ.get("REQUESTS_CA_BUNDLE") or None
        key = os.getpid(), proxy, certificates
        with self._lock:
            if key not in self._managers:
                self._managers[key] = _manager(proxy, certificates)
            return self._managers[key]


def _manager(proxy: str | None, certificates: str | None) -> urllib3.PoolManager:
    timeout = urllib3.Timeout(connect=20, read=60)
    options: dict[str, Any] = {"maxsize": _CONNECTIONS, "timeout": timeout, "ca_certs": certificates}
    if proxy is None:
        return urllib3.PoolManager(**options)
    address, secret = _without_userinfo(proxy if "://" in proxy else f"http://{proxy}", proxy=True)
    return urllib3.ProxyManager(address, proxy_headers=secret, **options)


def _without_userinfo(url: str, *, proxy: bool = False) -> tuple[str, dict[str, str]]:
    """A URL without its user and password, and the authorization header made of them."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    plain = parts._replace(netloc=host).geturl()
    user = urllib.parse.unquote(user)
    return plain, dict(make_headers(proxy_basic_auth=user) if proxy else make_headers(basic_auth=user))


def _connection_error(at: Location, error: BaseException) -> UnreadableError:
    why, hint = connection_failure(error)
    return UnreadableError(f"can't be read: {why}, after {ATTEMPTS} attempts at most", path=shown(at.uri), hint=hint)
