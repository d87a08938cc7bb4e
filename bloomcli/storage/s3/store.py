"""The store for S3. boto3 is imported when the client is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli.extras import needed
from bloomcli.storage.objects.writing import WritableObjectStore

if TYPE_CHECKING:
    from bloomcli.storage.s3.replacing import WritingS3Client


class S3Store(WritableObjectStore):
    """A store of objects with s3://, s3a:// and s3n:// URIs."""

    @cached_property
    def client(self) -> WritingS3Client:
        """The client. Raises UnsupportedError if boto3 isn't installed."""
        with needed("S3 needs", "s3"):
            import boto3  # noqa: F401

        from bloomcli.storage.s3.replacing import WritingS3Client

        return WritingS3Client()
