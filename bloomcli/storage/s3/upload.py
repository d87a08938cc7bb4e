"""A multipart upload: divides the new object into parts, copies and uploads them, and completes or aborts it.

S3 accepts at most 10,000 parts of 5 MiB to 5 GiB; the last one may be smaller. The store copies a part from one range
of the source, or the part is uploaded. Ranges that are too short to be copied are uploaded together with adjacent
bytes, and if these are less than 5 MiB, with the beginning of the next range. The result of the last request is
checked even if its answer is lost or an error.

Unfinished uploads to the keys to write are reported: a killed run left them, or another program is writing. S3
doesn't show which program began an upload, so bloom aborts none and reports the commands that do. It also reports the
uploads that began when the answer to CreateMultipartUpload was lost: boto3 retries the request, and the store may
have begun an upload for each attempt. Another program may have begun one at the same time.
"""

from __future__ import annotations

import io
import shlex
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bloomcli.concurrency.signals import deferred
from bloomcli.concurrency.threads import Future, Stop, Threads
from bloomcli.errors import BloomError, SourceChanged, UnreadableError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.base import SweepResult, output_exists
from bloomcli.storage.objects.client import Client, Conflict, Location, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content, Segment, within
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.writing import NewObject
from bloomcli.storage.s3.client import S3Client, checksum_parameters, precondition_parameters
from bloomcli.storage.s3.errors import is_missing_bucket
from bloomcli.storage.s3.properties import is_archived, recovery_hint

_MAX_PAGES: Final = 10
"""Maximum number of pages, of 1,000 uploads each, that are searched."""
_MAX_REMARKS: Final = 10
_PRECISION: Final = timedelta(seconds=1)
"""HTTP's dates have whole seconds."""


def sweep(client: S3Client, locations: Collection[Location]) -> SweepResult:
    """Report unfinished uploads to the keys; none if the store can't list them."""
    uploads: list[tuple[Location, Any]] = []
    ranges: dict[str, tuple[str, str]] = {}
    for at in locations:
        first, last = ranges.get(at.root, (at.key, at.key))
        ranges[at.root] = min(first, at.key), max(last, at.key)
    for root, (first, last) in ranges.items():
        try:
            uploads += _bucket_uploads(client, root, first, last, locations)
        except (ObjectNotFound, Conflict, BloomError):
            continue
    return SweepResult(
        remaining=[f"{at.uri} (upload {item['UploadId']})" for at, item in uploads], remarks=_remarks(client, uploads)
    )


def _remarks(client: S3Client, uploads: Sequence[tuple[Location, Any]]) -> list[str]:
    remarks = [
        f"an unfinished upload to {at.uri} began at {item['Initiated']:%Y-%m-%d %H:%M:%S %Z}: if nothing writes "
        f"there any more, {command_for(client, at, item['UploadId'])} ends it"
        for at, item in uploads[:_MAX_REMARKS]
    ]
    if len(uploads) > len(remarks):
        remarks.append(f"{len(uploads) - len(remarks)} more unfinished uploads")
    return remarks


def command_for(client: S3Client, at: Location, upload: str) -> str:
    """The shell command that aborts an upload, in backquotes."""
    where = ["--bucket", at.bucket, "--key", at.key, "--upload-id", upload, *_endpoint(client, at)]
    return f"`{shlex.join(['aws', 's3api', 'abort-multipart-upload', *where])}`"


