"""Divides a new object into the parts of a multipart upload, while its content comes in. Pure functions.

S3 wants parts of 5 MiB to 5 GiB, any size for the last one, and at most 10,000 of them. A part is either copied by
the store, from one range of the source, or uploaded. Ranges that are too short for a part of their own are uploaded
together with what is next to them; where that is less than 5 MiB, with the beginning of the range that follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.objects.content import Segment, within

MIN_PART_BYTES: Final = 5 << 20
MAX_PART_BYTES: Final = 5 << 30
MAX_PARTS: Final = 10_000

COPY_BYTES: Final = 64 << 20
"""A range that is copied is divided into parts of this size, which the store copies at the same time."""
UPLOAD_BYTES: Final = 8 << 20
"""What is uploaded is divided into parts of this size: those on the way are held in memory."""
_TARGET_PARTS: Final = 4_000
"""Large objects have larger parts, so many that twice as many would be allowed."""


class PartSizes(NamedTuple):
    """The sizes of parts, which depend on the object's."""

    least: int
    copy: int
    upload: int
    copies: bool = True
    """The store can copy ranges of the source."""


class Part(NamedTuple):
    """A part of the new object."""

    number: int
    """From 1 on."""
    start: int
    length: int
    copy_from: int | None
    """The offset in the source, where the store copies the part."""


def sizes_for(size: int, *, copies: bool = True) -> PartSizes:
    """The sizes of parts for an object of about `size` bytes; without `copies`, no range is long enough for one."""
    least = min(max(MIN_PART_BYTES, -(-size // _TARGET_PARTS)), MAX_PART_BYTES // 5)
    # the last part of a range has less than `copy + least`
    copy = min(max(COPY_BYTES, 4 * least), MAX_PART_BYTES - least)
    return PartSizes(least, copy, max(UPLOAD_BYTES, least), copies)


def next_parts(segments: Sequence[Segment], done: Part | None, sizes: PartSizes, *, finished: bool) -> Iterator[Part]:
    """The parts that are certain, after those that were given before.

    Args:
        segments: the content, as far as it is known; the last segment may become longer.
        done: the last part that was given before.
        sizes: the sizes of parts.
        finished: nothing follows.
    """
    while (part := _next(segments, done, sizes, finished)) is not None:
        yield part
        done = part


def _next(segments: Sequence[Segment], done: Part | None, sizes: PartSizes, finished: bool) -> Part | None:
    number, start = (1, 0) if done is None else (done.number + 1, done.start + done.length)
    known = segments[-1].end if segments else 0
    if start >= known:
        return None
    # No part is longer than this, so that no more of the content has to be looked at.
    ahead = within(segments, start, min(known, start + sizes.copy + sizes.least))
    first = ahead[0]
    if sizes.copies and first.kept and first.length >= sizes.least:
        if first.length >= sizes.copy + sizes.least:
            return Part(number, start, sizes.copy, first.offset)
        if first.end == known and not finished:
            return None  # it may become longer
        return Part(number, start, first.length, first.offset)
    length = _uploaded(ahead, sizes, finished, known)
    return None if length is None else Part(number, start, length, None)


def _uploaded(ahead: Sequence[Segment], sizes: PartSizes, finished: bool, known: int) -> int | None:
    """The length of a part that is uploaded; None while it isn't certain."""
    length = 0
    for segment in ahead:
        grows = segment.end == known and not finished
        copied = sizes.copies and segment.kept
        if copied and length >= sizes.least and (segment.length >= sizes.least or grows):
            return length  # the store copies the range, or may do so
        if copied and segment.length >= sizes.least:
            return sizes.least  # with the beginning of a range, whose rest the store copies
        length += segment.length
        if length >= sizes.upload:
            return sizes.upload
    return length if finished and ahead[-1].end == known else None
