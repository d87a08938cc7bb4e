"""Determines why a server can't be reached, and recognizes answers that no store sends.

The SDKs wrap the system's error in several of their own, whose messages contain URLs, and so signatures. The cause is
found in the chain of exceptions; bloom's errors repeat none of their messages. An answer that no store sends comes
from a web server, a proxy or a broken endpoint, which the error names.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from bloomcli.errors import BloomError, UnreadableError, WriteError
from bloomcli.model.paths import shown
from bloomcli.storage.objects.bounded import PROGRESS_BYTES_PER_SECOND, AnswerTooLong, AnswerTooSlow
from bloomcli.storage.objects.client import AccessDenied, Conflict, ContentRange, Location, ObjectNotFound, Page
from bloomcli.words import counted, size

EMPTY_PAGES_MAX: Final = 10_000
"""Maximum number of consecutive pages of a listing without an entry. Stores send empty pages where objects were
deleted."""
_MAX_INT: Final = 1 << 63


def storage_error(at: Location, why: str, hint: str | None, *, writing: bool, denied: bool = False) -> BloomError:
    """The error for a request that failed.

    Args:
        at: the object, or the prefix of a listing.
        why: the reason.
        hint: what the user can do.
        writing: the request is part of writing an object.
        denied: the credentials don't permit it.

    Returns:
        A WriteError if `writing`; else an UnreadableError, an AccessDenied if `denied`.
    """
    if writing:
        return WriteError(f"can't be written: {why}", path=at.uri, hint=hint)
    return (AccessDenied if denied else UnreadableError)(f"can't be read: {why}", path=at.uri, hint=hint)


class Answers(NamedTuple):
    """Makes errors of answers that the store never sends."""

    store: str
    """The store's name, such as ``S3``."""
    endpoint: Callable[[Location], str]
    """Returns the URL of the server for a location."""

    def foreign(self, at: Location, *, writing: bool, why: str = "") -> BloomError:
        """The error for an answer without the required fields, or with fields that can't be parsed.

        Args:
            at: the object, or the prefix of a listing.
            writing: the request is part of writing an object.
            why: what is wrong with the answer, if known.
        """
        what = f"the answer isn't one of {self.store}{': ' if why else ''}{why}"
        hint = f"check the endpoint {shown(self.endpoint(at))}, and the proxy's variables"
        return storage_error(at, what, hint, writing=writing)

    @contextmanager
    def checked(self, at: Location, *, writing: bool = False) -> Iterator[None]:
        """Convert the exceptions for fields of an answer that are missing or invalid.

        Raises:
            UnreadableError, WriteError: the block raised LookupError, ValueError, TypeError, ...
        """
        try:
            yield
        except FOREIGN_ERRORS:
            raise self.foreign(at, writing=writing) from None

    @contextmanager
    def expecting(
        self, expected: type[Exception] | tuple[type[Exception], ...], at: Location, *, writing: bool = False
    ) -> Iterator[None]:
        """Convert ObjectNotFound and Conflict of the block, except the expected ones: a request without a condition
        can't fail because of one, and a new object needn't exist.

        Raises:
            UnreadableError, WriteError: the block raised another one than the expected ones.
        """
        try:
            yield
        except (ObjectNotFound, Conflict) as error:
            if isinstance(error, expected):
                raise
            unmet = "a condition failed, and the request has none"
            why = unmet if isinstance(error, Conflict) else "no such object exists, and the request needs none"
            raise self.foreign(at, writing=writing, why=f"it says that {why}") from None


FOREIGN_ERRORS: Final = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""What code and SDKs raise for an answer without required fields, or with invalid ones."""


def check_range(at: Location, content: bytes, range_: ContentRange | None, start: int, length: int) -> None:
    """Raise UnreadableError if an answer isn't the requested range. `range_`: the range it says it is, if any."""
    if len(content) < length:
        why = f"the store sent {len(content)} of {counted(length, 'byte')}"
    elif len(content) > length or (range_ and (range_.start, range_.end) != (start, start + length)):
        why = "the store sent another range than the requested one"
    else:
        return
    raise UnreadableError(f"can't be read: {why}", path=at.uri, hint="try again")


def size_in(value: object) -> int:
    """A size or a generation from an answer: a number from 0 to 2^63 - 1, or its digits. Raises ValueError."""
    if not isinstance(value, int | str) or isinstance(value, bool) or not 0 <= int(value) < _MAX_INT:
        raise ValueError("the number isn't a size")
    return int(value)


