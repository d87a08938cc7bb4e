"""Writes a blob as a new list of blocks.

Blocks that are uploaded belong to nobody until a list names them: the service drops them with the next list that is
committed, or after a week. The list is committed on the condition that the blob is still the one that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlobType

from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage import traffic
from bloomcli.storage.azure.blocks import MOST, Block, new_names, parts
from bloomcli.storage.azure.client import PROPERTIES, AzureClient, conditions
from bloomcli.storage.azure.errors import refusals, rehydration
from bloomcli.storage.base import Progress
from bloomcli.storage.objects.client import Absent, Conflict, Location, Need, ObjectInfo
from bloomcli.storage.objects.content import Content
from bloomcli.storage.objects.source import ObjectSource

_TAIL_BYTES: Final = 64 << 10
"""Bytes at the end that are read back and compared, at most."""
_LEASED: Final = "locked"


class Kept(NamedTuple):
    """What a new blob takes over from its source."""

    settings: Any = None
    """Content-Type and the other headers."""
    metadata: dict[str, str] | None = None
    tags: dict[str, str] | None = None
    tier: str | None = None
    """None: the account's default."""
    scope: str | None = None
    """The encryption scope."""
    version: str | None = None
    """The version of the source, where the account keeps versions."""


def kept(client: AzureClient, at: Location, tag: str, *, whole: bool) -> Kept:
    """What the blob with this tag has besides its content.

    Args:
        client: for the requests.
        at: the blob.
        tag: its ETag.
        whole: its content stays as it is, and so does its MD5.

    Raises:
        Conflict: the blob has another tag.
    """
    found = client.properties(at)
    if found is None or found.etag != tag:
        raise Conflict
    tags = None
    if found.tag_count:
        with refusals(at):
            tags = client.blob(at).get_blob_tags()
    settings = found.content_settings
    if not whole:
        settings.content_md5 = None
    return Kept(
        settings,
        found.metadata or None,
        tags,
        None if found.blob_tier_inferred else found.blob_tier,
        found.encryption_scope,
        found.version_id,
    )


def check_replaceable(client: AzureClient, at: Location, known: ObjectInfo | None) -> None:
    """Refuse a blob that can't be replaced, or only with a loss.

    Args:
        client: for the request, unless the blob is known.
        at: the blob.
        known: what opening it has told.

    Raises:
        UsageError: it can't be replaced.
    """
    details = None if known is None else known.details
    found = client.properties(at) if details is None else details[PROPERTIES]
    if found is None:
        return
    why = hint = None
    if found.blob_type != BlobType.BLOCKBLOB:
        why, hint = "it is no block blob, and page and append blobs can't be replaced", "-o writes a copy"
    elif found.lease is not None and found.lease.status == _LEASED:
        why, hint = "it has a lease: whoever has it may write", "wait for the lease's end, or -o writes a copy"
    elif found.has_legal_hold:
        why, hint = "it has a legal hold", "-o writes a copy"
    elif found.immutability_policy is not None and found.immutability_policy.expiry_time is not None:
        why, hint = "it has an immutability policy", "-o writes a copy"
    elif found.blob_tier == "Archive":
        why, hint = "it is in the Archive tier", rehydration(at)
    if why is not None:
        raise UsageError(f"can't be replaced: {why}", path=at.uri, hint=hint)


def write(
    client: AzureClient,
    at: Location,
    content: Content,
    need: Need | str,
    took: Kept,
    *,
    progress: Progress | None,
) -> None:
    """Upload what isn't there, and commit the list.

    Args:
        client: for the requests.
        at: the blob to write.
        content: of the new blob.
        need: the condition on what is there; a tag: the source is the blob itself, and its blocks may be kept.
        took: what the blob has besides its content.
        progress: called with the number of kept bytes that are done.

    Raises:
        Conflict: the condition isn't met.
        WriteError: the store refuses; the blob isn't what was written.
    """
    committed, waiting = _blocks(client, at, content.source.size, need) if isinstance(need, str) else ([], [])
    listed = parts(content.segments, committed)
    if len(listed) > MOST:
        committed, listed = [], parts(content.segments, [])
    blob, names, ours = client.blob(at), new_names([*committed, *waiting]), []
    for part in listed:
        name = part.name
        if name is None:
            name = next(names)
            data = content.read(part.start, part.length)
            with refusals(at, writing=True):
                blob.stage_block(name, data, validate_content=True, encryption_scope=took.scope)
            del data
        else:
            traffic.current().count(requests=0, copied=part.length)
        ours.append(name)
        if progress is not None:
            for count in content.kept(part.start, part.length):
                progress(count)
    _compare(client, at, content, _commit(client, at, ours, need, took), took)


