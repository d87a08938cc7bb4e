"""Properties of an object besides its content: those that a new object keeps, and those that it would lose."""

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
"""Fields of answers to HeadObject and GetObject that are parameters of PutObject and CreateMultipartUpload too."""

_ARCHIVED: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})

_FORCE: Final = "-o writes another object; --force replaces it all the same"


def kept_properties(client: S3Client, at: Location, info: ObjectInfo, *, force: bool) -> dict[str, Any]:
    """The parameters that give a new object the properties of an existing one.

    Args:
        client: requests the tags.
        at: the existing object.
        info: its information from reading it.
        force: leave out properties that can't be read.

    Raises:
        UsageError: its tags or some of its metadata can't be read.
        UnreadableError: the request failed.
    """
    details = info.details or {}
    parameters = {name: details[name] for name in _PROPERTIES if details.get(name)}
    if details.get("Expires"):
        parameters["Expires"] = details["Expires"]
    if details.get("MissingMeta") and not force:
        raise UsageError(
            f"{details['MissingMeta']} of the object's metadata entries can't be read, and would be lost",
            path=at.uri,
            hint=_FORCE,
        )
    tags = _tags(client, at, force=force)
    if tags:
        parameters["Tagging"] = urlencode(tags)
    return parameters


def check_no_loss(at: Location, details: Mapping[str, Any]) -> None:
    """Refuse to replace an object that is protected or archived.

    Raises:
        UsageError: the object has a lock or a legal hold, or is archived.
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
    """Whether an object is in an archive class or tier, restored or not."""
    return details.get("StorageClass") in _ARCHIVED or bool(details.get("ArchiveStatus"))


def _tags(client: S3Client, at: Location, *, force: bool) -> list[tuple[str, str]]:
    try:
        answer = client.request("GetObjectTagging", at)
    except ObjectNotFound:
        return []  # the object has no tags, or is gone: the next request detects that
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
            return []  # the store doesn't support tags
        raise
    return [(tag["Key"], tag["Value"]) for tag in answer.get("TagSet", ())]


def recovery_hint(at: Location, info: ObjectInfo | None) -> str:
    """A hint that says how to restore an object that was replaced."""
    version = None if info is None else (info.details or {}).get("VersionId")
    if version in {None, "null"}:
        return "the bucket keeps no versions, so the former object is lost: get it from its source again"
    bucket, key = at.bucket, at.key
    return (
        f"the former object is version {version}: `aws s3api copy-object --bucket {bucket} --key '{key}' "
        f"--copy-source '{bucket}/{key}?versionId={version}'` brings it back"
    )
