"""Estimates the requests and bytes of a replacement in S3, for dry runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomcli.model.traffic import Traffic
from bloomcli.storage.base import Source
from bloomcli.storage.objects.content import Segment, within
from bloomcli.storage.s3.completion import COMPARED_BYTES
from bloomcli.storage.s3.parts import Part, next_parts, sizes_for

_LOOKING: Final = 1
"""Requests that read the properties to keep."""
_AROUND_PARTS: Final = 3
"""Requests that begin an upload, complete it, and read the new object's tail."""
_AROUND_PUT: Final = 1
"""Requests that read the new object's tail."""


def of_put(segments: Sequence[Segment], source: Source, put_most: int, *, copies: bool) -> Traffic | None:
    """The traffic of writing an object in one request; None if it is written in parts."""
    size = segments[-1].end if segments else 0
    if size > put_most or any(part.copy_from is not None for part in _parts(segments, copies=copies)):
        return None
    kept = ((s.offset, s.length) for s in segments if s.kept)
    return source.estimate(kept) + Traffic(1 + _LOOKING + _AROUND_PUT, min(size, COMPARED_BYTES), size, 0)


def of_parts(segments: Sequence[Segment], source: Source, *, copies: bool) -> Traffic:
    """The traffic of a multipart upload: one request per part, and reads of the kept bytes in uploaded parts."""
    parts = _parts(segments, copies=copies)
    uploaded = [part for part in parts if part.copy_from is None]
    found = (within(segments, part.start, part.start + part.length) for part in uploaded)
    kept = [(s.offset, s.length) for part in found for s in part if s.kept]
    sent = sum(part.length for part in uploaded)
    size = segments[-1].end
    traffic = Traffic(len(parts) + _LOOKING + _AROUND_PARTS, min(size, COMPARED_BYTES), sent, size - sent)
    return source.estimate(kept) + traffic


def _parts(segments: Sequence[Segment], *, copies: bool) -> list[Part]:
    size = segments[-1].end if segments else 0
    return list(next_parts(segments, None, sizes_for(size, copies=copies), finished=True))
