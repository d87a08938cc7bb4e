"""A store, a proxy in front of it, and `bloom` run as a command that sees the store through the proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from support.cli import Result
from support.servers import clients, running
from support.servers.dialects import S3, Azure, Gcs
from support.servers.forking import Forks
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import Place


@dataclass(frozen=True)
class Rig:
    """A store for tests: runs `bloom` on objects, and reads them without it."""

    name: str
    place: Place
    proxy: Proxy

    forks: Forks
    """The process that runs commands."""

    @property
    def bloom(self) -> Callable[..., Result]:
        """Run a command."""
        return self.forks.run


def _made(kind: Callable[..., Place], *arguments: object) -> Place:
    """A place whose server only the commands find, by variables that this process doesn't have."""
    with pytest.MonkeyPatch.context() as patched:
        return kind(*arguments, patched)


@contextmanager
def _s3() -> Iterator[Rig]:
    from support.s3_place import S3Place

    server = running.minio()
    with Proxy(server.port, S3()) as proxy, Forks(clients.s3_environment(server, proxy.url)) as forks:
        yield Rig("s3", _made(S3Place, server), proxy, forks)


@contextmanager
def _azure() -> Iterator[Rig]:
    from support.azure_place import AzurePlace

    server = running.azurite()
    with Proxy(server.port, Azure()) as proxy, Forks(clients.azure_environment(server, proxy.url)) as forks:
        yield Rig("azure", _made(AzurePlace, server), proxy, forks)


@contextmanager
def _gcs() -> Iterator[Rig]:
    from support.gcs_place import GcsPlace

    server = running.fake_gcs()
    guard = Preconditions(server.port)
    with Proxy(server.port, Gcs(), guard=guard) as proxy, Forks(clients.gcs_environment(proxy.url)) as forks:
        yield Rig("gcs", _made(GcsPlace, server.url), proxy, forks)


RIGS: Final[Mapping[str, tuple[str, Callable[[], AbstractContextManager[Rig]]]]] = {
    "s3": ("minio", _s3),
    "azure": ("azurite", _azure),
    "gcs": ("fake-gcs-server", _gcs),
}
"""The stores that `bloom` writes to, each with the server to install and the function that sets it up."""
