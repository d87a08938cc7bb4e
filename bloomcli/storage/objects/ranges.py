"""Parses Content-Range and Content-Length headers (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_RANGE: Final = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})", re.ASCII)
_LENGTH: Final = re.compile(r"\d{1,18}", re.ASCII)


class ContentRange(NamedTuple):
    """The range of a file that an answer contains."""

    start: int
    end: int
    """Offset of the first byte after the range; 0 for an answer without a range."""
    size: int
    """Size of the file in bytes."""


def content_range(headers: Mapping[str, str]) -> ContentRange | None:
    """The range from the Content-Range header; None if the header is missing or has no file size."""
    found = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if found is None:
        return None
    first, last, size = found.groups()
    return ContentRange(int(first or 0), int(last) + 1 if last else 0, int(size))


def content_length(headers: Mapping[str, str]) -> int:
    """The size of an answer's body in bytes; 0 if unknown."""
    found = _LENGTH.fullmatch(headers.get("Content-Length", "").strip())
    return int(found.group()) if found else 0
