"""A directory in a bucket of fake-gcs-server, with preconditions as `support/servers/gcs.py` enforces them."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from bloomcli.storage.base import Store
from bloomcli.storage.registry import store_of
from support.servers import clients
from support.stores import Place


class GcsPlace(Place):
    """A directory in a bucket of its own."""

    def __init__(self, url: str, patched: pytest.MonkeyPatch) -> None:
        for name, value in clients.gcs_environment(url).items():
            patched.setenv(name, value)
        self.bucket: Any = clients.gcs(url).create_bucket(f"bloom-{secrets.token_hex(6)}")

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store of its URIs."""
        return store_of(self.path())

    def path(self, name: str = "") -> str:
        return f"gs://{self.bucket.name}/lake" + (f"/{name}" if name else "")

    def put(self, name: str, data: bytes) -> None:
        self.bucket.blob(f"lake/{name}").upload_from_string(data, "application/octet-stream")

    def get(self, name: str) -> bytes | None:
        blob = self.bucket.get_blob(f"lake/{name}")
        return None if blob is None else blob.download_as_bytes()

    def remove(self, name: str) -> None:
        self.bucket.blob(f"lake/{name}").delete()

    def names(self) -> set[str]:
        """With the parts that a compose has joined: they are objects."""
        return {blob.name.removeprefix("lake/") for blob in self.bucket.list_blobs()}
