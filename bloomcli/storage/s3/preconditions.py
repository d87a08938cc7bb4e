"""Finds out whether an endpoint honours preconditions: without them, two writers could undo each other's work.

Amazon's endpoints do. Others are asked once in a process, in a way that changes no object of the user's:

    completion   a real upload is completed with a part that it doesn't have, under a condition that isn't met. An
                 endpoint that looks at the condition first answers that it isn't met. One that misses the part first
                 is asked again, with an object of bloom's own.
    put          an object of bloom's own, which doesn't exist, is replaced under the condition that it has a tag. An
                 endpoint that ignores the condition writes it: it has no bytes, and is removed again.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from bloomcli.errors import BloomError, UsageError
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound
from bloomcli.storage.s3.client import S3Client, checksum_parameters

_AMAZONS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_NO_TAG: Final = f'"{"0" * 32}"'
"""A tag that no object has."""

_results: Final[dict[tuple[str, str], bool]] = {}
"""What is known of endpoints, by their addresses and the kind of request."""


def check(client: S3Client, at: Location, upload: str | None, *, force: bool) -> None:
    """Refuse an endpoint that ignores preconditions.

    Args:
        client: makes the requests.
        at: the object to write.
        upload: the id of the upload that is to be completed; None where the object is put in one request.
        force: use it anyway.

    Raises:
        UsageError: it ignores them.
        WriteError: it refuses the requests.
    """
    if force or _honours(client, at, upload):
        return
    raise UsageError(
        "the endpoint ignores preconditions: what another program writes at the same time would be lost",
        path=at.uri,
        hint="--force writes all the same, for when nothing else writes there",
    )


def _honours(client: S3Client, at: Location, upload: str | None) -> bool:
    endpoint = str(client.sdk(at).meta.endpoint_url)
    if (urlsplit(endpoint).hostname or "").endswith(_AMAZONS):
        return True
    kind = (endpoint, "put" if upload is None else "completion")
    if kind not in _results:
        _results[kind] = _put(client, at) if upload is None else _completion(client, at, upload)
    return _results[kind]


def _completion(client: S3Client, at: Location, upload: str) -> bool:
    absent = {"Parts": [{"PartNumber": 9_999, "ETag": _NO_TAG}]}
    if _refused(client, "CompleteMultipartUpload", at, UploadId=upload, MultipartUpload=absent, IfMatch=_NO_TAG):
        return True
    probe = _probe_location(at)
    begun = client.request("CreateMultipartUpload", probe, writes=True)["UploadId"]
    try:
        data = b"bloom"
        part = client.request(
            "UploadPart",
            probe,
            writes=True,
            UploadId=begun,
            PartNumber=1,
            Body=data,
            **checksum_parameters(probe, data),
        )
        real = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        refused = _refused(
            client, "CompleteMultipartUpload", probe, UploadId=begun, MultipartUpload=real, IfMatch=_NO_TAG
        )
    finally:
        with suppress(ObjectNotFound, BloomError):
            client.request("AbortMultipartUpload", probe, writes=True, UploadId=begun)
    if not refused:
        _remove(client, probe)
    return refused


def _put(client: S3Client, at: Location) -> bool:
    probe = _probe_location(at)
    if _refused(client, "PutObject", probe, Body=b"", IfMatch=_NO_TAG, **checksum_parameters(probe, b"")):
        return True
    _remove(client, probe)
    return False


def _refused(client: S3Client, operation: str, at: Location, **parameters: Any) -> bool:
    """Whether a request fails for its condition: S3 answers that there is no object where there is none."""
    try:
        client.request(operation, at, writes=True, **parameters)
    except (Conflict, ObjectNotFound):
        return True
    except BloomError as error:
        if operation == "CompleteMultipartUpload" and "InvalidPart" in error.reason:
            return False
        raise
    return False


def _remove(client: S3Client, at: Location) -> None:
    with suppress(ObjectNotFound, BloomError):
        client.request("DeleteObject", at, writes=True)


def _probe_location(at: Location) -> Location:
    """A hidden name of bloom's own in the object's directory."""
    directory, slash, _ = at.key.rpartition("/")
    return at._replace(key=f"{directory}{slash}.bloom-preconditions-{secrets.token_hex(6)}.tmp")
