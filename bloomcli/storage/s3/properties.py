"""Properties of an object other than its content: a new object gets them, or would lose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from bloomcli.errors import UnreadableError, UsageError
from bloomcli.storage.objects.client import AccessDenied, Location, ObjectInfo, ObjectNotFound
from bloomcli.storage.s3.client import S3Client
from bloomcli.storage.s3.errors import restore_command

_PROPERTIES: Final = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Metadata",
    "ServerSideEncryption",
    "SSEKMSKeyId",
    "BucketKeyEnabled",
    "StorageClass",
    "WebsiteRedirectLocation",
)
"""What HeadObject and GetObject answer, and PutObject and CreateMultipartUpload take."""

_ARCHIVED: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})

_FORCE: Final = "-o writes another object; --force replaces it all the same"


def kept_properties(client: S3Client, at: Location, info: ObjectInfo, *, force: bool) -> dict[str, Any]:
    """The parameters that give a new object what an object has besides its content.

    Args:
        client: makes the request for tags.
        at: the object.
        info: its information from reading it.
        force: without what can't be read.

    Raises:
        UsageError: its tags can't be read, or some of its metadata.
        UnreadableError: the store doesn't answer.
    """
    details = info.details or {}
    found = {name: details[name] for name in _PROPERTIES if details.get(name)}
    if details.get("Expires"):
        found["Expires"] = details["Expires"]
    if details.get("MissingMeta") and not force:
        raise UsageError(
            f"{details['MissingMeta']} of the object's metadata entries can't be read, and would be lost",
            path=at.uri,
            hint=_FORCE,
        )
    tags = _tags(client, at, force=force)
    if tags:
        found["Tagging"] = urlencode(tags)
    return found


def check_no_loss(at: Location, details: Mapping[str, Any]) -> None:
    """Refuse to replace an object that is protected, or archived.

    Raises:
        UsageError: it has an object lock or a legal hold, or it is archived.
    """
    mode, hold = details.get("ObjectLockMode"), details.get("ObjectLockLegalHoldStatus")
    if hold == "ON" or details.get("ObjectLockEventHold") == "ON":
        raise UsageError("the object has a legal hold, which the new one would not have", path=at.uri, hint=_FORCE)
    if mode:
        end = details.get("ObjectLockRetainUntilDate")
        until = f" until {end:%Y-%m-%d}" if end else ""
        raise UsageError(
            f"the object is locked ({mode}{until}), and the new one wouldn't be",
            path=at.uri,
            hint=_FORCE,
        )
    if is_archived(details):
        archived = details.get("ArchiveStatus") or details["StorageClass"]
        restored = 'ongoing-request="false"' in str(details.get("Restore"))
        raise UsageError(
            f"the object is archived (storage class {archived})"
            + (", and readable for some days" if restored else ""),
            path=at.uri,
            hint=_FORCE if restored else f"{restore_command(at, archived)}; then {_FORCE}",
        )


def is_archived(details: Mapping[str, Any]) -> bool:
    """Whether an object has to be restored before it can be read, or had to be."""
    return details.get("StorageClass") in _ARCHIVED or bool(details.get("ArchiveStatus"))


def _tags(client: S3Client, at: Location, *, force: bool) -> list[tuple[str, str]]:
    try:
        answer = client.request("GetObjectTagging", at)
    except ObjectNotFound:
        return []  # the object is gone, which the next request finds out, or has no tags
    except AccessDenied:
        if force:
            return []
        raise UsageError(
            "the object's tags can't be read, and would be lost: the credentials need s3:GetObjectTagging",
            path=at.uri,
            hint="--force replaces the object without its tags",
        ) from None
    except UnreadableError as error:
        if any(text in error.reason for text in ("NotImplemented", "MethodNotAllowed", " 501 ")):
            return []  # the store knows no tags
        raise
    return [(tag["Key"], tag["Value"]) for tag in answer.get("TagSet", ())]


def recovery_hint(at: Location, info: ObjectInfo | None) -> str:
    """A hint on how to restore an object that was replaced."""
    version = None if info is None else (info.details or {}).get("VersionId")
    if version in {None, "null"}:
        return "the bucket keeps no versions, so that the former object is gone: get it from its source again"
    bucket, key = at.root.partition("://")[2], at.key
    return (
        f"the former object is version {version}: `aws s3api copy-object --bucket {bucket} --key '{key}' "
        f"--copy-source '{bucket}/{key}?versionId={version}'` brings it back"
    )
