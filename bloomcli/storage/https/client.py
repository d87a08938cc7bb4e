"""Reads ranges of a web server's file, on the condition that the file hasn't changed since it was opened.

Some servers ignore conditions, so the tag of each answer is compared with the tag of the first one too.
"""

from __future__ import annotations

import urllib.parse
from http import HTTPStatus
from typing import Final, NoReturn

from bloomcli.errors import UnreadableError, UnsupportedError, UsageError
from bloomcli.model.paths import shown
from bloomcli.storage.https.session import (
    RETRY_AFTER_MAX_SECONDS,
    Answer,
    Session,
    condition_headers,
    modified_ns,
    request_id,
    tag_of,
)
from bloomcli.storage.objects.client import (
    AccessDenied,
    Client,
    Conflict,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Precondition,
    content_length,
    content_range,
)
from bloomcli.words import plural

_GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class HttpClient(Client):
    """Requests to web servers."""

    def __init__(self) -> None:
        self._session = Session()

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
        answer = self._session.get(at, {"Range": "bytes=0-0"}, 1)
        if answer.status in _GONE:
            return None
        length = content_length(answer.headers)
        if answer.status == HTTPStatus.OK and (length or not answer.too_long):
            return _info(length or len(answer.content), answer)
        return _info(self._size(at, answer), answer)

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of a file. Raises ObjectNotFound."""
        answer = self._session.get(at, {"Range": f"bytes=-{length}"}, length)
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
        answer = self._session.get(at, wanted, length)
        if answer.status in _GONE:
            raise ObjectNotFound
        if answer.status in {HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
            raise Conflict
        if answer.status in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT} and tag_of(answer.headers) != tag:
            raise Conflict
        self._size(at, answer)
        self._check(at, answer, offset, length)
        return answer.content

    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> NoReturn:
        """Raise UnsupportedError: a web server has no listings."""
        del delimiter, limit
        raise UnsupportedError(
            "a web server's files can't be listed",
            path=shown(at.uri),
            hint="name the files, or put their URIs into a file for --files-from",
        )

    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> NoReturn:
        """Raise UnsupportedError: a web server's files can't be written."""
        del data, precondition
        raise UnsupportedError("a web server's files can't be written", path=shown(at.uri), hint="-o FILE")

    def _size(self, at: Location, answer: Answer) -> int:
        """The file's size, from an answer to a range request.

        Raises:
            AccessDenied: the server denied access.
            UnreadableError: the server failed or refused the request.
            UnsupportedError: the server compresses its answers or doesn't support ranges.
        """
        found = content_range(answer.headers)
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and found is not None:
            return found.size
        path, number = shown(at.uri), request_id(answer.headers)
        if not _is_unencoded(answer):
            raise UnsupportedError(
                f"the server sends compressed answers, whose ranges aren't ranges of the file{number}",
                path=path,
                hint="copy the file to this machine",
            )
        if answer.status == HTTPStatus.OK:
            raise UnsupportedError(
                f"the server ignores ranges: it would send the whole file for each of them{number}",
                path=path,
                hint="copy the file to this machine",
            )
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            if found is not None:
                return found.size
            raise UnsupportedError(
                f"the server sends ranges without the file's size{number}",
                path=path,
                hint="copy the file to this machine",
            )
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
        found = content_range(answer.headers)
        empty = found is not None and not length and not found.end
        if (
            answer.too_long
            or len(answer.content) != length
            or found is None
            or (not empty and (found.start, found.end) != (offset, offset + length))
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
    return ObjectInfo(size, tag_of(answer.headers), modified_ns(answer.headers))
