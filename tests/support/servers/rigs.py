"""A store, a proxy in front of it, and `bloom` run as a command that sees the store through the proxy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.cli import Result
from support.servers import clients, running
from support.servers.dialects import S3, Azure, Gcs
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import Place

_ROOT: Final = Path(__file__).parents[3]
_SECONDS: Final = 120


@dataclass(frozen=True)
class Rig:
    """What a test needs to run `bloom` on objects, and to look at them past it."""

    name: str
    place: Place
    proxy: Proxy
    environment: Mapping[str, str]

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "bloomcli", *arguments],
            cwd=_ROOT,
            env=os.environ | self.environment | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def bloom(self, *arguments: str, env: Mapping[str, str] | None = None) -> Result:
        """Run a command."""
        return ended(self.start(*arguments, env=env))


def ended(process: subprocess.Popen[str]) -> Result:
    """What a command says, and its exit code."""
    with process:
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Result(process.returncode, out, err)


def _made(kind: Callable[..., Place], *arguments: object) -> Place:
    """A place whose server only the commands find, by their own variables."""
    with pytest.MonkeyPatch.context() as patched:
        return kind(*arguments, patched)


Settings = Mapping[str, float]
"""Latency and bandwidth of the proxy."""


@contextmanager
def _s3(settings: Settings) -> Iterator[Rig]:
    from support.s3_place import S3Place

    server = running.minio()
    with Proxy(server.port, S3(), **settings) as proxy:
        yield Rig("s3", _made(S3Place, server), proxy, clients.s3_environment(server, proxy.url))


@contextmanager
def _azure(settings: Settings) -> Iterator[Rig]:
    from support.azure_place import AzurePlace

    server = running.azurite()
    with Proxy(server.port, Azure(), **settings) as proxy:
        yield Rig("azure", _made(AzurePlace, server), proxy, clients.azure_environment(server, proxy.url))


@contextmanager
def _gcs(settings: Settings) -> Iterator[Rig]:
    from support.gcs_place import GcsPlace

    server = running.fake_gcs()
    with Proxy(server.port, Gcs(), guard=Preconditions(server.port), **settings) as proxy:
        yield Rig("gcs", _made(GcsPlace, server.url), proxy, clients.gcs_environment(proxy.url))


RIGS: Final[Mapping[str, tuple[str, Callable[[Settings], AbstractContextManager[Rig]]]]] = {
    "s3": ("minio", _s3),
    "azure": ("azurite", _azure),
    "gcs": ("fake-gcs-server", _gcs),
}
"""The stores that `bloom` writes to: the server that has to be installed, and how it is set up."""
