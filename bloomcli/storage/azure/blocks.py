"""Which blocks of a blob a new content keeps, and which of its bytes are uploaded as new blocks.

A block blob is a list of blocks, each with a name. A new list may name blocks that the blob has already: a kept range
of the source keeps every block that lies in it whole, and only the bytes around those are uploaded again.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.objects.content import Segment
from bloomcli.storage.objects.whole_object_store import PART_BYTES

NEW_BYTES: Final = PART_BYTES
"""Bytes of a new block."""
MAX_BLOCKS: Final = 50_000
"""Blocks of a blob, by the service's limit."""
_NAME_BYTES: Final = 24


class Block(NamedTuple):
    """A committed block."""

    name: str
    """As the SDK has it: the text that the service's name decodes to."""
    size: int


class Part(NamedTuple):
    """A block of the new content."""

    start: int
    """Its offset in the new content."""
    length: int
    name: str | None
    """The name of a block that is there already; None: it is to be uploaded."""


def parts(segments: Sequence[Segment], committed: Sequence[Block]) -> list[Part]:
    """The blocks of a new content.

    Args:
        segments: the content.
        committed: the source's blocks, if the source is the blob that is replaced, and has any.
    """
    size = segments[-1].end if segments else 0
    length = max(NEW_BYTES, -(-2 * size // MAX_BLOCKS))
    found: list[Part] = []
    used: set[str] = set()
    done = 0
    for segment in segments:
        for start, block in _whole_blocks(segment, committed) if segment.kept else ():
            if block.name in used:
                continue  # a list names each block once
            used.add(block.name)
            found += _new_parts(done, start, length)
            found.append(Part(start, block.size, block.name))
            done = start + block.size
    return found + _new_parts(done, size, length)


def new_names(there: Sequence[Block]) -> Iterator[str]:
    """Names for new blocks.

    Args:
        there: the blob's blocks. The service wants new names to be as long as those of blocks that no list names yet,
            or else as those of the blob: the last block is the measure.
    """
    taken = {block.name for block in there}
    length = len(there[-1].name.encode()) if there else _NAME_BYTES
    while True:
        name = base64.urlsafe_b64encode(secrets.token_bytes(length)).decode()[:length]
        if name not in taken:
            taken.add(name)
            yield name


def _whole_blocks(segment: Segment, committed: Sequence[Block]) -> Iterator[tuple[int, Block]]:
    """The blocks that lie in a kept range whole, each with its offset in the new content."""
    starts = accumulate((block.size for block in committed), initial=0)
    for start, block in zip(starts, committed, strict=False):
        if block.size and segment.offset <= start and start + block.size <= segment.offset + segment.length:
            yield segment.start + start - segment.offset, block


def _new_parts(start: int, end: int, length: int) -> list[Part]:
    return [Part(at, min(length, end - at), None) for at in range(start, end, length)]
