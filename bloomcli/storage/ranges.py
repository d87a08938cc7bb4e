"""Ranges of files: offsets and lengths."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]
"""An offset and a length, in bytes."""


def united(ranges: Iterable[Range]) -> list[Range]:
    """The ranges in order; ranges that touch or overlap are merged."""
    found: list[Range] = []
    for offset, length in sorted(ranges):
        if found and offset <= sum(found[-1]):
            start, before = found[-1]
            found[-1] = start, max(before, offset + length - start)
        else:
            found.append((offset, length))
    return found
