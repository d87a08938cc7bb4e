"""Nouns after their numbers: ``1 file``, ``2 files``. Every report and message counts by these two functions."""

from __future__ import annotations


def noun(number: int, singular: str) -> str:
    """Return a noun in the form that its number needs: ``file`` for 1, ``files`` for all others; ``entries``."""
    if number == 1:
        return singular
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}s"


def plural(number: int, singular: str) -> str:
    """Format a count with its noun: ``1 filter``, ``2 filters``, ``1,000 row groups``."""
    return f"{number:,} {noun(number, singular)}"


def counted(number: int, singular: str) -> str:
    """Format a count without separators, for messages that people search logs for: ``1 byte``, ``1000 bytes``."""
    return f"{number} {noun(number, singular)}"


def are(number: int) -> str:
    """Return ``is`` for 1, ``are`` for all other numbers."""
    return "is" if number == 1 else "are"
