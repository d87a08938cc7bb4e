"""Replaces an object, or writes a new one. The steps are in `bloomcli.storage.s3`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from bloomcli.concurrency.signals import terminable
from bloomcli.errors import BloomError, WriteError
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage import traffic
from bloomcli.storage.base import Cancelled, KeptRange, Pieces, Progress, Source, Verify
from bloomcli.storage.entries import output_exists
from bloomcli.storage.objects.client import Need, ObjectInfo
from bloomcli.storage.objects.content import Content, PlannedSource
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.store import source_of
from bloomcli.storage.s3 import preconditions
from bloomcli.storage.s3.client import S3Client, bucket_of
from bloomcli.storage.s3.completion import Target, completed
from bloomcli.storage.s3.parts import UPLOAD_BYTES, Sizes, next_parts, sizes_for
from bloomcli.storage.s3.properties import carried_over, refuse_loss
from bloomcli.storage.s3.unfinished_uploads import command_for
from bloomcli.storage.s3.upload import Upload

PUT_MOST_BYTES = UPLOAD_BYTES
"""The largest object that is written in one request, where no part of it can be copied."""


class Order(NamedTuple):
    """What `Store.replace` was given, but for the pieces."""

    client: S3Client
    path: str
    source: Source
    overwrite: bool
    force: bool
    progress: Progress | None
    put_most: int


def replace(order: Order, pieces: Pieces, *, verify: Verify | None, cancelled: Cancelled | None) -> int:
    """Write an object: `Store.replace` of S3."""
    with closing(pieces), closing(Content(order.source)) as content, terminable():
        ours = source_of(order.source, order.client)
        target = _target(order, ours)
        with _writing(order, target, ours, content) as writing:
            with closing(pieces):  # their threads end before the object is verified
                _take(pieces, content, writing, cancelled)
            writing.finish()
            if verify is not None:
                with PlannedSource(order.path, content) as planned:
                    verify(planned)
            if order.force or target.former is None or isinstance(target.need, Need):
                order.source.check_unchanged()
            writing.complete()
        return content.size


def _take(pieces: Pieces, content: Content, writing: _Writing, cancelled: Cancelled | None) -> None:
    skipped = False
    for piece in pieces:
        if isinstance(piece, KeptRange) and cancelled is not None and cancelled():
            skipped = True  # the next piece raises
            continue
        content.add(piece)
        del piece  # a filter may be large, and the next one is built where it was
        if not skipped:
            writing.add()
    if skipped:
        raise WriteError("copying was cancelled", path=content.source.path)
    content.finish()


def _target(order: Order, ours: ObjectSource | None) -> Target:
    """The object to write. Raises UsageError."""
    client = order.client
    at = client.locate(order.path)
    former: ObjectInfo | None
    need: Need | str
    if ours is not None and client.identity(ours.at) == client.identity(at) and order.overwrite:
        former, need = ours.info, ours.info.tag
    else:
        former = client.head(at)
        need = Need.NOTHING if order.overwrite else Need.ABSENT
        if former is not None and not order.overwrite:
            raise output_exists(order.path)
    if former is not None and not order.force:
        refuse_loss(at, former.details or {})
    return Target(at, order.path, need, former)


class _Writing:
    """The new object on its way: a multipart upload that is begun when a part is certain, or one request."""

    def __init__(
        self,
        order: Order,
        target: Target,
        content: Content,
        sizes: Sizes,
        ours: ObjectSource | None,
    ) -> None:
        self._order, self._target, self._content = order, target, content
        self._sizes, self._ours = sizes, ours
        self.upload: Upload | None = None
        self._whole: tuple[bytes, dict[str, Any]] | None = None

    def add(self) -> None:
        """Begin with what is certain of the content so far."""
        if self.upload is None and (self._is_certain() or 0 < self._content.size > self._order.put_most):
            self._begin()
        if self.upload is not None:
            self.upload.add()

    def finish(self) -> None:
        """The content is whole: wait until the store has it, but for an object that is put in one request."""
        content = self._content
        if self.upload is None:
            parts = list(next_parts(content.segments, None, self._sizes, finished=True))
            if content.size > max(self._order.put_most, 0) or any(part.copy_from is not None for part in parts):
                self._begin()
        if self.upload is not None:
            self.upload.add(finished=True)
            self.upload.wait()
            self.upload.stop()
            return
        self._whole = content.read(0, content.size), self._properties()
        if self._order.progress is not None:
            self._order.progress(sum(content.kept(0, content.size)))

    def complete(self) -> None:
        """Give the new object its name, and compare what the store has. Raises what `completed` raises."""
        order, target, upload = self._order, self._target, self.upload
        if target.need is not Need.NOTHING:
            # Not earlier: MinIO lets a completion wait for reads of the object, and further reads for the completion.
            preconditions.check(order.client, target.at, None if upload is None else upload.id, force=order.force)
        act: Callable[[], str] = self._put if upload is None else partial(upload.complete, target.need)
        completed(order.client, target, self._content, act)
        if upload is not None:
            traffic.current().remark(*upload.begun_too())
            self.upload = None

    def _put(self) -> str:
        assert self._whole is not None  # noqa: S101  `finish` has made it
        data, properties = self._whole
        return self._order.client.put(self._target.at, data, self._target.need, **properties).tag

    def _is_certain(self) -> bool:
        return any(True for _ in next_parts(self._content.segments, None, self._sizes, finished=False))

    def _begin(self) -> None:
        order = self._order
        self.upload = Upload(
            order.client, self._target.at, self._content, self._sizes, self._properties(), order.progress
        )
        self.upload.begin()

    def _properties(self) -> dict[str, Any]:
        """What the object has besides its content. Asked for late, when columns are being read already."""
        ours = self._ours
        return {} if ours is None else carried_over(self._order.client, ours.at, ours.info, force=self._order.force)


@contextmanager
def _writing(order: Order, target: Target, ours: ObjectSource | None, content: Content) -> Iterator[_Writing]:
    """The new object on its way, aborted where it isn't completed."""
    copies = ours is not None and bucket_of(ours.at) == bucket_of(target.at)
    writing = _Writing(order, target, content, sizes_for(order.source.size, copies=copies), ours)
    try:
        yield writing
    except BaseException as error:
        upload = writing.upload
        if upload is not None:
            reason = upload.abort()
            if isinstance(error, BloomError):
                if reason is not None and upload.id is not None:
                    error.reason = f"{error.reason}; an unfinished upload is left, as it can't be ended ({reason})"
                    error.hint = f"{command_for(order.client, target.at, upload.id)} ends it"
                if left := upload.begun_too():
                    error.hint = "; ".join([*([error.hint] if error.hint else []), *left])
        raise
