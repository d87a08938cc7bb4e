"""A directory in a bucket of fake-gcs-server, behind the proxy that checks preconditions."""

from __future__ import annotations

import functools
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from google.api_core.exceptions import NotFound

from bloomcli.storage.base import Store
from bloomcli.storage.remote_stores import GcsStore
from support.servers import clients, running
from support.servers.dialects import Gcs
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy
from support.stores import Place

_ROOT = Path(__file__).parents[2]

_KILLED_BEFORE_COMPOSE = """
import os, signal, sys
from bloomcli.storage.base import KeptRange
from bloomcli.storage.gcs import writing
from bloomcli.storage.registry import store_of

path = sys.argv[1]
store = store_of(path)
writing._GcsWriter._commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

def pieces(size):
    yield KeptRange(0, size)
    yield b"new bytes"

with store.open(path) as source:
    store.replace(store.normal(path), pieces(source.size), source=source, overwrite=True)
"""


@functools.cache
def guarded() -> Proxy:
    """The proxy in front of the server, for this process."""
    port = running.fake_gcs().port
    proxy = Proxy(port, Gcs(), guard=Preconditions(port))
    proxy.__enter__()
    return proxy


class GcsPlace(Place):
    """A directory in a separate bucket."""

    unfinished_shows = False

    def __init__(self, url: str, patched: pytest.MonkeyPatch) -> None:
        for name, value in clients.gcs_environment(url).items():
            patched.setenv(name, value)
        self.store: Store = GcsStore()
        self.bucket = clients.gcs(url).create_bucket(f"bloom-{secrets.token_hex(6)}")

    def path(self, name: str = "") -> str:
        return f"gs://{self.bucket.name}/lake" + (f"/{name}" if name else "")

    def put(self, name: str, data: bytes) -> None:
        self.bucket.blob(f"lake/{name}").upload_from_string(data)

    def get(self, name: str) -> bytes | None:
        try:  # one request: a running command removes temporary objects between two requests
            return bytes(self.bucket.blob(f"lake/{name}").download_as_bytes())
        except NotFound:
            return None

    def remove(self, name: str) -> None:
        self.bucket.delete_blob(f"lake/{name}")

    def names(self) -> set[str]:
        """Temporary objects, too: they are objects."""
        return {found.name.removeprefix("lake/") for found in self.bucket.list_blobs(prefix="lake/")}

    def leave_by_killed_run(self, name: str) -> None:
        """Have a run killed after it has uploaded the tail and before it composes the object."""
        command = [sys.executable, "-c", _KILLED_BEFORE_COMPOSE, self.path(name)]
        done = subprocess.run(command, cwd=_ROOT, env=os.environ | {"PYTHONPATH": str(_ROOT)}, check=False)
        assert done.returncode == -signal.SIGKILL
