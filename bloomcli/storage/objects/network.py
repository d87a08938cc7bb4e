"""Reasons and hints for servers that can't be reached, for any SDK.

The SDKs wrap the system's error in several of their own, whose texts hold URLs, and with them signatures. The chain
of causes shows what happened; errors of bloom repeat none of the texts.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

from bloomcli.named_tuple import NamedTuple

_MOST: Final = 40
"""Errors of a chain that are looked at."""


class ConnectionFailure(NamedTuple):
    """Why no answer came."""

    reason: str
    hint: str


def connection_failure(error: BaseException) -> ConnectionFailure:
    """What an error of the connection means."""
    chain = list(_chain(error))
    names = {type(one).__name__ for one in chain}
    text = " ".join(str(one) for one in chain)
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(one):
            return ConnectionFailure(
                "the server's TLS certificate isn't trusted",
                "REQUESTS_CA_BUNDLE or SSL_CERT_FILE names the certificates to trust",
            )
        if isinstance(one, ssl.SSLError):
            return ConnectionFailure(
                "TLS can't be used with the server", "check the endpoint: https:// or http://, and its port"
            )
    if any(isinstance(one, socket.gaierror) for one in chain) or "NameResolutionError" in names:
        return ConnectionFailure(
            "the server's name can't be resolved", "check the account or the endpoint, and the network"
        )
    if any(isinstance(one, ConnectionRefusedError) for one in chain) or "Connection refused" in text:
        return ConnectionFailure(
            "the connection was refused", "check the endpoint and its port, and the proxy's variables"
        )
    if "ProxyError" in names:
        return ConnectionFailure("the proxy can't be used", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY")
    if any(isinstance(one, TimeoutError) for one in chain) or any("Timeout" in name for name in names):
        return ConnectionFailure(
            "the server didn't answer in time", "check the endpoint and the network, then try again"
        )
    return ConnectionFailure("the connection was lost", "try again; the network or the server is unreliable")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was made of."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MOST:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        candidates = (
            one.__cause__,
            one.__context__,
            getattr(one, "reason", None),
            getattr(one, "inner_exception", None),
        )
        waiting += [found for found in (*candidates, *one.args) if isinstance(found, BaseException)]
