"""The store for Azure Blob Storage. The SDK is imported when the client is first used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.extras import needed
from bloomcli.storage.base import KeptRange
from bloomcli.storage.objects.client import Location, ObjectInfo
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.whole_object_store import NewObject, WholeObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.azure.client import AzureClient


class AzureStore(WholeObjectStore):
    """A store of blobs with az://, abfs:// and abfss:// URIs.

    There is nothing to sweep: the service deletes uncommitted blocks, which are invisible to readers.
    """

    @cached_property
    def client(self) -> AzureClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Azure's blobs need", "azure"):
            from bloomcli.storage.azure.client import AzureClient
        return AzureClient()

    def check_replaceable(self, at: Location, known: ObjectInfo | None = None) -> None:
        """Refuse blobs that are leased, held, immutable, archived or not block blobs. Raises UsageError."""
        from bloomcli.storage.azure.writing import check_replaceable

        check_replaceable(self.client, at, known)

    def upload(self, new_object: NewObject) -> None:
        """Commit a new list of blocks. Raises Conflict, WriteError."""
        from bloomcli.storage.azure.writing import KeptProperties, read_kept_properties, write

        kept = KeptProperties()
        if new_object.origin is not None:
            kept = read_kept_properties(
                self.client, new_object.origin.at, new_object.origin.info.tag, whole=new_object.is_copy
            )
        write(
            self.client,
            new_object.at,
            new_object.content,
            new_object.precondition,
            kept,
            progress=new_object.progress,
        )

    def keeps_ranges(self, ranges: Sequence[KeptRange], source: ObjectSource, at: Location) -> bool:
        """Whether the source is the blob itself and has blocks, which the new list can name."""
        from bloomcli.storage.azure.writing import has_blocks

        del ranges
        return self.client.identity(source.at) == self.client.identity(at) and has_blocks(self.client, source)
