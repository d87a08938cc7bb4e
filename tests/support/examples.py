"""Numbers of Hypothesis examples for tests that set a number: the quick run's profile tries fewer."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_USUAL: Final = 100
"""Hypothesis' default number of examples."""


def examples(number: int) -> int:
    """The number of examples, scaled by the current profile."""
    return max(1, number * settings.default.max_examples // _USUAL)
