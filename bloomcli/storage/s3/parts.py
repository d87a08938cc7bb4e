"""Divides a new object into the parts of a multipart upload, while its content arrives. Pure functions.

S3 accepts at most 10,000 parts of 5 MiB to 5 GiB; the last one may be smaller. The store copies a part from one range
of the source, or the part is uploaded. Ranges that are too short to be copied are uploaded together with adjacent
bytes, and if these are less than 5 MiB, with the beginning of the next range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bloomcli.storage.objects.content import Segment, within

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
    known = segments[-1].end if segments else 0
    if start >= known:
        return None
    # No part is longer than this, so the content behind it doesn't matter.
    ahead = within(segments, start, min(known, start + sizes.copy + sizes.least))
    first = ahead[0]
    if sizes.copies and first.kept and first.length >= sizes.least:
        if first.length >= sizes.copy + sizes.least:
            return Part(number, start, sizes.copy, first.offset)
        if first.end == known and not finished:
            return None  # it may grow
        return Part(number, start, first.length, first.offset)
    length = _uploaded(ahead, sizes, finished, known)
    return None if length is None else Part(number, start, length, None)


def _uploaded(ahead: Sequence[Segment], sizes: PartSizes, finished: bool, known: int) -> int | None:
    """The length of the next uploaded part; None while it isn't final."""
    length = 0
    for segment in ahead:
        grows = segment.end == known and not finished
        copied = sizes.copies and segment.kept
        if copied and length >= sizes.least and (segment.length >= sizes.least or grows):
            return length  # the store can copy the range, or will if it grows
        if copied and segment.length >= sizes.least:
            return sizes.least  # includes the beginning of a range; the store copies its rest
        length += segment.length
        if length >= sizes.upload:
            return sizes.upload
    return length if finished and ahead[-1].end == known else None
