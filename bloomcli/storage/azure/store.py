"""The store for Azure Blob Storage. The SDK is imported when the client is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.extras import needed
from bloomcli.storage.objects.writing import WritableObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.azure.writing import WritingAzureClient


class AzureStore(WritableObjectStore):
    """A store of blobs with az://, abfs:// and abfss:// URIs."""

    @cached_property
    def client(self) -> WritingAzureClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Azure's blobs need", "azure"):
            from bloomcli.storage.azure.writing import WritingAzureClient

        return WritingAzureClient()
