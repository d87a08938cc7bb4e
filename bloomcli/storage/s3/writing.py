"""Replaces an object, or writes a new one, on preconditions. The steps are in `bloomcli.storage.s3`.

Without preconditions, two writers could undo each other's work. Amazon's endpoints honour them. Other
endpoints are tested once per process, without changing an object of the user's:

    completion   completes the real upload with a part that doesn't exist, on a condition that fails. An endpoint that
                 checks the condition first answers that it failed. An endpoint that checks the part first is tested
                 again, with an upload to a temporary object.
    put          writes an empty temporary object, which doesn't exist yet, on the condition that it has some tag. An
                 endpoint that ignores the condition writes it, and the object is removed.

A dry run gets an estimate of the requests and bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from bloomcli.errors import BloomError, UsageError
from bloomcli.model.traffic import Traffic
from bloomcli.storage import traffic
from bloomcli.storage.base import KeptRange, Source, SweepResult
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import outline_segments, within
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.writing import NewObject, Writer, WritingClient
from bloomcli.storage.s3.client import S3Client, checksum_parameters
from bloomcli.storage.s3.properties import check_no_loss, kept_properties
from bloomcli.storage.s3.upload import (
    COMPARED_BYTES,
    UPLOAD_BYTES,
    Upload,
    command_for,
    complete_object,
    next_parts,
    sizes_for,
    sweep,
)

_LOOKING: Final = 1
"""Requests that read the properties to keep."""
_AROUND_PARTS: Final = 3
"""Requests that begin an upload, complete it, and read the new object's tail."""
_AROUND_PUT: Final = 1
"""Requests that read the new object's tail."""


_AMAZONS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_NO_TAG: Final = f'"{"0" * 32}"'
"""A tag that no object has."""

_results: Final[dict[tuple[str, str], bool]] = {}
"""Whether an endpoint honours preconditions, by its address and the kind of request."""


def check(client: S3Client, at: Location, upload: str | None) -> None:
    """Refuse an endpoint that ignores preconditions.

    Args:
        client: sends the requests.
        at: the object to write.
        upload: the id of the upload to complete; None if the object is put in one request.

    Raises:
        UsageError: the endpoint ignores preconditions.
        WriteError: the endpoint refused the test's requests.
    """
    endpoint = client.endpoint(at)
    if (urlsplit(endpoint).hostname or "").endswith(_AMAZONS):
        return
    kind = (endpoint, "put" if upload is None else "completion")
    if kind not in _results:
        _results[kind] = _put(client, at) if upload is None else _completion(client, at, upload)
    if _results[kind]:
        return
    raise UsageError(
        "the endpoint ignores preconditions: an object that another program writes at the same time would be lost",
        path=at.uri,
        hint="--force writes it; use it only if no other program writes there",
    )


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


