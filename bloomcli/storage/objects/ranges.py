"""Parses the headers that say which range of an object an answer contains (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bloomcli.named_tuple import NamedTuple

_RANGE: Final = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})", re.ASCII)
_LENGTH: Final = re.compile(r"\d{1,18}", re.ASCII)


class ContentRange(NamedTuple):
    """The range of an answer."""

    start: int
    end: int
    """The first byte behind it; that of an answer without a range is 0."""
    size: int
    """Bytes of the file."""


def content_range(headers: Mapping[str, str]) -> ContentRange | None:
    """The range that an answer has; None if it names none, or no size of the file."""
    found = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if found is None:
        return None
    first, last, size = found.groups()
    return ContentRange(int(first or 0), int(last) + 1 if last else 0, int(size))


def content_length(headers: Mapping[str, str]) -> int:
    """The bytes of an answer's body; 0 if unknown."""
    found = _LENGTH.fullmatch(headers.get("Content-Length", "").strip())
    return int(found.group()) if found else 0
