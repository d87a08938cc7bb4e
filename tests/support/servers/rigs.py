"""A store, a proxy in front of it, and `bloom` run as a command that sees the store through the proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from conftest import need

from support.cli import Result
from support.servers import running
from support.servers.forking import Forks
from support.servers.proxy import Proxy
from support.servers.served import SERVERS, served
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


@contextmanager
def rig_of(name: str) -> Iterator[Rig]:
    """A rig for one of the stores of `SERVERS`. Without its server, the test skips."""
    need(running.installed(SERVERS[name]), f"{SERVERS[name]}: python tests/support/servers/install.py")
    with served(name) as store, Forks(store.environment) as forks:
        yield Rig(name, store.place, store.proxy, forks)
