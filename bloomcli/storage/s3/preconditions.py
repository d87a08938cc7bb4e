"""Finds out whether an endpoint honours preconditions. Without them, two writers could undo each other's work.

Amazon's endpoints do. Other endpoints are tested once per process, without changing an object of the user's:

    completion   completes the real upload with a part that doesn't exist, on a condition that fails. An endpoint that
                 checks the condition first answers that it failed. An endpoint that checks the part first is tested
                 again, with an upload to a temporary object.
    put          writes an empty temporary object, which doesn't exist yet, on the condition that it has some tag. An
                 endpoint that ignores the condition writes it, and the object is removed.
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
"""Whether an endpoint honours preconditions, by its address and the kind of request."""


def check(client: S3Client, at: Location, upload: str | None, *, force: bool) -> None:
    """Refuse an endpoint that ignores preconditions.

    Args:
        client: sends the requests.
        at: the object to write.
        upload: the id of the upload to complete; None if the object is put in one request.
        force: skip the check.

    Raises:
        UsageError: the endpoint ignores preconditions.
        WriteError: the endpoint refused the test's requests.
    """
    if force or _honours(client, at, upload):
        return
    raise UsageError(
        "the endpoint ignores preconditions: an object that another program writes at the same time would be lost",
        path=at.uri,
        hint="--force writes it; use it only if no other program writes there",
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
    """Whether a request fails because of its condition. For a missing object, S3 answers that it doesn't exist."""
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
    """A temporary, hidden name in the object's directory."""
    directory, slash, _ = at.key.rpartition("/")
    return at._replace(key=f"{directory}{slash}.bloom-preconditions-{secrets.token_hex(6)}.tmp")
