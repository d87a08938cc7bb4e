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

from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlobType

from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.storage import traffic
from bloomcli.storage.azure.client import PROPERTIES, AzureClient, precondition_parameters
from bloomcli.storage.azure.errors import convert_sdk_errors, rehydration_hint
from bloomcli.storage.base import Progress
from bloomcli.storage.objects.client import Conflict, Location, ObjectInfo, ObjectNotFound, Precondition
from bloomcli.storage.objects.content import Content, Segment
from bloomcli.storage.objects.source import ObjectSource
from bloomcli.storage.objects.whole_object_store import PART_BYTES

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
    found: list[Part] = []
    used: set[str] = set()
    done = 0
    for segment in segments:
        for start, block in _whole_blocks(segment, committed) if segment.kept else ():
            if block.name in used:
                continue  # a list names each block at most once
            used.add(block.name)
            found += _new_parts(done, start, length)
            found.append(Part(start, block.size, block.name))
            done = start + block.size
    return found + _new_parts(done, size, length)


def new_names(there: Sequence[Block]) -> Iterator[str]:
    """Generate names for new blocks.

    Args:
        there: the blob's blocks, then its uncommitted ones. New names get the length of the last one's name: the
            service requires the length of the uncommitted blocks' names, or else of the committed ones'.
    """
    taken = {block.name for block in there}
    length = len(there[-1].name.encode()) if there else _NAME_BYTES
    while True:
        name = base64.urlsafe_b64encode(secrets.token_bytes(length)).decode()[:length]
        if name not in taken:
            taken.add(name)
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


class KeptProperties(NamedTuple):
    """Properties that a new blob copies from its source."""

    settings: Any = None
    """The SDK's content settings: Content-Type and other headers."""
    metadata: dict[str, str] | None = None
    tags: dict[str, str] | None = None
    tier: str | None = None
    """None for the account's default."""
    scope: str | None = None
    """The encryption scope."""
    version: str | None = None
    """The version id of the source; None if the account keeps no versions."""


def read_kept_properties(client: AzureClient, at: Location, tag: str, *, whole: bool) -> KeptProperties:
    """Read the properties that a new blob keeps.

    Args:
        client: sends the requests.
        at: the source.
        tag: its ETag.
        whole: the content stays the same, so its MD5 is kept too.

    Raises:
        Conflict: the blob has another tag.
    """
    found = client.properties(at)
    if found is None or found.etag != tag:
        raise Conflict
    tags = None
    if found.tag_count:
        with convert_sdk_errors(at):
            tags = client.blob(at).get_blob_tags()
    settings = found.content_settings
    if not whole:
        settings.content_md5 = None
    return KeptProperties(
        settings,
        found.metadata or None,
        tags,
        None if found.blob_tier_inferred else found.blob_tier,
        found.encryption_scope,
        found.version_id,
    )


def check_replaceable(client: AzureClient, at: Location, known: ObjectInfo | None) -> None:
    """Refuse a blob that can't be replaced, or that would lose a property.

    Args:
        client: sends the request if `known` is None.
        at: the blob.
        known: its information if it was opened.

    Raises:
        UsageError: the blob can't be replaced.
    """
    details = None if known is None else known.details
    found = client.properties(at) if details is None else details[PROPERTIES]
    if found is None:
        return
    why = hint = None
    if found.blob_type != BlobType.BLOCKBLOB:
        why, hint = "it isn't a block blob, and page and append blobs can't be replaced", "-o writes a copy"
    elif found.lease is not None and found.lease.status == _LEASED:
        why, hint = "it has a lease: whoever has it may write", "wait for the lease's end, or -o writes a copy"
    elif found.has_legal_hold:
        why, hint = "it has a legal hold", "-o writes a copy"
    elif found.immutability_policy is not None and found.immutability_policy.expiry_time is not None:
        why, hint = "it has an immutability policy", "-o writes a copy"
    elif found.blob_tier == "Archive":
        why, hint = "it is in the Archive tier", rehydration_hint(at)
    if why is not None:
        raise UsageError(f"can't be replaced: {why}", path=at.uri, hint=hint)


def write(
    client: AzureClient,
    at: Location,
    content: Content,
    precondition: Precondition | str,
    kept: KeptProperties,
    *,
    progress: Progress | None,
) -> None:
    """Upload the new blocks, and commit the list of blocks.

    Args:
        client: sends the requests.
        at: the blob to write.
        content: the new content.
        precondition: the condition for committing. If it is a tag, the source is the blob itself, and its blocks may
            be kept.
        kept: the new blob's properties.
        progress: called with numbers of kept bytes that are written.

    Raises:
        Conflict: the precondition failed.
        WriteError: the store refused a request, or the stored blob differs from the content.
    """
    committed, waiting = (
        _blocks(client, at, content.source.size, precondition) if isinstance(precondition, str) else ([], [])
    )
    block_list = parts(content.segments, committed)
    if len(block_list) > MAX_BLOCKS:
        committed, block_list = [], parts(content.segments, [])
    blob, names, ours = client.blob(at), new_names([*committed, *waiting]), []
    for part in block_list:
        name = part.name
        if name is None:
            name = next(names)
            data = content.read(part.start, part.length)
            with convert_sdk_errors(at, writing=True):
                blob.stage_block(name, data, validate_content=True, encryption_scope=kept.scope)
            del data
        else:
            traffic.current().count(requests=0, copied=part.length)
        ours.append(name)
        if progress is not None:
            for count in content.kept_lengths(part.start, part.length):
                progress(count)
    _compare(client, at, content, _commit(client, at, ours, precondition, kept), kept)


