"""Unfinished uploads to keys that are to be written. A killed run has left them, or another program is at work.

S3 doesn't tell whose they are, so that none is ever ended here. The user is told, with the commands that end them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from bloomcli.errors import BloomError
from bloomcli.storage.base import Swept
from bloomcli.storage.objects.client import Absent, Conflict, Location
from bloomcli.storage.s3.client import S3Client, bucket_of

_MOST_PAGES: Final = 10
"""Pages of 1,000 uploads that are looked through."""
_MOST_TOLD: Final = 10


def sweep(client: S3Client, places: Sequence[Location]) -> Swept:
    """Tell of unfinished uploads to some keys. A store that doesn't list them has nothing to tell."""
    found: list[tuple[Location, Any]] = []
    by_root: dict[str, set[str]] = {}
    for at in places:
        by_root.setdefault(at.root, set()).add(at.key)
    for root, keys in by_root.items():
        try:
            found += _of_bucket(client, root, keys)
        except (Absent, Conflict, BloomError):
            continue
    told = [
        f"an upload to {at.uri} that began at {item['Initiated']:%Y-%m-%d %H:%M:%S %Z} isn't complete: if nothing "
        f"writes there any more, {command_for(client, at, item['UploadId'])} ends it"
        for at, item in found[:_MOST_TOLD]
    ]
    if len(found) > len(told):
        told.append(f"{len(found) - len(told)} more uploads aren't complete")
    return Swept(left=[f"{at.uri} (upload {item['UploadId']})" for at, item in found], remarks=told)


def command_for(client: S3Client, at: Location, upload: str) -> str:
    """The command line that ends an upload."""
    endpoint = str(client.sdk(at).meta.endpoint_url)
    parts = urlsplit(endpoint)
    other = []
    if not (parts.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
        other = ["--endpoint-url", parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()]
    where = ["--bucket", bucket_of(at), "--key", at.key, "--upload-id", upload, *other]
    return f"`{shlex.join(['aws', 's3api', 'abort-multipart-upload', *where])}`"


def _of_bucket(client: S3Client, root: str, keys: set[str]) -> list[tuple[Location, Any]]:
    first, last = min(keys), max(keys)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    found = list(_listed(client, Location(root, first[:same]), keys))
    if not found and len(keys) > 1 and client.is_minio:  # it takes a prefix for a whole key
        found = list(_listed(client, Location(root, ""), keys))
    return found


def _listed(client: S3Client, at: Location, keys: set[str]) -> Iterator[tuple[Location, Any]]:
    options: dict[str, Any] = {"Prefix": at.key}
    for _ in range(_MOST_PAGES):
        answer = client.request("ListMultipartUploads", at, whole=False, **options)
        for item in answer.get("Uploads", ()):
            if item["Key"] in keys:
                yield at._replace(key=item["Key"]), item
        if not answer.get("IsTruncated"):
            return
        options |= {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}