def _endpoint(client: S3Client, at: Location) -> list[str]:
    """The option for an endpoint other than Amazon's."""
    parts = urlsplit(client.endpoint(at))
    if (parts.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return []
    return ["--endpoint-url", parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()]


class TimeRange(NamedTuple):
    """The interval in which an upload was begun, by the store's clock."""

    first: datetime
    last: datetime


def time_range(date: str, seconds: float) -> TimeRange:
    """The interval in which a request was sent.

    Args:
        date: the Date header of its answer; if it is empty or invalid, this machine's clock is used.
        seconds: the duration of all attempts.
    """
    try:
        last = parsedate_to_datetime(date).astimezone(UTC)
        return TimeRange(last - timedelta(seconds=seconds) - _PRECISION, last + _PRECISION)
    except (ValueError, TypeError, OverflowError):  # also of a date at the end of Python's calendar
        last = datetime.now(UTC)
    return TimeRange(last - timedelta(seconds=seconds) - _PRECISION, last + _PRECISION)


def begun_uploads(client: S3Client, at: Location, when: TimeRange | None, seconds: float = 0.0) -> list[str]:
    """Remarks on the unfinished uploads to a key that began in an interval, with the commands that abort them.

    Args:
        client: sends the requests.
        at: the object.
        when: the interval; None if no attempt got an answer: the last `seconds` until now.
        seconds: the duration of all attempts.
    """
    try:
        if when is None:
            answer = client.request("ListMultipartUploads", at, whole=False, Prefix=at.key, MaxUploads=1)
            when = time_range(answer["ResponseMetadata"]["HTTPHeaders"].get("date", ""), seconds)
        listed = ((place, item) for place, item in _list_uploads(client, at) if place.key == at.key)
        uploads = [(place, item) for place, item in listed if when.first <= item["Initiated"] <= when.last]
    except (ObjectNotFound, Conflict, BloomError) as error:
        if isinstance(error, BloomError) and is_missing_bucket(error):
            return []
        where = ["--bucket", at.bucket, "--prefix", at.key, *_endpoint(client, at)]
        command = shlex.join(["aws", "s3api", "list-multipart-uploads", *where])
        return [f"an unfinished upload to {at.uri} may be left: `{command}` lists it"]
    return _remarks(client, uploads)


def _bucket_uploads(
    client: S3Client, root: str, first: str, last: str, locations: Collection[Location]
) -> list[tuple[Location, Any]]:
    """The unfinished uploads to the locations that are in a bucket, with keys from `first` to `last`."""
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    uploads, ours = list[tuple[Location, Any]](), set(locations)
    for prefix in (first[:same], ""):
        uploads = [(at, item) for at, item in _list_uploads(client, Location(root, prefix)) if at in ours]
        if uploads or first == last or not client.is_minio:  # MinIO treats a prefix as a whole key
            break
    return uploads


def _list_uploads(client: S3Client, at: Location) -> Iterator[tuple[Location, Any]]:
    """The unfinished uploads to keys that begin with a prefix."""
    options: dict[str, Any] = {"Prefix": at.key}
    for _ in range(_MAX_PAGES):
        answer = client.request("ListMultipartUploads", at, whole=False, **options)
        for item in answer.get("Uploads", ()):
            yield at._replace(key=item["Key"]), item
        if not answer.get("IsTruncated") or "NextKeyMarker" not in answer:
            return
        options |= {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer.get("NextUploadIdMarker", "")}


MIN_PART_BYTES: Final = 5 << 20
MAX_PART_BYTES: Final = 5 << 30
MAX_PARTS: Final = 10_000

COPY_BYTES: Final = 64 << 20
"""Size of copied parts, which the store copies at the same time."""
UPLOAD_BYTES: Final = 8 << 20
"""Size of uploaded parts, which are in memory while they are sent."""
_TARGET_PARTS: Final = 4_000
"""Approximate number of parts of a large object: less than half of the limit."""


class PartSizes(NamedTuple):
    """The sizes of parts in bytes, which depend on the object's size."""

    least: int
    copy: int
    upload: int
    copies: bool = True
    """The store can copy ranges of the source."""


class Part(NamedTuple):
    """A part of the new object."""

    number: int
    """Starts at 1."""
    start: int
    length: int
    copy_from: int | None
    """The offset in the source if the store copies the part; None if it is uploaded."""


def sizes_for(size: int, *, copies: bool = True) -> PartSizes:
    """The sizes of parts for an object of about `size` bytes. Without `copies`, all parts are uploaded."""
    least = min(max(MIN_PART_BYTES, -(-size // _TARGET_PARTS)), MAX_PART_BYTES // 5)
    # the last part of a range is shorter than `copy + least`
    copy = min(max(COPY_BYTES, 4 * least), MAX_PART_BYTES - least)
    return PartSizes(least, copy, max(UPLOAD_BYTES, least), copies)


def next_parts(segments: Sequence[Segment], done: Part | None, sizes: PartSizes, *, finished: bool) -> Iterator[Part]:
    """The next parts whose ranges are final.

    Args:
        segments: the content so far; the last segment may grow.
        done: the last part that a previous call returned.
        sizes: the sizes of parts.
        finished: the content is complete.
    """
    while (part := _next(segments, done, sizes, finished)) is not None:
        yield part
        done = part


def _next(segments: Sequence[Segment], done: Part | None, sizes: PartSizes, finished: bool) -> Part | None:
    number, start = (1, 0) if done is None else (done.number + 1, done.start + done.length)
    end = segments[-1].end if segments else 0
    if start >= end:
        return None
    # No part is longer than this, so the content behind it doesn't matter.
    ahead = within(segments, start, min(end, start + sizes.copy + sizes.least))
    first = ahead[0]
    if sizes.copies and first.kept and first.length >= sizes.least:
        if first.length >= sizes.copy + sizes.least:
            return Part(number, start, sizes.copy, first.offset)
        if first.end == end and not finished:
            return None  # it may grow
        return Part(number, start, first.length, first.offset)
    length = _uploaded(ahead, sizes, finished, end)
    return None if length is None else Part(number, start, length, None)


def _uploaded(ahead: Sequence[Segment], sizes: PartSizes, finished: bool, end: int) -> int | None:
    """The length of the next uploaded part; None while it isn't final."""
    length = 0
    for segment in ahead:
        grows = segment.end == end and not finished
        copied = sizes.copies and segment.kept
        if copied and length >= sizes.least and (segment.length >= sizes.least or grows):
            return length  # the store can copy the range, or will if it grows
        if copied and segment.length >= sizes.least:
            return sizes.least  # includes the beginning of a range; the store copies its rest
        length += segment.length
        if length >= sizes.upload:
            return sizes.upload
    return length if finished and ahead[-1].end == end else None


COMPARED_BYTES: Final = 256 << 10
"""Bytes at an object's end that are compared. The store has checked each upload by its checksum."""


def complete_object(client: Client, new: NewObject, send: Callable[[], str]) -> None:
    """Send the last request of writing an object, and compare its tail.

    Args:
        client: reads the object.
        new: the object.
        send: sends the request, and returns the new object's tag.

    Raises:
        Conflict: another program changed the object to replace.
        UsageError: an object exists and may not be replaced.
        WriteError: the store refused the request, or stored another content. The reason says which object exists.
    """
    content = new.content
    tail = content.read(max(content.size - COMPARED_BYTES, 0), min(content.size, COMPARED_BYTES))
    try:
        tag = send()
    except (ObjectNotFound, Conflict, BloomError) as error:
        _resolve_failure(client, new, tail, error)
        return
    try:
        data, info = client.read_tail(new.at, COMPARED_BYTES)
    except ObjectNotFound:
        return  # another program removed it after it was written
    except UnreadableError as error:
        if _is_archived_whole(client, new, tag):
            return
        raise WriteError(
            f"the object was written, but couldn't be read for a comparison: {error.reason}",
            path=new.path,
            hint=error.hint,
        ) from None
    if info.tag == tag and (data != tail or info.size != content.size):
        raise WriteError(
            "the object in the store isn't the one that was written",
            path=new.path,
            hint=recovery_hint(new.at, new.previous),
        )


def _is_archived_whole(client: Client, new: NewObject, tag: str) -> bool:
    """Whether the new object is archived, and so can't be read, but has the expected tag and size."""
    try:
        info = client.head(new.at)
    except UnreadableError:
        return False
    return info is not None and is_archived(info.details or {}) and (info.tag, info.size) == (tag, new.content.size)


def _resolve_failure(client: Client, new: NewObject, tail: bytes, error: Exception) -> None:
    """Find out whether a failed last request wrote the object nevertheless. Raises the error if it didn't."""
    try:
        data, info = client.read_tail(new.at, COMPARED_BYTES)
    except ObjectNotFound:
        if new.in_place:
            raise Conflict from None
        raise _refused(new, error, "there is no such object") from None
    except UnreadableError as unknown:
        reason = error.reason if isinstance(error, BloomError) else "the store refused the request"
        raise WriteError(
            f"{reason}; it isn't known whether the object was written, as it can't be read: it is either the old "
            f"object or the new one, and complete ({unknown.reason})",
            path=new.path,
            hint="start the command again when the store can be reached: it finds out which",
        ) from None
    if new.previous is not None and info.tag == new.previous.tag:
        raise _refused(new, error, "the object is as it was") from None
    if data == tail and info.size == new.content.size:
        return  # the answer was lost
    if new.precondition is Precondition.NO_OBJECT:
        raise output_exists(new.path) from None
    if new.in_place:
        raise Conflict from None
    if isinstance(error, BloomError):
        raise error
    raise SourceChanged(  # not the source, which `Conflict` is about
        "the object changed while it was being worked on",
        path=new.path,
        hint="something else writes to it; try again when it is done. bloom wrote nothing to it",
    ) from None


def _refused(new: NewObject, error: Exception, state: str) -> WriteError:
    reason, hint = "the store refused to complete it, as another request wrote to it at the same time", "start again"
    if isinstance(error, BloomError):
        reason, hint = error.reason, error.hint or hint
    return WriteError(f"{reason}; {state}", path=new.path, hint=hint)


COPYING: Final = 32
"""Maximum number of parts that are copied at the same time. The store copies them, each in about the same time: 2 GiB
take as long as one part."""
UPLOADING: Final = 4
"""Maximum number of parts that are uploaded at the same time: they are in memory."""
IN_MEMORY_BYTES: Final = 16 << 20
"""Maximum size of a part in memory. Only objects of more than 64 GiB have larger uploaded parts."""
_ABORTS: Final = 3
_ABORT_PAUSE_SECONDS: Final = 0.2


class PartBody(io.RawIOBase):
    """A file object over a part that is too large for memory. It reads the part while the part is sent or retried."""

    def __init__(self, content: Content, part: Part) -> None:
        self._content, self._part, self._at = content, part, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes, at most `IN_MEMORY_BYTES`."""
        remaining = self._part.length - self._at
        wanted = remaining if size < 0 else min(size, remaining)
        data = self._content.read(self._part.start + self._at, min(wanted, IN_MEMORY_BYTES))
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position in the part. Returns it."""
        self._at = offset + (0, self._at, self._part.length)[whence]
        return self._at


class Upload:
    """A multipart upload. Call `begin` first.

    Attributes:
        id: the upload's id; None before `begin`.
    """

    def __init__(self, client: S3Client, new: NewObject, sizes: PartSizes, properties: dict[str, Any]) -> None:
        self._client, self._new, self._at, self._content, self._sizes = client, new, new.at, new.content, sizes
        self._meter = traffic.current()
        self._stop = Stop()
        self._last: Part | None = None
        self._waiting: deque[tuple[Threads, Future[None]]] = deque()
        self._tags: dict[int, str] = {}
        self._properties = properties
        self._retried: TimeRange | None = None
        # Separate threads, so that uploaded parts don't wait for copied ones.
        self._copying = Threads(COPYING, "bloom-copy")
        self._uploading = Threads(UPLOADING, "bloom-upload")
        self.id: str | None = None

    def begin(self) -> None:
        """Begin the upload in the store. Ctrl-C is raised only after the id is known. Raises WriteError."""
        started = time.monotonic()
        with deferred():
            try:
                answer = self._client.request("CreateMultipartUpload", self._at, writes=True, **self._properties)
            except BloomError as error:
                remarks = begun_uploads(self._client, self._at, None, time.monotonic() - started)
                if remarks:
                    error.reason = f"{error.reason}; the store may have begun an upload nevertheless"
                    error.add_to_hint(remarks)
                raise
            self.id = str(answer["UploadId"])
            head = answer["ResponseMetadata"]
            if head.get("RetryAttempts"):
                self._retried = time_range(head["HTTPHeaders"].get("date", ""), time.monotonic() - started)

    def add(self, *, finished: bool = False) -> None:
        """Start writing the parts that are final. Raises the errors of earlier parts."""
        for part in next_parts(self._content.segments, self._last, self._sizes, finished=finished):
            if part.number > MAX_PARTS:
                raise WriteError("the object would have more parts than S3 allows (10,000)", path=self._at.uri)
            threads = self._uploading if part.copy_from is None else self._copying
            self._waiting.append((threads, threads.submit(partial(self._write_part, part))))
            self._last = part
        while self._waiting and self._waiting[0][1].done():
            self._wait_for_first()

    def finish(self) -> None:
        """Write the remaining parts, and wait until all are written. Raises the errors of parts."""
        self.add(finished=True)
        while self._waiting:
            self._wait_for_first()
        self.stop()

    def complete(self, precondition: Precondition | str) -> str:
        """Complete the upload. Returns the new object's tag. Raises Conflict, WriteError."""
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in sorted(self._tags.items())]
        answer = self._client.request(
            "CompleteMultipartUpload",
            self._at,
            writes=True,
            UploadId=self.id,
            MultipartUpload={"Parts": parts},
            **precondition_parameters(precondition),
        )
        return str(answer["ETag"])

    def stop(self) -> None:
        """Wait for the parts that are being written, and start no others."""
        self._stop.requested = True
        self._copying.close()
        self._uploading.close()

    def duplicate_remarks(self) -> list[str]:
        """Remarks on uploads that attempts without an answer may have begun. Call it after completing or aborting."""
        return [] if self._retried is None else begun_uploads(self._client, self._at, self._retried)

    def abort(self) -> str | None:
        """Abort the upload. Returns None, or the reason why it can't be aborted."""
        self.stop()
        reason = None
        if self.id is None:
            return None
        for attempt in range(_ABORTS):
            try:
                self._client.request("AbortMultipartUpload", self._at, writes=True, UploadId=self.id)
            except (ObjectNotFound, Conflict):
                return None
            except BloomError as error:
                if "NoSuchUpload" in error.reason:
                    return None
                reason = error.reason
                time.sleep(_ABORT_PAUSE_SECONDS * 2**attempt)
            else:
                return None
        return reason

    def _write_part(self, part: Part) -> None:
        self._stop.check()
        with traffic.counted_by(self._meter):
            if part.copy_from is None:
                self._upload(part)
            else:
                self._copy(part, part.copy_from)

    def _wait_for_first(self) -> None:
        """Wait for the oldest pending part. Raises its error."""
        threads, future = self._waiting.popleft()
        threads.result(future)

    def _copy(self, part: Part, offset: int) -> None:
        source = self._content.source
        assert isinstance(source, ObjectSource)  # noqa: S101  parts of other sources are uploaded
        try:
            answer = self._client.request(
                "UploadPartCopy",
                self._at,
                writes=True,
                UploadId=self.id,
                PartNumber=part.number,
                CopySource={"Bucket": source.at.bucket, "Key": source.at.key},
                CopySourceRange=f"bytes={offset}-{offset + part.length - 1}",
                CopySourceIfMatch=source.info.tag,
            )
        except (ObjectNotFound, Conflict):
            raise source.changed("changed") from None
        traffic.current().count(requests=0, copied=part.length)
        self._tags[part.number] = answer["CopyPartResult"]["ETag"]
        self._new.report(part.start, part.length)

    def _upload(self, part: Part) -> None:
        data: bytes | PartBody
        if part.length <= IN_MEMORY_BYTES:
            data = self._content.read(part.start, part.length)
        else:
            data = PartBody(self._content, part)
        answer = self._client.request(
            "UploadPart",
            self._at,
            writes=True,
            UploadId=self.id,
            PartNumber=part.number,
            Body=data,
            **checksum_parameters(self._at, data),
        )
        self._tags[part.number] = answer["ETag"]
        self._new.report(part.start, part.length)
