"""Divides a new content into blocks that the blob has already and new blocks to upload.

A block blob is a list of named blocks. A new list may name blocks of the old one: each block that lies completely in
a kept range is kept, and only the other bytes are uploaded.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from bloomcli.storage.objects.content import Segment
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
