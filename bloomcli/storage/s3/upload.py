"""A multipart upload: copies and uploads several parts at the same time, then completes or aborts the upload."""

from __future__ import annotations

import io
import time
from collections import deque
from functools import partial
from typing import Any, Final

from bloomcli.concurrency.cancellation import Stop
from bloomcli.concurrency.signals import deferred
from bloomcli.concurrency.threads import Future, Threads
from bloomcli.errors import BloomError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.base import STEP_BYTES, Progress
from bloomcli.storage.objects.client import Conflict, Location, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.s3 import unfinished_uploads
from bloomcli.storage.s3.client import S3Client, bucket_of, checksum_parameters, precondition_parameters
from bloomcli.storage.s3.parts import MAX_PARTS, Part, PartSizes, next_parts
from bloomcli.storage.s3.unfinished_uploads import TimeRange

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

    def __init__(
        self,
        client: S3Client,
        at: Location,
        content: Content,
        sizes: PartSizes,
        properties: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self._client, self._at, self._content, self._sizes = client, at, content, sizes
        self._progress = progress
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
                remarks = unfinished_uploads.begun_uploads(self._client, self._at, None, time.monotonic() - started)
                if remarks:
                    error.reason = f"{error.reason}; the store may have begun an upload nevertheless"
                    error.hint = "; ".join([*([error.hint] if error.hint else []), *remarks])
                raise
            self.id = str(answer["UploadId"])
            head = answer["ResponseMetadata"]
            if head.get("RetryAttempts"):
                self._retried = unfinished_uploads.time_range(
                    head["HTTPHeaders"].get("date", ""), time.monotonic() - started
                )

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

    def wait(self) -> None:
        """Wait until all parts are written. Raises the errors of parts."""
        while self._waiting:
            self._wait_for_first()

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
        return (
            [] if self._retried is None else unfinished_uploads.begun_uploads(self._client, self._at, self._retried)
        )

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
                CopySource={"Bucket": bucket_of(source.at), "Key": source.at.key},
                CopySourceRange=f"bytes={offset}-{offset + part.length - 1}",
                CopySourceIfMatch=source.info.tag,
            )
        except (ObjectNotFound, Conflict):
            raise source.changed("changed") from None
        traffic.current().count(requests=0, copied=part.length)
        self._tags[part.number] = answer["CopyPartResult"]["ETag"]
        self._report(part.length)

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
        self._report(sum(self._content.kept_lengths(part.start, part.length)))

    def _report(self, count: int) -> None:
        """Report progress in kept bytes, in steps of `STEP_BYTES` as in other stores."""
        while count and self._progress is not None:
            step = min(count, STEP_BYTES)
            self._progress(step)
            count -= step
