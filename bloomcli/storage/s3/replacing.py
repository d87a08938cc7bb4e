"""Replaces an object, or writes a new one. The steps are in `bloomcli.storage.s3`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import BloomError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.base import Cancelled, KeptRange, Pieces, Progress, Source, Verify
from bloomcli.storage.entries import output_exists
from bloomcli.storage.objects.client import ObjectInfo, Precondition
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import source_of
from bloomcli.storage.s3 import preconditions
from bloomcli.storage.s3.client import S3Client, bucket_of
from bloomcli.storage.s3.completion import Target, complete_object
from bloomcli.storage.s3.parts import UPLOAD_BYTES, PartSizes, next_parts, sizes_for
from bloomcli.storage.s3.properties import check_no_loss, kept_properties
from bloomcli.storage.s3.unfinished_uploads import command_for
from bloomcli.storage.s3.upload import Upload

PUT_MOST_BYTES = UPLOAD_BYTES
"""Maximum size of an object that is written in one request if no part of it can be copied."""


class ReplaceRequest(NamedTuple):
    """The arguments of `Store.replace`, without the pieces."""

    client: S3Client
    path: str
    source: Source
    overwrite: bool
    force: bool
    progress: Progress | None
    put_most: int
    """Maximum size of an object that is written in one request, in bytes."""


def replace(request: ReplaceRequest, pieces: Pieces, *, verify: Verify | None, cancelled: Cancelled | None) -> int:
    """Write an object; implements `Store.replace` for S3. Returns its size in bytes."""
    with closing(pieces), closing(Content(request.source)) as content, terminable():
        own_source = source_of(request.source, request.client)
        target = _target(request, own_source)
        with _object_writer(request, target, own_source, content) as writer:
            with closing(pieces):  # stops their threads before the object is verified
                _add_pieces(pieces, content, writer, cancelled)
            writer.finish()
            if verify is not None:
                with PlannedSource(request.path, content) as planned:
                    verify(planned)
            if request.force or target.previous is None or isinstance(target.precondition, Precondition):
                request.source.check_unchanged()
            writer.complete()
        return content.size


def _add_pieces(pieces: Pieces, content: Content, writer: _ObjectWriter, cancelled: Cancelled | None) -> None:
    skipped = False
    for piece in pieces:
        if isinstance(piece, KeptRange) and cancelled is not None and cancelled():
            skipped = True  # producing the next piece raises
            continue
        content.add(piece)
        del piece  # a filter may be large: free it before the next one is built
        if not skipped:
            writer.add()
    if skipped:
        raise WriteError("copying was cancelled", path=content.source.path)
    content.finish()


def _target(request: ReplaceRequest, own_source: ObjectSource | None) -> Target:
    """The object to write, with its precondition. Raises UsageError."""
    client = request.client
    at = client.locate(request.path)
    previous: ObjectInfo | None
    precondition: Precondition | str
    if own_source is not None and client.identity(own_source.at) == client.identity(at) and request.overwrite:
        previous, precondition = own_source.info, own_source.info.tag
    else:
        previous = client.head(at)
        precondition = Precondition.NONE if request.overwrite else Precondition.NO_OBJECT
        if previous is not None and not request.overwrite:
            raise output_exists(request.path)
    if previous is not None and not request.force:
        check_no_loss(at, previous.details or {})
    return Target(at, request.path, precondition, previous)


class _ObjectWriter:
    """Writes the new object: by a multipart upload, begun when the first part is final, or by one request."""

    def __init__(
        self,
        request: ReplaceRequest,
        target: Target,
        content: Content,
        sizes: PartSizes,
        own_source: ObjectSource | None,
    ) -> None:
        self._request, self._target, self._content = request, target, content
        self._sizes, self._own_source = sizes, own_source
        self.upload: Upload | None = None
        self._whole: tuple[bytes, dict[str, Any]] | None = None

    def add(self) -> None:
        """Start writing the parts that are final so far."""
        if self.upload is None and (self._is_certain() or 0 < self._content.size > self._request.put_most):
            self._begin()
        if self.upload is not None:
            self.upload.add()

    def finish(self) -> None:
        """Write the remaining parts and wait for all; or read the content and properties for a single request."""
        content = self._content
        if self.upload is None:
            parts = list(next_parts(content.segments, None, self._sizes, finished=True))
            if content.size > max(self._request.put_most, 0) or any(part.copy_from is not None for part in parts):
                self._begin()
        if self.upload is not None:
            self.upload.add(finished=True)
            self.upload.wait()
            self.upload.stop()
            return
        self._whole = content.read(0, content.size), self._properties()
        if self._request.progress is not None:
            self._request.progress(sum(content.kept_lengths(0, content.size)))

    def complete(self) -> None:
        """Complete the object and compare its tail. Raises the errors of `complete_object`."""
        request, target, upload = self._request, self._target, self.upload
        if target.precondition is not Precondition.NONE:
            # After all reads: in MinIO, a completion waits for reads of the object, and new reads wait for it.
            preconditions.check(request.client, target.at, None if upload is None else upload.id, force=request.force)
        send: Callable[[], str] = self._put if upload is None else partial(upload.complete, target.precondition)
        complete_object(request.client, target, self._content, send)
        if upload is not None:
            traffic.current().remark(*upload.duplicate_remarks())
            self.upload = None

    def _put(self) -> str:
        assert self._whole is not None  # noqa: S101  `finish` has set it
        data, properties = self._whole
        return self._request.client.put(self._target.at, data, self._target.precondition, **properties).tag

    def _is_certain(self) -> bool:
        return any(True for _ in next_parts(self._content.segments, None, self._sizes, finished=False))

    def _begin(self) -> None:
        request = self._request
        self.upload = Upload(
            request.client, self._target.at, self._content, self._sizes, self._properties(), request.progress
        )
        self.upload.begin()

    def _properties(self) -> dict[str, Any]:
        """The properties to keep. Requested late, so that reading the columns doesn't wait for them."""
        own_source = self._own_source
        return (
            {}
            if own_source is None
            else kept_properties(self._request.client, own_source.at, own_source.info, force=self._request.force)
        )


@contextmanager
def _object_writer(
    request: ReplaceRequest, target: Target, own_source: ObjectSource | None, content: Content
) -> Iterator[_ObjectWriter]:
    """The writer of the new object. An upload that isn't completed is aborted at exit."""
    copies = own_source is not None and bucket_of(own_source.at) == bucket_of(target.at)
    writer = _ObjectWriter(request, target, content, sizes_for(request.source.size, copies=copies), own_source)
    try:
        yield writer
    except BaseException as error:
        upload = writer.upload
        if upload is not None:
            reason = upload.abort()
            if isinstance(error, BloomError):
                if reason is not None and upload.id is not None:
                    error.reason = f"{error.reason}; an unfinished upload is left, as it can't be ended ({reason})"
                    error.hint = f"{command_for(request.client, target.at, upload.id)} ends it"
                if remarks := upload.duplicate_remarks():
                    error.hint = "; ".join([*([error.hint] if error.hint else []), *remarks])
        raise
