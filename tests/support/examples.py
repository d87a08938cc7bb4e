"""How many examples Hypothesis tries where a test names a number: the quick run's profile tries fewer."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_USUAL: Final = 100
"""What Hypothesis tries where a test names no number."""


def examples(number: int) -> int:
    """The number of examples, or the part of it that the profile in force takes."""
    return max(1, number * settings.default.max_examples // _USUAL)
