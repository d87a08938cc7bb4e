"""A directory in a container of Azurite, Microsoft's emulator of Azure's blobs."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobBlock

from bloomcli.storage.base import Store
from bloomcli.storage.remote_stores import AzureStore
from support.servers import clients
from support.servers.running import Server
from support.stores import Place


class AzurePlace(Place):
    """A directory in a separate container. Blobs of other programs have blocks."""

    unfinished_shows = False

    def __init__(self, server: Server, patched: pytest.MonkeyPatch) -> None:
        for name, value in clients.azure_environment(server, server.url).items():
            patched.setenv(name, value)
        self.store: Store = AzureStore()
        self.container = clients.azure(server).create_container(f"bloom-{secrets.token_hex(6)}")

    def path(self, name: str = "") -> str:
        return f"az://{self.container.container_name}/lake" + (f"/{name}" if name else "")

    def blob(self, name: str) -> Any:
        """The SDK's client of a blob."""
        return self.container.get_blob_client(f"lake/{name}")

    def put(self, name: str, data: bytes) -> None:
        self.put_in_blocks(name, data, 1000 if len(data) < 1 << 20 else 1 << 20)

    def put_in_blocks(self, name: str, data: bytes, size: int) -> None:
        """Write a blob as blocks of a size."""
        blob, names = self.blob(name), []
        for at in range(0, len(data), size):
            names.append(base64.b64encode(secrets.token_bytes(9)).decode())
            blob.stage_block(names[-1], data[at : at + size])
        blob.commit_block_list([BlobBlock(name) for name in names])

    def get(self, name: str) -> bytes | None:
        try:  # one request: a running command may remove the blob between two requests
            return bytes(self.blob(name).download_blob().readall())
        except ResourceNotFoundError:
            return None

    def remove(self, name: str) -> None:
        self.blob(name).delete_blob()

    def names(self) -> set[str]:
        found = self.container.list_blobs(name_starts_with="lake/", include=["uncommittedblobs", "snapshots"])
        return {item.name.removeprefix("lake/") for item in found}
