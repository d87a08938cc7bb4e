"""Reads ranges of a web server's file with urllib3, on the condition that it hasn't changed since it was opened.

Some servers ignore conditions, so the tag of each answer is compared with the tag of the first one too.

Requests are counted, retried, and sent through the proxies of the environment. RFC 9110 defines the headers.
"""

from __future__ import annotations

import os
import re
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import urllib3
from urllib3.util import make_headers

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError
from bloomcli.model.paths import shown
from bloomcli.storage import traffic
from bloomcli.storage.objects.bounded import bound, content_of
from bloomcli.storage.objects.client import (
    AccessDenied,
    Client,
    Conflict,
    Location,
    ObjectInfo,
    ObjectNotFound,
    content_length,
    content_range,
)
from bloomcli.storage.objects.network import connection_failure
from bloomcli.words import plural

_GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class HttpClient(Client):
    """Requests to web servers, through proxies from environment variables such as HTTPS_PROXY."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[tuple[object, ...], urllib3.PoolManager] = {}

    def locate(self, uri: str) -> Location:
        """Parse a URI: the host, and the path with its query. Raises UsageError."""
        scheme, _, rest = uri.partition("://")
        host, _, key = rest.partition("/")
        try:
            parts = urllib.parse.urlsplit(uri)
            has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:  # invalid brackets or port
            has_host = False
        if scheme not in {"http", "https"} or not has_host:
            raise UsageError("the URI names no host", path=uri, hint="https://HOST/NAME")
        return Location(f"{scheme}://{host}", key.partition("#")[0])

    def head(self, at: Location) -> ObjectInfo | None:
        """A file's size and tag, by a GET of its first byte: signed URLs often allow no other method."""
        answer = self.get(at, {"Range": "bytes=0-0"}, 1)
        if answer.status in _GONE:
            return None
        length = content_length(answer.headers)
        if answer.status == HTTPStatus.OK and (length or not answer.too_long):
            return _info(length or len(answer.content), answer)
        return _info(self._size(at, answer), answer)

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of a file. Raises ObjectNotFound."""
        answer = self.get(at, {"Range": f"bytes=-{length}"}, length)
        if answer.status in _GONE:
            raise ObjectNotFound
        if answer.status == HTTPStatus.OK and not answer.too_long and _is_unencoded(answer):
            return answer.content, _info(len(answer.content), answer)  # a small file, sent as a whole
        size = self._size(at, answer)
        info = _info(size, answer)
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and size:
            wanted = min(length, size)  # the server doesn't support suffix ranges
            try:
                return self.read(at, size - wanted, wanted, info.tag), info
            except Conflict:
                raise UnreadableError(
                    "can't be read: it changed between two requests", path=shown(at.uri), hint="try again"
                ) from None
        self._check(at, answer, max(size - length, 0), min(length, size))
        return answer.content, info

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range of a file on the condition of its tag. Raises ObjectNotFound, Conflict."""
        wanted = {"Range": f"bytes={offset}-{offset + length - 1}", **condition_headers(tag)}
        answer = self.get(at, wanted, length)
        if answer.status in _GONE:
            raise ObjectNotFound
        if answer.status in {HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
            raise Conflict
        if answer.status in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT} and tag_of(answer.headers) != tag:
            raise Conflict
        self._size(at, answer)
        self._check(at, answer, offset, length)
        return answer.content

    def get(self, at: Location, headers: Mapping[str, str], max_bytes: int) -> Answer:
        """Send a GET request, with retries.

        Args:
            at: the file.
            headers: the request's headers.
            max_bytes: maximum size of the answer's body; a longer body isn't returned.

        Raises:
            UnreadableError: no attempt got an answer.
        """
        url, secret = _without_userinfo(at.uri)
        wanted = {"Accept-Encoding": "identity", **headers}
        waited, attempt, redirects = 0.0, 1, 0
        while True:
            try:
                answer = self._once(url, {**wanted, **secret}, max_bytes)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if attempt == ATTEMPTS or isinstance(error, urllib3.exceptions.LocationValueError):
                    raise _connection_error(at, error, attempt) from None
                pause = _PAUSE_SECONDS * 2 ** (attempt - 1)
            else:
                if answer.status in _REDIRECTS and "Location" in answer.headers:
                    redirects += 1
                    if redirects > _REDIRECTS_MAX:
                        raise UnreadableError(
                            f"can't be read: the server redirects more than {_REDIRECTS_MAX} times",
                            path=shown(at.uri),
                            hint="check the URI",
                        )
                    url, secret = _redirected(at, url, answer.headers["Location"], secret)
                    continue
                asked = retry_after_seconds(answer.headers)
                if answer.status not in _RETRIED or attempt == ATTEMPTS or asked > RETRY_AFTER_MAX_SECONDS:
                    return answer._replace(attempts=attempt, waited_seconds=waited, asked_seconds=asked)
                pause = asked or _PAUSE_SECONDS * 2 ** (attempt - 1)
            time.sleep(pause)
            waited += pause
            attempt += 1

    def _once(self, url: str, headers: Mapping[str, str], max_bytes: int) -> Answer:
        """Send a request once. Raises the errors of urllib3 and of the connection."""
        meter = traffic.current()
        meter.count()
        # leaving the block closes the connection unless the whole answer was read
        with (
            content_of(max_bytes),
            self._manager(url).request(
                "GET", url, headers=headers, retries=False, redirect=False, preload_content=False
            ) as answer,
        ):
            length = content_length(answer.headers)
            if answer.status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
                if 0 < length <= _DRAINED_BYTES:
                    answer.read(length, decode_content=False)  # so that the connection can be used again
                return Answer(answer.status, answer.headers, b"", too_long=False)
            if length > max_bytes:
                return Answer(answer.status, answer.headers, b"", too_long=True)
            content = answer.read(max_bytes + 1, decode_content=False)
            meter.count(requests=0, downloaded=len(content))
            if length > len(content):
                raise urllib3.exceptions.IncompleteRead(len(content), length - len(content))
            if len(content) > max_bytes:
                return Answer(answer.status, answer.headers, b"", too_long=True)
            return Answer(answer.status, answer.headers, content, too_long=False)

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

    def _size(self, at: Location, answer: Answer) -> int:
        """The file's size, from an answer to a range request.

        Raises:
            AccessDenied: the server denied access.
            UnreadableError: the server failed or refused the request.
            UnsupportedError: the server compresses its answers or doesn't support ranges.
        """
        range_ = content_range(answer.headers)
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and range_ is not None:
            return range_.size
        path = shown(at.uri)
        number = next((f", request {answer.headers[name]}" for name in _IDS if answer.headers.get(name)), "")
        unfit = None
        if not _is_unencoded(answer):
            unfit = "the server sends compressed answers, whose ranges aren't ranges of the file"
        elif answer.status == HTTPStatus.OK:
            unfit = "the server ignores ranges: it would send the whole file for each of them"
        elif answer.status == HTTPStatus.PARTIAL_CONTENT:
            if range_ is not None:
                return range_.size
            unfit = "the server sends ranges without the file's size"
        if unfit is not None:
            raise UnsupportedError(f"{unfit}{number}", path=path, hint="copy the file to this machine")
        why = f"status {answer.status}{number}"
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
            hint = "check the URI, its signature and its time: https://USER:PASSWORD@HOST/NAME sends a password"
            raise AccessDenied(f"can't be read: access denied ({why})", path=path, hint=hint)
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            tried = plural(answer.attempts, "attempt")
            if answer.waited_seconds >= 1:
                tried = f"{tried} in {answer.waited_seconds:.0f} seconds"
            if answer.asked_seconds > RETRY_AFTER_MAX_SECONDS:
                tried = f"{tried}, and asks for a pause of {answer.asked_seconds:.0f} seconds"
            why = f"the server failed, {tried} ({why})"
            raise UnreadableError(f"can't be read: {why}", path=path, hint="try again later, or with fewer --jobs")
        raise UnreadableError(f"can't be read: the server refuses ({why})", path=path, hint="check the URI")

    def _check(self, at: Location, answer: Answer, offset: int, length: int) -> None:
        """Raise UnreadableError if an answer isn't the requested range."""
        range_ = content_range(answer.headers)
        empty = range_ is not None and not length and not range_.end
        if (
            answer.too_long
            or len(answer.content) != length
            or range_ is None
            or (not empty and (range_.start, range_.end) != (offset, offset + length))
        ):
            raise UnreadableError(
                "can't be read: the server sent another range than the requested one",
                path=shown(at.uri),
                hint="copy the file to this machine",
            )


