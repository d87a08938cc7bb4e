"""The exit codes of commands about many files."""

from __future__ import annotations

from collections.abc import Collection


def gravest(codes: Collection[int]) -> int:
    """Return the gravest of several exit codes: a bug, unreadable, not supported, usage, findings, success."""
    return next((code for code in (70, 3, 4, 2, 1) if code in codes), 0)
