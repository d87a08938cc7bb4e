"""Reads and lists objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomcli.errors import BloomError, UnreadableError, UsageError
from bloomcli.storage.gcs.api import Api, Request, document_in
from bloomcli.storage.gcs.uploads import checksum_of, insert
from bloomcli.storage.objects.client import (
    Client,
    Conflict,
    Entry,
    Location,
    ObjectInfo,
    ObjectNotFound,
    Page,
    Precondition,
    content_range,
)
from bloomcli.storage.objects.network import ListingProgress, check_range, size_in

SCHEMES: Final = ("gs", "gcs")
_NO_RANGE: Final = 416


class GcsClient(Client):
    """Requests to Google Cloud Storage."""

    def __init__(self) -> None:
        self.api = Api()

    def locate(self, uri: str) -> Location:
        """Parse a URI. Raises UsageError."""
        scheme, _, rest = uri.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme not in SCHEMES or not bucket or not {"@", ":"}.isdisjoint(bucket):
            raise UsageError("the URI names no bucket", path=uri, hint="gs://BUCKET/NAME")
        return Location(f"{scheme}://{bucket}", key)

    def identity(self, at: Location) -> str:
        """The URI with the scheme gs, as in Google's own tools."""
        return f"gs://{at.bucket}/{at.key}"

    def resource(self, at: Location) -> dict[str, Any] | None:
        """The API's description of an object; None if it doesn't exist. Raises UnreadableError."""
        try:
            with self.api.answers.expecting(ObjectNotFound, at):
                return self.api.send_for_object(at, Request("GET", self.api.url(at.bucket, at.key)))
        except ObjectNotFound:
            return None

    def head(self, at: Location) -> ObjectInfo | None:
        """An object's size and generation; None if it doesn't exist."""
        resource = self.resource(at)
        return None if resource is None else info_of(resource)

    def read_tail(self, at: Location, length: int) -> tuple[bytes, ObjectInfo]:
        """Read the last bytes of an object. Raises ObjectNotFound."""
        headers = {"Range": f"bytes=-{length}"}
        request = Request("GET", self.api.url(at.bucket, at.key), {"alt": "media"}, headers, max_bytes=length)
        with self.api.answers.expecting(ObjectNotFound, at):
            answer = self.api.send(at, request)
        if answer.status == _NO_RANGE:  # an empty object has no ranges
            info = self.head(at)
            if info is None:
                raise ObjectNotFound
            return b"", info
        found_range = content_range(answer.headers)
        size = len(answer.content) if found_range is None else found_range.size
        start = max(size - length, 0)
        check_range(at, answer.content, found_range, start, size - start)
        with self.api.answers.checked(at):
            return answer.content, _info(size, answer.headers["x-goog-generation"])

    def read(self, at: Location, offset: int, length: int, tag: str) -> bytes:
        """Read a range of an object on the condition of its generation. Raises ObjectNotFound, Conflict."""
        request = Request(
            "GET",
            self.api.url(at.bucket, at.key),
            {"alt": "media", "ifGenerationMatch": tag},
            {"Range": f"bytes={offset}-{offset + length - 1}"},
            max_bytes=length,
        )
        answer = self.api.send(at, request)
        if answer.headers.get("x-goog-generation", tag) != tag:
            raise Conflict
        check_range(at, answer.content, content_range(answer.headers), offset, length)
        return answer.content

    def pages(self, at: Location, *, delimiter: bool = False, limit: int | None = None) -> Iterator[Page]:
        """List the objects whose names begin with a prefix, one page per request."""
        for document in self.list_pages(at, "name,size,generation", delimiter=delimiter, limit=limit):
            with self.api.answers.checked(at):
                entries = [
                    Entry(item["name"], size_in(item["size"]), str(item.get("generation", "")))
                    for item in document.get("items", [])
                ]
            yield Page(entries, document.get("prefixes", []), last=not document.get("nextPageToken"))

    def list_pages(
        self, at: Location, fields: str, *, delimiter: bool = False, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The pages of a listing as JSON documents, with the given fields of each object."""
        params: dict[str, str] = {
            "prefix": at.key,
            "fields": f"items({fields}),prefixes,nextPageToken",
            **({"delimiter": "/"} if delimiter else {}),
            **({} if limit is None else {"maxResults": str(limit)}),
        }
        progress = ListingProgress(at, self.api.answers)
        while True:
            try:
                with self.api.answers.expecting(ObjectNotFound, at):
                    answer = self.api.send(at, Request("GET", self.api.url(at.bucket), params))
            except ObjectNotFound:
                raise UnreadableError(
                    "can't be read: there is no such bucket", path=at.uri, hint="check the bucket's name"
                ) from None
            with self.api.answers.checked(at):
                document = document_in(answer)
                named = all(isinstance(item["name"], str) for item in document.get("items", []))
                if not named or not all(isinstance(prefix, str) for prefix in document.get("prefixes", [])):
                    raise TypeError("a name isn't a text")
            yield document
            if not document.get("nextPageToken"):
                return
            page = Page(document.get("items", ()), document.get("prefixes", ()))
            params["pageToken"] = progress.following(page, document["nextPageToken"])

    def put(self, at: Location, data: bytes, precondition: Precondition | str) -> ObjectInfo:
        """Write an object in one request. Raises Conflict."""
        try:
            params = precondition_parameters(precondition)
            with self.api.answers.expecting(Conflict, at, writing=True):
                return info_of(insert(self.api, at, len(data), lambda: iter([data]), {}, params))
        except Conflict:  # possibly of a retry, after the answer to a successful attempt was lost
            resource = self.resource(at)
            if (
                resource is None
                or resource["generation"] == precondition
                or resource.get("crc32c") != checksum_of(data)
            ):
                raise
            return info_of(resource)

    def try_delete(self, at: Location, generation: str | None = None) -> bool:
        """Delete an object if it exists. Returns False if that failed."""
        params = {} if generation is None else {"ifGenerationMatch": generation}
        try:
            self.api.send(at, Request("DELETE", self.api.url(at.bucket, at.key), params), writing=True)
        except ObjectNotFound:
            return True
        except (Conflict, BloomError):
            return False
        return True


def precondition_parameters(precondition: Precondition | str) -> dict[str, str]:
    """The request parameters for a precondition."""
    if precondition is Precondition.NONE:
        return {}
    return {"ifGenerationMatch": "0" if precondition is Precondition.NO_OBJECT else precondition}


def info_of(resource: Mapping[str, Any]) -> ObjectInfo:
    """An object's information, from the API's description of it."""
    return _info(size_in(resource["size"]), str(resource["generation"]))


def _info(size: int, generation: str) -> ObjectInfo:
    # A generation is the time at which the object was written, in microseconds. Answers to reads have no other time.
    return ObjectInfo(size, generation, size_in(size_in(generation) * 1000))
