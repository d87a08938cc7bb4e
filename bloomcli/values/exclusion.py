"""Decides whether min/max statistics alone rule out a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bloomcli.model.file import Column
from bloomcli.values.literals import Literal, decode_bound


def excluded_by(literal: Literal, min_value: bytes | None, max_value: bytes | None, column: Column) -> bool | None:
    """Return whether min/max statistics alone rule out the value; None if they can't decide.

    Truncated bounds are still bounds. Positive and negative zero compare equal, so a bound of either doesn't rule out
    the other. A minimum above the maximum shows that the statistics are wrong: they can't decide.
    """
    return exclusions([literal], min_value, max_value, column)[0]


def exclusions(
    literals: Sequence[Literal], min_value: bytes | None, max_value: bytes | None, column: Column
) -> list[bool | None]:
    """`excluded_by` for each of several values."""
    low = None if min_value is None else decode_bound(min_value, column)
    high = None if max_value is None else decode_bound(max_value, column)
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        return [None] * len(literals)
    return [_excluded(literal, low, high) for literal in literals]


def _excluded(literal: Literal, low: Any, high: Any) -> bool | None:
    if literal.impossible is not None:
        return True
    if literal.unknowable is not None or literal.order_key is None:
        return None
    return bool((low is not None and literal.order_key < low) or (high is not None and literal.order_key > high))
