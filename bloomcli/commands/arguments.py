"""What callers of the library give where several things may be meant: one is given as it is."""

from __future__ import annotations

from collections.abc import Iterable

from bloomcli.errors import UsageError


def names(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Names of columns and the like: a single one is meant as one, not as its letters.

    Args:
        given: one name or several.
        what: what they name, for the error.

    Raises:
        UsageError: something that is no text.
    """
    found = several(given)
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise UsageError(f"{what} are given by name, not as {wrong[0]!r}", hint="one text, or a list of texts")
    return tuple(map(str, found))


def several(given: object) -> tuple[object, ...]:
    """What is given, where it is one thing; the things in it, where it is a list of them."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)