def has_blocks(client: AzureClient, source: ObjectSource) -> bool:
    """Whether a blob has blocks that a new list can name. Sends one request; returns True if it fails."""
    try:
        return bool(_blocks(client, source.at, source.size, source.info.tag)[0])
    except (ObjectNotFound, Conflict, BloomError):
        return True


def _blocks(client: AzureClient, at: Location, size: int, tag: str) -> tuple[list[Block], list[Block]]:
    """The blob's committed and uncommitted blocks. Raises Conflict if the blob has another tag.

    Returns no committed blocks if the SDK can't represent the name of one.
    """
    seen: list[Any] = []

    def keep(_: object, answer: Any, headers: Any) -> Any:
        sizes = [block.size for block in answer.committed_blocks or ()]
        if headers.get("ETag") != tag or (sizes and sum(sizes) != size):
            raise Conflict  # another program wrote the blob, or an answer was wrong: its blocks aren't the source's
        seen.append(answer)
        return answer

    with convert_sdk_errors(at, writing=True):
        found, waiting = client.blob(at).get_block_list("all", cls=keep)
    raw = [block.name for answer in seen for block in answer.committed_blocks or ()]
    blocks = [Block(block.id, block.size) for block in found]
    same = all(name != block.name for name, block in zip(raw, blocks, strict=True))
    there = same and sum(block.size for block in blocks) == size
    return blocks if there else [], [Block(block.id, block.size) for block in waiting]


def _commit(
    client: AzureClient, at: Location, names: Sequence[str], precondition: Precondition | str, kept: KeptProperties
) -> str | None:
    """Commit the list, and return the new ETag. Raises Conflict, WriteError.

    After an error, the blob's blocks show whether the list was committed nevertheless. None is returned then.
    """
    from azure.storage.blob import StandardBlobTier

    try:
        tier = None if kept.tier is None else StandardBlobTier(kept.tier)
    except ValueError:
        tier = None
    try:
        with convert_sdk_errors(at, writing=True):
            done = client.blob(at).commit_block_list(
                [BlobBlock(name) for name in names],
                content_settings=kept.settings,
                metadata=kept.metadata,
                tags=kept.tags,
                standard_blob_tier=tier,
                encryption_scope=kept.scope,
                validate_content=True,
                **precondition_parameters(precondition),
            )
            return str(done["etag"])
    except (Conflict, ObjectNotFound, WriteError):
        if names and _consists_of(client, at, names):
            return None
        if precondition is not Precondition.NONE and _was_replaced(client, at, precondition):
            raise Conflict from None
        raise


def _consists_of(client: AzureClient, at: Location, names: Sequence[str]) -> bool:
    """Whether the blob's committed blocks are exactly these."""
    try:
        with convert_sdk_errors(at):
            found, _ = client.blob(at).get_block_list("committed")
    except (ObjectNotFound, UnreadableError):
        return False
    return [block.id for block in found] == list(names)


def _was_replaced(client: AzureClient, at: Location, precondition: Precondition | str) -> bool:
    """Whether another program wrote the blob: its commit deleted the uploaded blocks."""
    try:
        found = client.head(at)
    except UnreadableError:
        return False
    return found is not None if precondition is Precondition.NO_OBJECT else found is None or found.tag != precondition


def _compare(client: AzureClient, at: Location, content: Content, tag: str | None, kept: KeptProperties) -> None:
    """Compare the end of the stored blob with the content. Raises WriteError if they differ."""
    length = min(content.size, _TAIL_BYTES)
    start = content.size - length
    options = {} if tag is None else {"etag": tag, "match_condition": MatchConditions.IfNotModified}
    try:
        with convert_sdk_errors(at, writing=True):
            blob = client.blob(at)
            if content.size:  # request one more byte than expected, to detect a longer blob
                data = blob.download_blob(start, length + 1, max_concurrency=1, **options).readall()
            else:
                data = bytes(blob.get_blob_properties(**options).size)
    except (ObjectNotFound, Conflict):
        return  # another program replaced it since
    if data == content.read(start, length):
        return
    raise WriteError(
        "the blob in the store isn't what was written",
        path=at.uri,
        hint=f"go back to its version {kept.version}"
        if kept.version
        else "restore it from a snapshot or a copy: the account keeps no versions",
    )
