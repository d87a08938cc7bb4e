"""A directory in a real store, behind a proxy that records and breaks requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from support.servers import clients, running
from support.servers.dialects import S3, Azure, Gcs
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import Place

SERVERS: Final[Mapping[str, str]] = {"s3": "minio", "azure": "azurite", "gcs": "fake-gcs-server"}
"""The stores that `bloom` writes to, each with the server to install."""

_Parts = tuple[Callable[[pytest.MonkeyPatch], Place], Proxy, Callable[[str], dict[str, str]]]


@dataclass(frozen=True)
class Served:
    """A directory in a store. Its place reaches the server without the proxy."""

    place: Place
    proxy: Proxy
    environment: Mapping[str, str]
    """The variables by which commands find the proxy. This process doesn't have them."""


@contextmanager
def served(name: str) -> Iterator[Served]:
    """A new directory in one of the stores of `SERVERS`."""
    place, proxy, variables = {"s3": _s3, "azure": _azure, "gcs": _gcs}[name]()
    with pytest.MonkeyPatch.context() as patched:
        made = place(patched)
    with proxy:
        yield Served(made, proxy, variables(proxy.url))


def _s3() -> _Parts:
    from support.s3_place import S3Place

    server = running.minio()
    return partial(S3Place, server), Proxy(server.port, S3()), partial(clients.s3_environment, server)


def _azure() -> _Parts:
    from support.azure_place import AzurePlace

    server = running.azurite()
    return partial(AzurePlace, server), Proxy(server.port, Azure()), partial(clients.azure_environment, server)


def _gcs() -> _Parts:
    from support.gcs_place import GcsPlace

    server = running.fake_gcs()
    proxy = Proxy(server.port, Gcs(), guard=Preconditions(server.port))
    return partial(GcsPlace, server.url), proxy, clients.gcs_environment
