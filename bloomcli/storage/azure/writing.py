"""Writes a blob as a new list of blocks: those that the blob has already, and new ones.

A block blob is a list of named blocks. A new list may name blocks of the old one: each block that lies completely in
a kept range is kept, and only the other bytes are uploaded.

Uploaded blocks are uncommitted until a list names them. The service deletes them when the next list is committed, or
after a week. The list is committed on the condition that the blob hasn't changed since it was read.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from azure.storage.blob import BlobBlock, BlobType, StandardBlobTier

from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.azure.client import PROPERTIES, AzureClient, info_of, precondition_parameters
from bloomcli.storage.azure.errors import convert_sdk_errors, rehydration_hint
from bloomcli.storage.base import KeptRange
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Segment
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.writing import PART_BYTES, NewObject, Writer, WritingClient

NEW_BYTES: Final = PART_BYTES
"""Size of a new block, for contents of up to `MAX_BLOCKS` / 2 such blocks."""
MAX_BLOCKS: Final = 50_000
"""Maximum number of blocks in a blob, a limit of the service."""
_NAME_BYTES: Final = 24


class Block(NamedTuple):
    """A committed block."""

    name: str
    """The name in the SDK: the service's name, decoded from Base64."""
    size: int


class Part(NamedTuple):
    """A block of the new content."""

    start: int
    """Offset in the new content."""
    length: int
    name: str | None
    """The name of the existing block; None for a block to upload."""


