"""Directories in all stores at once, each behind a proxy that records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bloomcli.storage import registry
from support.servers import clients, running
from support.servers.dialects import S3, Azure, Gcs
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import LocalPlace, Place

_ROOT: Final = Path(__file__).parents[3]

SERVERS: Final = {"s3": "minio", "azure": "azurite", "gcs": "fake-gcs-server"}
"""The server of each store."""

SCHEMES: Final = {"s3": ("s3", "s3a", "s3n"), "azure": ("az", "abfs", "abfss"), "gcs": ("gs", "gcs")}


@dataclass(frozen=True)
class Lake:
    """A directory in a store."""

    name: str
    place: Place
    proxy: Proxy | None = None
    """None for a directory on disk."""


@dataclass(frozen=True)
class Lakes:
    """Directories in several stores, and the variables by which commands find the servers."""

    of: Mapping[str, Lake]
    environment: Mapping[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "bloomcli", *arguments],
            cwd=_ROOT,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@contextmanager
def lakes(names: list[str], folder: Path) -> Iterator[Lakes]:
    """New directories in each of these stores and on disk. The variables are set in this process, too."""
    made: dict[str, Lake] = {"disk": Lake("disk", LocalPlace(folder / "disk"))}
    environment: dict[str, str] = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for name in names:
            place, proxy, variables = _MAKERS[name](stack)
            made[name] = Lake(name, place, proxy)
            environment |= variables
        for name, value in environment.items():
            patched.setenv(name, value)
        for scheme in (scheme for name in names for scheme in SCHEMES[name]):
            store = registry.known_stores().get(scheme)
            if store is not None:  # a new store, because an existing one has a client for another server
                patched.setitem(registry.known_stores(), scheme, type(store)())
        yield Lakes(made, environment)


Made = tuple[Place, Proxy, dict[str, str]]


def _s3(stack: ExitStack) -> Made:
    from support.s3_place import S3Place

    server = running.minio()
    proxy = stack.enter_context(Proxy(server.port, S3()))
    return _place(S3Place, server), proxy, clients.s3_environment(server, proxy.url)


def _azure(stack: ExitStack) -> Made:
    from support.azure_place import AzurePlace

    server = running.azurite()
    proxy = stack.enter_context(Proxy(server.port, Azure()))
    return _place(AzurePlace, server), proxy, clients.azure_environment(server, proxy.url)


def _gcs(stack: ExitStack) -> Made:
    from support.gcs_place import GcsPlace

    server = running.fake_gcs()
    proxy = stack.enter_context(Proxy(server.port, Gcs(), guard=Preconditions(server.port)))
    return _place(GcsPlace, server.url), proxy, clients.gcs_environment(proxy.url)


_MAKERS: Final[dict[str, Callable[[ExitStack], Made]]] = {"s3": _s3, "azure": _azure, "gcs": _gcs}


def _place(kind: Callable[..., Place], *arguments: object) -> Place:
    """A place without the proxy: its variables are set only while it is made."""
    with pytest.MonkeyPatch.context() as patched:
        return kind(*arguments, patched)