def _is_unencoded(answer: Answer) -> bool:
    """Whether an answer has no Content-Encoding, so that its content is the file's bytes."""
    success = answer.status in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}
    return not success or answer.headers.get("Content-Encoding", "identity").strip().lower() in {"", "identity"}


def _info(size: int, answer: Answer) -> ObjectInfo:
    try:
        modified = int(parsedate_to_datetime(answer.headers.get("Last-Modified", "")).timestamp())
    except (ValueError, TypeError, OverflowError):
        modified = 0
    return ObjectInfo(size, tag_of(answer.headers), modified * 1_000_000_000)


_IDS: Final = ("x-request-id", "x-amz-request-id", "x-ms-request-id", "x-guploader-uploadid", "cf-ray")
_SECONDS: Final = re.compile(r"\d{1,12}", re.ASCII)


def tag_of(headers: Mapping[str, str]) -> str:
    """The strong ETag, else the Last-Modified time, else an empty string. Only an ETag begins with a quote."""
    tag = headers.get("ETag", "").strip()
    return tag if tag.startswith('"') else headers.get("Last-Modified", "").strip()


def condition_headers(tag: str) -> dict[str, str]:
    """The headers that make a range request conditional on the file's tag."""
    if not tag:
        return {}
    if tag.startswith('"'):
        return {"If-Match": tag, "If-Range": tag}
    return {"If-Unmodified-Since": tag, "If-Range": tag}


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """The pause that a server asks for by Retry-After, as a number of seconds or as a time; 0 without a valid one."""
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return 0.0


