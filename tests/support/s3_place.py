"""A directory in a bucket of MinIO, or of moto if MinIO isn't installed."""

from __future__ import annotations

import functools
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bloomcli.storage import registry
from bloomcli.storage.base import Store
from bloomcli.storage.registry import store_of
from bloomcli.storage.remote_stores import S3Store
from support.servers import clients, running
from support.servers.dialects import S3
from support.servers.proxy import Proxy
from support.servers.running import Server
from support.stores import Place


@functools.cache
def _store(put_most: int) -> S3Store:
    """One store for all tests, as without this limit: it takes 100 ms to create its client."""
    store = S3Store()
    store.client.put_most = put_most
    return store


class S3Place(Place):
    """A directory in a separate bucket.

    Args:
        server: MinIO, or moto.
        patched: sets the variables by which boto3 finds the server.
        versioned: the bucket keeps versions.
        put_most: the maximum size of an object that is written in one request, in bytes; None: the store's default.
    """

    notices_equal_bytes = False
    reports_killed_runs = True

    def __init__(
        self,
        server: Server,
        patched: pytest.MonkeyPatch,
        *,
        versioned: bool = False,
        put_most: int | None = None,
    ) -> None:
        if put_most is not None:
            for scheme in ("s3", "s3a", "s3n"):
                patched.setitem(registry.known_stores(), scheme, _store(put_most))
        for name, value in clients.s3_environment(server, server.url).items():
            patched.setenv(name, value)
        self.server = server
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
        """The uploads that were neither completed nor aborted."""
        # Without a prefix, MinIO lists those of the whole bucket; with one, those of the object of that name.
        uploads = self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return [f"upload {upload['UploadId']} of {upload['Key']}" for upload in uploads]

    def leave_by_killed_run(self, name: str) -> None:
        answer = self.client.create_multipart_upload(Bucket=self.bucket, Key=f"lake/{name}")
        upload = {"Bucket": self.bucket, "Key": f"lake/{name}", "UploadId": answer["UploadId"]}
        self.client.upload_part(**upload, PartNumber=1, Body=b"part")

    def end_upload(self, remark: str) -> None:
        words = shlex.split(remark.partition("`")[2].partition("`")[0])
        assert words[:3] == ["aws", "s3api", "abort-multipart-upload"]
        options = dict(zip(words[3::2], words[4::2], strict=True))
        assert options["--endpoint-url"] == self.client.meta.endpoint_url
        self.client.abort_multipart_upload(
            Bucket=options["--bucket"], Key=options["--key"], UploadId=options["--upload-id"]
        )


def s3(*, put_most: int | None = None) -> Callable[[Path, pytest.MonkeyPatch], Place]:
    """The function that makes a place in MinIO, or in moto if MinIO isn't installed."""

    def make(_: Path, patched: pytest.MonkeyPatch) -> Place:
        server = running.minio() if running.installed("minio") else running.moto()
        return S3Place(server, patched, put_most=put_most)

    return make


@contextmanager
def seen_through_a_proxy(
    place: S3Place, patched: pytest.MonkeyPatch, attempts: int = 3
) -> Iterator[tuple[Proxy, S3Store]]:
    """A store whose requests to the place's server go through a proxy."""
    with Proxy(place.server.port, S3()) as proxy:
        for name, value in clients.s3_environment(place.server, proxy.url).items():
            patched.setenv(name, value)
        patched.setenv("AWS_MAX_ATTEMPTS", str(attempts))
        yield proxy, S3Store()