def nanoseconds_in(seconds: float) -> int:
    """A time in whole seconds since the epoch as nanoseconds. Raises ValueError if it is after the year 2262."""
    if not -_MAX_INT <= int(seconds) * 10**9 < _MAX_INT:
        raise ValueError("the time is too late")
    return int(seconds) * 10**9


class ListingProgress:
    """Checks that a listing comes to an end: no token is sent twice, and few consecutive pages are empty.

    Args:
        at: the prefix that is listed.
        answers: the store's.
    """

    def __init__(self, at: Location, answers: Answers) -> None:
        self._at, self._answers = at, answers
        self._tokens: set[int] = set()
        self._empty = 0

    def following(self, page: Page, token: object) -> str:
        """The token of the page after `page`.

        Raises:
            UnreadableError: there is none, it came before, or too many pages were empty.
        """
        self._empty = 0 if page.entries or page.prefixes else self._empty + 1
        why = None
        if not isinstance(token, str) or not token:
            why = "it has no token for the next page of the listing"
        elif hash(token) in self._tokens:
            why = "the listing repeats a page's token, so it has no end"
        elif self._empty > EMPTY_PAGES_MAX:
            why = f"the listing has more than {EMPTY_PAGES_MAX:,} empty pages in a row"
        if why is not None or not isinstance(token, str):
            raise self._answers.foreign(self._at, writing=False, why=why or "")
        self._tokens.add(hash(token))  # tokens are long, and a listing of a large bucket has thousands
        return token


_MOST: Final = 40
"""Maximum number of exceptions of a chain that are examined."""


class ConnectionFailure(NamedTuple):
    """The reason why a request got no answer, and a hint."""

    reason: str
    hint: str


def connection_failure(error: BaseException, endpoint: str, variables: str = "") -> ConnectionFailure:
    """The reason for a connection error, and a hint that names the endpoint.

    Args:
        error: the error.
        endpoint: the URL of the store.
        variables: the environment variables that choose the endpoint, if the hint should name them.
    """
    why, hint = _failure(error)
    chosen = f" ({variables} choose it)" if variables else ""
    return ConnectionFailure(why, hint.format(endpoint=f"the endpoint {shown(endpoint)}{chosen}"))


def _failure(error: BaseException) -> ConnectionFailure:
    chain = list(_chain(error))
    names = {type(link).__name__ for link in chain}
    text = " ".join(str(link) for link in chain)
    where = "check {endpoint}, and the proxy's variables"
    for link in chain:
        if isinstance(link, AnswerTooLong):
            return ConnectionFailure("the server sent more than the request allows, perhaps without an end", where)
        if isinstance(link, AnswerTooSlow):
            rate = size(PROGRESS_BYTES_PER_SECOND)
            return ConnectionFailure(f"the server sends less than {rate} in a second", f"{where}, then try again")
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(link):
            return ConnectionFailure(
                "the server's TLS certificate isn't trusted",
                "REQUESTS_CA_BUNDLE or SSL_CERT_FILE names the certificates to trust",
            )
        if isinstance(link, ssl.SSLError):
            return ConnectionFailure(
                "TLS can't be used with the server", "check {endpoint}: https:// or http://, and its port"
            )
    if "ProxyError" in names:
        return ConnectionFailure("the proxy can't be used", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY")
    if any(isinstance(link, socket.gaierror) for link in chain) or "NameResolutionError" in names:
        return ConnectionFailure(
            "the server's name can't be resolved", "check the account or {endpoint}, and the network"
        )
    if any(isinstance(link, ConnectionRefusedError) for link in chain) or "Connection refused" in text:
        return ConnectionFailure(
            "the connection was refused", "check {endpoint} and its port, and the proxy's variables"
        )
    if any(isinstance(link, TimeoutError) for link in chain) or any("Timeout" in name for name in names):
        return ConnectionFailure(
            "the server didn't answer in time", "check {endpoint} and the network, then try again"
        )
    return ConnectionFailure("the connection was lost", "try again; the network or {endpoint} is unreliable")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its causes and the exceptions that it wraps."""
    waiting, ids = [error], set[int]()
    while waiting and len(ids) < _MOST:
        link = waiting.pop(0)
        if id(link) in ids:
            continue
        ids.add(id(link))
        yield link
        candidates = (
            link.__cause__,
            link.__context__,
            getattr(link, "reason", None),
            getattr(link, "inner_exception", None),
            getattr(link, "kwargs", {}).get("error"),  # boto3's
        )
        waiting += [candidate for candidate in (*candidates, *link.args) if isinstance(candidate, BaseException)]