ATTEMPTS: Final = 5
"""Maximum number of attempts of a request, not counting redirects."""
RETRY_AFTER_MAX_SECONDS: Final = 60
"""The longest pause for which a server may ask by Retry-After. If it asks for more, the request fails at once."""
_REDIRECTS_MAX: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PAUSE_SECONDS: Final = 0.5
"""Pause before the second attempt; it doubles before each further one."""
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_DRAINED_BYTES: Final = 16 << 10
"""The largest body of a redirect or an error that is read; after a larger one the connection is closed."""
_CONNECTIONS: Final = 32


class Answer(NamedTuple):
    """A server's answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    """The body of a success; empty if it is too long, as it isn't read then."""
    too_long: bool
    """The body is longer than `max_bytes` of the request."""
    attempts: int = 1
    waited_seconds: float = 0.0
    """The pauses between the attempts."""
    asked_seconds: float = 0.0
    """The pause that the server asks for by Retry-After; 0 if it doesn't."""


def _manager(proxy: str | None, certificates: str | None) -> Any:
    timeout = urllib3.Timeout(connect=20, read=60)
    options: dict[str, Any] = {"maxsize": _CONNECTIONS, "timeout": timeout, "ca_certs": certificates}
    if proxy is None:
        return bound(urllib3.PoolManager(**options))
    address, secret = _without_userinfo(proxy if "://" in proxy else f"http://{proxy}", proxy=True)
    return bound(urllib3.ProxyManager(address, proxy_headers=secret, **options))


def _without_userinfo(url: str, *, proxy: bool = False) -> tuple[str, dict[str, str]]:
    """A URL without its user and password, and the authorization header made of them."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    address = parts._replace(netloc=host).geturl()
    user = urllib.parse.unquote(user)
    return address, dict(make_headers(proxy_basic_auth=user) if proxy else make_headers(basic_auth=user))


def _redirected(at: Location, url: str, to: str, secret: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The URL to which a server redirects, and the authorization header for it: none for another server.

    Raises:
        UnreadableError: the URL can't be requested.
    """
    try:
        target = urllib.parse.urljoin(url, to)
        old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
        if new.scheme in {"http", "https"} and new.hostname:
            address, own = _without_userinfo(target)
            same = (old.scheme, old.hostname, old.port) == (new.scheme, new.hostname, new.port)
            return address, own or (secret if same else {})
    except ValueError:  # invalid brackets or port
        pass
    raise UnreadableError(
        "can't be read: the server redirects to a URI that isn't http:// or https://",
        path=shown(at.uri),
        hint="check the URI",
    )


def _connection_error(at: Location, error: BaseException, attempts: int) -> UnreadableError:
    scheme, _, rest = shown(at.uri).partition("://")
    why, hint = connection_failure(error, f"{scheme}://{rest.partition('/')[0]}")
    return UnreadableError(
        f"can't be read: {why}, after {plural(attempts, 'attempt')}", path=shown(at.uri), hint=hint
    )
