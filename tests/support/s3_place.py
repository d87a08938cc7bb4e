"""A directory in a bucket of MinIO, or of moto where that isn't installed."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from bloomcli.storage.base import Store
from bloomcli.storage.registry import store_of
from support.servers import clients
from support.servers.running import Server
from support.stores import Place


class S3Place(Place):
    """A directory in a bucket of its own."""

    def __init__(self, server: Server, patched: pytest.MonkeyPatch, *, versioned: bool = False) -> None:
        for name, value in clients.s3_environment(server, server.url).items():
            patched.setenv(name, value)
        self.client: Any = clients.s3(server)
        self.bucket = f"bloom-{secrets.token_hex(6)}"
        self.client.create_bucket(Bucket=self.bucket)
        if versioned:
            self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store of its URIs."""
        return store_of(self.path())

    def path(self, name: str = "") -> str:
        return f"s3://{self.bucket}/lake" + (f"/{name}" if name else "")

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=f"lake/{name}", Body=data)

    def get(self, name: str) -> bytes | None:
        try:
            data: bytes = self.client.get_object(Bucket=self.bucket, Key=f"lake/{name}")["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        return data

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"lake/{name}")

    def names(self) -> set[str]:
        found = set(self.unfinished())
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix="lake/"):
            found |= {item["Key"].removeprefix("lake/") for item in page.get("Contents", [])}
        return found

    def unfinished(self) -> list[str]:
        """The uploads that nobody has completed or aborted."""
        # Without a prefix, MinIO lists those of the whole bucket; with one, those of the object of that name.
        uploads = self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return [f"upload {upload['UploadId']} of {upload['Key']}" for upload in uploads]