def parts(segments: Sequence[Segment], committed: Sequence[Block]) -> list[Part]:
    """Divide a new content into blocks.

    Args:
        segments: the content.
        committed: the source's blocks if the source is the blob to replace; else empty.
    """
    size = segments[-1].end if segments else 0
    length = max(NEW_BYTES, -(-2 * size // MAX_BLOCKS))
    blob_parts: list[Part] = []
    used: set[str] = set()
    done = 0
    for segment in segments:
        for start, block in _whole_blocks(segment, committed) if segment.kept else ():
            if block.name in used:
                continue  # a list names each block at most once
            used.add(block.name)
            blob_parts += _new_parts(done, start, length)
            blob_parts.append(Part(start, block.size, block.name))
            done = start + block.size
    return blob_parts + _new_parts(done, size, length)


def new_names(blocks: Sequence[Block]) -> Iterator[str]:
    """Generate names for new blocks.

    Args:
        blocks: the blob's blocks, then its uncommitted ones. New names get the length of the last one's name: the
            service requires the length of the uncommitted blocks' names, or else of the committed ones'.
    """
    names = {block.name for block in blocks}
    length = len(blocks[-1].name.encode()) if blocks else _NAME_BYTES
    while True:
        name = base64.urlsafe_b64encode(secrets.token_bytes(length)).decode()[:length]
        if name not in names:
            names.add(name)
            yield name


def _whole_blocks(segment: Segment, committed: Sequence[Block]) -> Iterator[tuple[int, Block]]:
    """The blocks that lie completely in a kept range, each with its offset in the new content."""
    starts = accumulate((block.size for block in committed), initial=0)
    for start, block in zip(starts, committed, strict=False):
        if block.size and segment.offset <= start and start + block.size <= segment.offset + segment.length:
            yield segment.start + start - segment.offset, block


def _new_parts(start: int, end: int, length: int) -> list[Part]:
    return [Part(at, min(length, end - at), None) for at in range(start, end, length)]


_TAIL_BYTES: Final = 64 << 10
"""Maximum number of bytes at the blob's end that are read back and compared."""
_LEASED: Final = "locked"


class WritingAzureClient(AzureClient, WritingClient):
    """Requests to Azure Blob Storage, with those that write blobs of any size.

    There is nothing to sweep: the service deletes uncommitted blocks, which are invisible to readers.
    """

    def check_replaceable(self, at: Location, info: ObjectInfo | None = None, *, force: bool) -> ObjectInfo | None:
        """Refuse blobs that are leased, held, immutable, archived or not block blobs. Raises UsageError."""
        del force  # the service refuses such blobs anyway
        details = None if info is None else info.details
        properties = self.properties(at) if details is None else details[PROPERTIES]
        if properties is None:
            return None
        why = hint = None
        if properties.blob_type != BlobType.BLOCKBLOB:
            why, hint = "it isn't a block blob, and page and append blobs can't be replaced", "-o writes a copy"
        elif properties.lease is not None and properties.lease.status == _LEASED:
            why, hint = "it has a lease: whoever has it may write", "wait for the lease's end, or -o writes a copy"
        elif properties.has_legal_hold:
            why, hint = "it has a legal hold", "-o writes a copy"
        elif properties.immutability_policy is not None and properties.immutability_policy.expiry_time is not None:
            why, hint = "it has an immutability policy", "-o writes a copy"
        elif properties.blob_tier == "Archive":
            why, hint = "it is in the Archive tier", rehydration_hint(at)
        if why is not None:
            raise UsageError(f"can't be replaced: {why}", path=at.uri, hint=hint)
        return info_of(properties)

    def writer(self, new: NewObject) -> Writer:
        """A writer that commits a new list of blocks."""
        return _BlobWriter(self, new)

    def keeps_ranges(self, ranges: Sequence[KeptRange], origin: ObjectSource, at: Location) -> bool:
        """Whether the source is the blob itself and has blocks, which the new list can name. A failed request for
        the blocks counts as yes."""
        del ranges
        if self.identity(origin.at) != self.identity(at):
            return False
        try:
            return bool(_blocks(self.blob(at), at, origin.size, origin.info.tag)[0])
        except (ObjectNotFound, Conflict, BloomError):
            return True


class _BlobWriter(Writer):
    def __init__(self, client: AzureClient, new: NewObject) -> None:
        super().__init__(new)
        self._client, self._blob = client, client.blob(new.at)
        self._kept: dict[str, Any] = {}
        """The SDK's arguments for the properties that the new blob copies from its source."""
        self._version: str | None = None
        """The version id of the source; None if the account keeps no versions."""

    def complete(self) -> None:
        """Upload the new blocks, and commit the list of blocks. The source's own blocks are kept if it is the blob.

        Raises:
            Conflict: the precondition failed.
            WriteError: the store refused a request, or the stored blob differs from the content.
        """
        at, content, precondition = self.new.at, self.new.content, self.new.precondition
        if self.new.origin is not None:
            self._read_properties(self.new.origin)
        committed, waiting = (
            _blocks(self._blob, at, content.source.size, precondition) if isinstance(precondition, str) else ([], [])
        )
        block_list = parts(content.segments, committed)
        if len(block_list) > MAX_BLOCKS:
            committed, block_list = [], parts(content.segments, [])
        names, ours = new_names([*committed, *waiting]), []
        for part in block_list:
            name = part.name
            if name is None:
                name = next(names)
                data = content.read(part.start, part.length)
                with convert_sdk_errors(at, writing=True):
                    self._blob.stage_block(
                        name, data, validate_content=True, encryption_scope=self._kept.get("encryption_scope")
                    )
                del data
            else:
                traffic.current().count(requests=0, copied=part.length)
            ours.append(name)
            self.new.report(part.start, part.length)
        self._compare(self._commit(ours))

    def _read_properties(self, origin: ObjectSource) -> None:
        """Read the properties that the new blob keeps. Raises Conflict if the source has another tag."""
        properties = self._client.properties(origin.at)
        if properties is None or properties.etag != origin.info.tag:
            raise Conflict
        tags = None
        if properties.tag_count:
            with convert_sdk_errors(origin.at):
                tags = self._client.blob(origin.at).get_blob_tags()
        settings, content = properties.content_settings, self.new.content
        if [(s.offset, s.length, s.kept) for s in content.segments] != [(0, content.source.size, True)]:
            settings.content_md5 = None  # only a copy of the whole source keeps it
        try:
            tier = (
                None
                if properties.blob_tier_inferred or properties.blob_tier is None
                else StandardBlobTier(properties.blob_tier)
            )
        except ValueError:
            tier = None
        self._kept = {
            "content_settings": settings,
            "metadata": properties.metadata or None,
            "tags": tags,
            "standard_blob_tier": tier,
            "encryption_scope": properties.encryption_scope,
        }
        self._version = properties.version_id

    def _commit(self, names: Sequence[str]) -> str | None:
        """Commit the list, and return the new ETag. Raises Conflict, WriteError.

        After an error, the blob's blocks show whether the list was committed nevertheless. None is returned then.
        """
        at, precondition = self.new.at, self.new.precondition
        try:
            with convert_sdk_errors(at, writing=True):
                done = self._blob.commit_block_list(
                    [BlobBlock(name) for name in names],
                    validate_content=True,
                    **self._kept,
                    **precondition_parameters(precondition),
                )
                return str(done["etag"])
        except (Conflict, ObjectNotFound, WriteError):
            if names and self._consists_of(names):
                return None
            if precondition is not Precondition.NONE and self._was_replaced():
                raise Conflict from None
            raise

    def _consists_of(self, names: Sequence[str]) -> bool:
        """Whether the blob's committed blocks are exactly these."""
        try:
            with convert_sdk_errors(self.new.at):
                blocks, _ = self._blob.get_block_list("committed")
        except (ObjectNotFound, UnreadableError):
            return False
        return [block.id for block in blocks] == list(names)

    def _was_replaced(self) -> bool:
        """Whether another program wrote the blob: its commit deleted the uploaded blocks."""
        try:
            info = self._client.head(self.new.at)
        except UnreadableError:
            return False
        if self.new.precondition is Precondition.NO_OBJECT:
            return info is not None
        return info is None or info.tag != self.new.precondition

    def _compare(self, tag: str | None) -> None:
        """Compare the end of the stored blob with the content. Raises WriteError if they differ."""
        content = self.new.content
        length = min(content.size, _TAIL_BYTES)
        start = content.size - length
        options = precondition_parameters(Precondition.NONE if tag is None else tag)
        try:
            with convert_sdk_errors(self.new.at, writing=True):
                if content.size:  # request one more byte than expected, to detect a longer blob
                    data = self._blob.download_blob(start, length + 1, max_concurrency=1, **options).readall()
                else:
                    data = bytes(self._blob.get_blob_properties(**options).size)
        except (ObjectNotFound, Conflict):
            return  # another program replaced it since
        if data == content.read(start, length):
            return
        raise WriteError(
            "the blob in the store isn't what was written",
            path=self.new.at.uri,
            hint=f"go back to its version {self._version}"
            if self._version
            else "restore it from a snapshot or a copy: the account keeps no versions",
        )


def _blocks(blob: Any, at: Location, size: int, tag: str) -> tuple[list[Block], list[Block]]:
    """The blob's committed and uncommitted blocks. Raises Conflict if the blob has another tag.

    Returns no committed blocks if the SDK can't represent the name of one.
    """
    answers: list[Any] = []

    def keep(_: object, answer: Any, headers: Any) -> Any:
        sizes = [block.size for block in answer.committed_blocks or ()]
        if headers.get("ETag") != tag or (sizes and sum(sizes) != size):
            raise Conflict  # another program wrote the blob, or an answer was wrong: its blocks aren't the source's
        answers.append(answer)
        return answer

    with convert_sdk_errors(at, writing=True):
        committed, waiting = blob.get_block_list("all", cls=keep)
    raw = [block.name for answer in answers for block in answer.committed_blocks or ()]
    blocks = [Block(block.id, block.size) for block in committed]
    same = all(name != block.name for name, block in zip(raw, blocks, strict=True))
    is_whole = same and sum(block.size for block in blocks) == size
    return blocks if is_whole else [], [Block(block.id, block.size) for block in waiting]
