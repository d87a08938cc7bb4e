"""Reads and lists blobs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any, Final

from azure.core import MatchConditions

from bloomcli.errors import UnreadableError
from bloomcli.storage.azure import connection
from bloomcli.storage.azure.connection import Container
from bloomcli.storage.azure.errors import ANSWERS, convert_sdk_errors
from bloomcli.storage.objects.bounded import content_of
from bloomcli.storage.objects.client import (
    Client,
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
)
from bloomcli.storage.objects.network import ListingProgress, check_range, nanoseconds_in, size_in

_FOLDER = "hdi_isfolder"
"""The metadata key of an empty blob that represents a directory."""

PROPERTIES: Final = "properties"
"""The key in `ObjectInfo.details` of the SDK's properties of a blob."""
_TRIES: Final = 8
"""Maximum number of attempts to read the tail of a blob that other programs keep replacing."""


class AzureClient(Client):
    """Requests to Azure Blob Storage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._services: dict[tuple[object, ...], Any] = {}

    def locate(self, uri: str) -> Location:
        """Parse a URI. Raises UsageError."""
        scheme, _, rest = uri.partition("://")
        authority, _, key = rest.partition("/")
        at = Location(f"{scheme}://{authority}", key)
        connection.container(at)
        return at

    def identity(self, at: Location) -> str:
        """The blob's URL without a signature."""
        where = connection.container(at)
        return f"{self._service(where, at).url.partition('?')[0].rstrip('/')}/{where.name}/{at.key}"

    def blob(self, at: Location) -> Any:
        """The SDK's client of a blob. Raises UsageError."""
        where = connection.container(at)
        return self._service(where, at).get_blob_client(where.name, at.key)

    def properties(self, at: Location) -> Any | None:
        """The SDK's properties of a blob; None if it doesn't exist or represents a directory."""
        try:
            with ANSWERS.expecting(ObjectNotFound, at), convert_sdk_errors(at):
                properties = self.blob(at).get_blob_properties()
                info_of(properties)
                return None if _is_folder(properties) else properties
        except ObjectNotFound:
            return None

    def head(self, at: Location) -> ObjectInfo | None:
        """A blob's size and ETag; None if it doesn't exist."""
        properties = self.properties(at)
        return None if properties is None else info_of(properties)

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of a blob, in two requests: Azure has no suffix ranges. Raises ObjectNotFound."""
        for _ in range(_TRIES):
            info = self.head(at)
            if info is None:
                raise ObjectNotFound
            wanted = min(length, info.size)
            try:
                return (self.read(at, info.size - wanted, wanted, info.tag) if wanted else b""), info
            except Conflict:
                continue  # another program replaced the blob between the two requests
        raise UnreadableError(
            "can't be read: other programs keep replacing it", path=at.uri, hint="try again when they are done"
        )

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range of a blob on the condition of its tag. Raises ObjectNotFound, Conflict."""
        with convert_sdk_errors(at), content_of(length):
            download = self.blob(at).download_blob(offset, length, max_concurrency=1, **precondition_parameters(tag))
            data: bytes = download.readall()
        check_range(at, data, None, offset, length)
        return data

    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """List the blobs whose names begin with a prefix, without those that represent directories."""
        from azure.storage.blob import BlobPrefix

        where = connection.container(at)
        options: dict[str, Any] = {"name_starts_with": at.key, "include": ["metadata"], "results_per_page": limit}
        with ANSWERS.expecting((), at), convert_sdk_errors(at):
            inside = self._service(where, at).get_container_client(where.name)
            listing = inside.walk_blobs(delimiter="/", **options) if delimiter else inside.list_blobs(**options)
            pages = listing.by_page()
            progress = ListingProgress(at, ANSWERS)
            for items in map(list, pages):
                token = getattr(pages, "continuation_token", None)
                page = Page(
                    [_entry(i) for i in items if not isinstance(i, BlobPrefix) and not _is_folder(i)],
                    [_text(i.name) for i in items if isinstance(i, BlobPrefix)],
                    last=not token,
                )
                yield page
                if token:
                    progress.following(page, token)

    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write a blob in one request. Raises Conflict."""
        with ANSWERS.expecting(Conflict, at, writing=True), convert_sdk_errors(at, writing=True):
            done = self.blob(at).upload_blob(
                data,
                overwrite=True,
                max_concurrency=1,
                validate_content=True,
                **precondition_parameters(precondition),
            )
            return ObjectInfo(len(data), _text(done["etag"]), nanoseconds_in(done["last_modified"].timestamp()))

    def _service(self, where: Container, at: Location) -> Any:
        key = os.getpid(), where.host, *map(os.environ.get, connection.VARIABLES)
        with self._lock:
            if key not in self._services:
                self._services[key] = connection.service(where, at)
            return self._services[key]


def precondition_parameters(precondition: Precondition | str) -> dict[str, Any]:
    """The SDK's arguments for a precondition."""
    if precondition is Precondition.NONE:
        return {}
    if precondition is Precondition.NO_OBJECT:
        return {"match_condition": MatchConditions.IfMissing}
    return {"etag": precondition, "match_condition": MatchConditions.IfNotModified}


def info_of(properties: Any) -> ObjectInfo:
    """A blob's information, from the SDK's properties. Raises ValueError, TypeError, AttributeError."""
    time = nanoseconds_in(properties.last_modified.timestamp())
    return ObjectInfo(size_in(properties.size), _text(properties.etag), time, {PROPERTIES: properties})


def _text(value: object) -> str:
    """A required text of an answer. Raises TypeError."""
    if not isinstance(value, str) or not value:
        raise TypeError("the answer lacks a text")
    return value


def _is_folder(properties: Any) -> bool:
    metadata = properties.metadata or {}
    return not properties.size and any(key.lower() == _FOLDER and value == "true" for key, value in metadata.items())


def _entry(properties: Any) -> Entry:
    tag = (properties.etag or "").strip('"')  # listings omit the quotes
    return Entry(_text(properties.name), size_in(properties.size), f'"{tag}"' if tag else "")
