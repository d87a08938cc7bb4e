"""Determines why a server can't be reached, from any SDK's exception.

The SDKs wrap the system's error in several of their own, whose messages contain URLs, and so signatures. The cause is
found in the chain of exceptions; bloom's errors repeat none of their messages.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final, NamedTuple

from bloomcli.model.paths import shown
from bloomcli.storage.objects.bounded import PROGRESS_BYTES_PER_SECOND, AnswerTooLong, AnswerTooSlow
from bloomcli.words import size

_MOST: Final = 40
"""Maximum number of exceptions of a chain that are examined."""


class ConnectionFailure(NamedTuple):
    """The reason why a request got no answer, and a hint."""

    reason: str
    hint: str


def connection_failure(error: BaseException, endpoint: str) -> ConnectionFailure:
    """The reason for a connection error, and a hint that names the endpoint."""
    exceeded = exceeded_bounds(error, endpoint)
    if exceeded is not None:
        return exceeded
    why, hint = _failure(error)
    return ConnectionFailure(why, hint.format(endpoint=f"the endpoint {shown(endpoint)}"))


def exceeded_bounds(error: BaseException, endpoint: str) -> ConnectionFailure | None:
    """The failure if the answer exceeded its bounds (`bloomcli.storage.objects.bounded`), else None."""
    where = f"check the endpoint {shown(endpoint)}, and the proxy's variables"
    for link in _chain(error):
        if isinstance(link, AnswerTooLong):
            return ConnectionFailure("the server sent more than the request allows, perhaps without an end", where)
        if isinstance(link, AnswerTooSlow):
            rate = size(PROGRESS_BYTES_PER_SECOND)
            return ConnectionFailure(f"the server sends less than {rate} in a second", f"{where}, then try again")
    return None


def _failure(error: BaseException) -> ConnectionFailure:
    chain = list(_chain(error))
    names = {type(link).__name__ for link in chain}
    text = " ".join(str(link) for link in chain)
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
    if any(isinstance(link, socket.gaierror) for link in chain) or "NameResolutionError" in names:
        return ConnectionFailure(
            "the server's name can't be resolved", "check the account or {endpoint}, and the network"
        )
    if any(isinstance(link, ConnectionRefusedError) for link in chain) or "Connection refused" in text:
        return ConnectionFailure(
            "the connection was refused", "check {endpoint} and its port, and the proxy's variables"
        )
    if "ProxyError" in names:
        return ConnectionFailure("the proxy can't be used", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY")
    if any(isinstance(link, TimeoutError) for link in chain) or any("Timeout" in name for name in names):
        return ConnectionFailure(
            "the server didn't answer in time", "check {endpoint} and the network, then try again"
        )
    return ConnectionFailure("the connection was lost", "try again; the network or {endpoint} is unreliable")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its causes and the exceptions that it wraps."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MOST:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        candidates = (
            link.__cause__,
            link.__context__,
            getattr(link, "reason", None),
            getattr(link, "inner_exception", None),
            getattr(link, "kwargs", {}).get("error"),  # boto3's
        )
        waiting += [found for found in (*candidates, *link.args) if isinstance(found, BaseException)]
