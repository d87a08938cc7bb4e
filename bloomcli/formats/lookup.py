"""What every format's deep check says of values that their filter doesn't hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MISSING_SHOWN: Final = 5
"""Missing values that a finding names."""


def add_missing(missing: list[str], flags: bytearray, text_of: Callable[[int], str]) -> None:
    """Append the text of values whose flag is 0, each text once, until `missing` has as many as are shown."""
    at = -1
    while len(missing) < MISSING_SHOWN and (at := flags.find(0, at + 1)) >= 0:
        text = text_of(at)
        if text not in missing:
            missing.append(text)


def lost_values(lost: int, checked: int) -> str:
    """The finding's message."""
    return f"{lost} of {checked} values are not in their filter: readers lose their rows"
