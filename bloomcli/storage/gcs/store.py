"""The store for Google Cloud Storage. The SDK is imported when the client is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.extras import needed
from bloomcli.storage.objects.writing import WritableObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.gcs.writing import WritingGcsClient


class GcsStore(WritableObjectStore):
    """A store of objects with gs:// and gcs:// URIs."""

    mtime_step_ns = 1_000  # generations are microseconds

    @cached_property
    def client(self) -> WritingGcsClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Google Cloud Storage needs", "gcs"):
            from bloomcli.storage.gcs.writing import WritingGcsClient

        return WritingGcsClient()