class WritingS3Client(S3Client, WritingClient):
    """Requests to S3, with those that write objects of any size.

    Args:
        put_most: maximum size of an object that is written in one request, in bytes, if no part of it can be copied.
    """

    def __init__(self, put_most: int = UPLOAD_BYTES) -> None:
        super().__init__()
        self.put_most = put_most

    def check_replaceable(self, at: Location, info: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Refuse objects that are locked, held or archived, unless forced. Raises UsageError, UnreadableError."""
        current = info or self.head(at)
        if current is not None and not force:
            check_no_loss(at, current.details or {})
        return current

    def writer(self, new: NewObject) -> Writer:
        """A writer by a multipart upload or one request."""
        return _S3Writer(self, new)

    def estimate(
        self, at: Location, outline: Iterable[KeptRange | int], source: Source, origin: ObjectSource | None
    ) -> Traffic:
        """The traffic of a multipart upload or a single request, including those that read the object."""
        del at
        segments = outline_segments(outline)
        size = segments[-1].end if segments else 0
        parts = list(next_parts(segments, None, sizes_for(size, copies=origin is not None), finished=True))
        uploaded = [part for part in parts if part.copy_from is None]
        if size <= self.put_most and len(uploaded) == len(parts):
            kept = [(s.offset, s.length) for s in segments if s.kept]
            return source.estimate(kept) + Traffic(1 + _LOOKING + _AROUND_PUT, min(size, COMPARED_BYTES), size, 0)
        contents = (within(segments, part.start, part.start + part.length) for part in uploaded)
        kept = [(s.offset, s.length) for part in contents for s in part if s.kept]
        sent = sum(part.length for part in uploaded)
        requests = len(parts) + _LOOKING + _AROUND_PARTS
        return source.estimate(kept) + Traffic(requests, min(size, COMPARED_BYTES), sent, size - sent)

    def sweep(self, locations: Collection[Location]) -> SweepResult:
        """Report unfinished uploads to the objects."""
        return sweep(self, locations)


class _S3Writer(Writer):
    """Writes the new object: by a multipart upload, begun when the first part is final, or by one request."""

    def __init__(self, client: WritingS3Client, new: NewObject) -> None:
        super().__init__(new)
        self._client = client
        copies = new.origin is not None and new.origin.at.bucket == new.at.bucket
        self._sizes = sizes_for(new.content.source.size, copies=copies)
        self._upload: Upload | None = None
        self._whole: tuple[bytes, dict[str, Any]] | None = None

    def add(self) -> None:
        """Start writing the parts that are final so far."""
        if self._upload is None:
            parts = next_parts(self.new.content.segments, None, self._sizes, finished=False)
            if next(parts, None) is not None or 0 < self.new.content.size > self._client.put_most:
                self._begin()
        if self._upload is not None:
            self._upload.add()

    def finish(self) -> None:
        """Write the remaining parts and wait for all; or read the content and properties for a single request."""
        content = self.new.content
        if self._upload is None:
            parts = list(next_parts(content.segments, None, self._sizes, finished=True))
            if content.size > max(self._client.put_most, 0) or any(part.copy_from is not None for part in parts):
                self._begin()
        if self._upload is not None:
            self._upload.finish()
            return
        self._whole = content.read(0, content.size), self._properties()
        self.new.report(0, content.size)

    def complete(self) -> None:
        """Complete the object and compare its tail. Raises the errors of `complete_object`."""
        new, client, upload = self.new, self._client, self._upload
        if new.origin is not None and (new.force or not new.in_place):
            new.origin.check_unchanged()
        if new.precondition is not Precondition.NONE and not new.force:
            # After all reads: in MinIO, a completion waits for reads of the object, and new reads wait for it.
            check(client, new.at, None if upload is None else upload.id)
        complete_object(client, new, self._put if upload is None else partial(upload.complete, new.precondition))
        if upload is not None:
            traffic.current().remark(*upload.duplicate_remarks())
            self._upload = None

    def abort(self, error: BaseException) -> None:
        """Abort the upload."""
        upload = self._upload
        if upload is None:
            return
        reason = upload.abort()
        if isinstance(error, BloomError):
            if reason is not None and upload.id is not None:
                error.reason = f"{error.reason}; an unfinished upload is left, as it can't be ended ({reason})"
                error.hint = f"{command_for(self._client, self.new.at, upload.id)} ends it"
            if remarks := upload.duplicate_remarks():
                error.add_to_hint(remarks)

    def _put(self) -> str:
        assert self._whole is not None  # noqa: S101  `finish` has set it
        data, properties = self._whole
        return self._client.put(self.new.at, data, self.new.precondition, **properties).tag

    def _begin(self) -> None:
        self._upload = Upload(self._client, self.new, self._sizes, self._properties())
        self._upload.begin()

    def _properties(self) -> dict[str, Any]:
        """The properties to keep. Requested late, so that reading the columns doesn't wait for them."""
        origin = self.new.origin
        return {} if origin is None else kept_properties(self._client, origin.at, origin.info, force=self.new.force)
