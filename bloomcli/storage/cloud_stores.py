"""The stores of Amazon, Google and Microsoft. A vendor's SDK is imported when its client is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.errors import needed
from bloomcli.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.azure.writing import WritingAzureClient
    from bloomcli.storage.gcs.writing import WritingGcsClient
    from bloomcli.storage.s3.writing import WritingS3Client


class S3Store(ObjectStore):
    """A store of objects with s3://, s3a:// and s3n:// URIs."""

    @cached_property
    def client(self) -> WritingS3Client:
        """The client. Raises UnsupportedError if boto3 isn't installed."""
        with needed("S3 needs", "s3"):
            from bloomcli.storage.s3.writing import WritingS3Client

        return WritingS3Client()


class GcsStore(ObjectStore):
    """A store of objects with gs:// and gcs:// URIs."""

    mtime_step_ns = 1_000  # generations are microseconds

    @cached_property
    def client(self) -> WritingGcsClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Google Cloud Storage needs", "gcs"):
            from bloomcli.storage.gcs.writing import WritingGcsClient

        return WritingGcsClient()


class AzureStore(ObjectStore):
    """A store of blobs with az://, abfs:// and abfss:// URIs."""

    @cached_property
    def client(self) -> WritingAzureClient:
        """The client. Raises UnsupportedError if the SDK isn't installed."""
        with needed("Azure's blobs need", "azure"):
            from bloomcli.storage.azure.writing import WritingAzureClient

        return WritingAzureClient()