def has_blocks(client: AzureClient, source: ObjectSource) -> bool:
    """Whether a blob has blocks that a new list can name. One request; where it fails, a dry run assumes them."""
    try:
        return bool(_blocks(client, source.at, source.size, source.info.tag)[0])
    except (Absent, Conflict, BloomError):
        return True


def _blocks(client: AzureClient, at: Location, size: int, tag: str) -> tuple[list[Block], list[Block]]:
    """The blob's blocks, and those that were uploaded but no list names yet. Raises Conflict.

    None of its blocks where it has some whose names the SDK can't give back.
    """
    seen: list[Any] = []

    def keep(_: object, answer: Any, headers: Any) -> Any:
        if headers.get("ETag") != tag:
            raise Conflict  # nothing of ours is left among its blocks then
        seen.append(answer)
        return answer

    with refusals(at, writing=True):
        found, waiting = client.blob(at).get_block_list("all", cls=keep)
    raw = [block.name for answer in seen for block in answer.committed_blocks or ()]
    blocks = [Block(block.id, block.size) for block in found]
    same = all(name != block.name for name, block in zip(raw, blocks, strict=True))
    there = same and sum(block.size for block in blocks) == size
    return blocks if there else [], [Block(block.id, block.size) for block in waiting]


def _commit(client: AzureClient, at: Location, names: Sequence[str], need: Need | str, took: Kept) -> str | None:
    """Commit the list; gives the new ETag. Where the answer is lost, the blob's blocks tell whether it was committed,
    and there is no ETag to give. Raises Conflict, WriteError."""
    from azure.storage.blob import StandardBlobTier

    try:
        tier = None if took.tier is None else StandardBlobTier(took.tier)
    except ValueError:
        tier = None
    try:
        with refusals(at, writing=True):
            done = client.blob(at).commit_block_list(
                [BlobBlock(name) for name in names],
                content_settings=took.settings,
                metadata=took.metadata,
                tags=took.tags,
                standard_blob_tier=tier,
                encryption_scope=took.scope,
                validate_content=True,
                **conditions(need),
            )
    except (Conflict, Absent, WriteError):
        if names and _has(client, at, names):
            return None
        if need is not Need.NOTHING and _is_other(client, at, need):
            raise Conflict from None
        raise
    return str(done["etag"])


def _has(client: AzureClient, at: Location, names: Sequence[str]) -> bool:
    """Whether the blob consists of these blocks."""
    try:
        with refusals(at):
            found, _ = client.blob(at).get_block_list("committed")
    except (Absent, UnreadableError):
        return False
    return [block.id for block in found] == list(names)


def _is_other(client: AzureClient, at: Location, need: Need | str) -> bool:
    """Whether the condition isn't met any more: another list dropped the blocks that were uploaded."""
    try:
        found = client.head(at)
    except UnreadableError:
        return False
    return found is not None if need is Need.ABSENT else found is None or found.tag != need


def _compare(client: AzureClient, at: Location, content: Content, tag: str | None, took: Kept) -> None:
    """Compare the end of the blob that was written with what was to be written. Raises WriteError."""
    length = min(content.size, _TAIL_BYTES)
    start = content.size - length
    options = {} if tag is None else {"etag": tag, "match_condition": MatchConditions.IfNotModified}
    try:
        with refusals(at, writing=True):
            blob = client.blob(at)
            if content.size:  # one byte more than there should be is asked for
                data = blob.download_blob(start, length + 1, max_concurrency=1, **options).readall()
            else:
                data = bytes(blob.get_blob_properties(**options).size)
    except (Absent, Conflict):
        return  # it was replaced since
    if data == content.read(start, length):
        return
    raise WriteError(
        "the blob in the store isn't what was written",
        path=at.uri,
        hint=f"go back to its version {took.version}"
        if took.version
        else "restore it from a snapshot or a copy: the account keeps no versions",
    )
