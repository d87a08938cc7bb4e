"""Directories in all stores at once, each behind a proxy that records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bloomcli.storage import registry
from support.servers.proxy import Proxy
from support.servers.served import served
from support.stores import LocalPlace, Place

_ROOT: Final = Path(__file__).parents[3]

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
            store = stack.enter_context(served(name))
            made[name] = Lake(name, store.place, store.proxy)
            environment |= store.environment
        for name, value in environment.items():
            patched.setenv(name, value)
        for scheme in (scheme for name in names for scheme in SCHEMES[name]):
            known = registry.known_stores().get(scheme)
            if known is not None:  # a new store, because an existing one has a client for another server
                patched.setitem(registry.known_stores(), scheme, type(known)())
        yield Lakes(made, environment)
