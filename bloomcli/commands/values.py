"""Converts values to probe from Python objects to the texts that a person types."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from numbers import Integral
from typing import TypeAlias
from uuid import UUID

from bloomcli.commands.arguments import several
from bloomcli.errors import UsageError

Value: TypeAlias = str | int | float | Decimal | date | UUID
"""A value to probe that has one usual text form."""


def texts(given: Value | Iterable[Value]) -> tuple[str, ...]:
    """Return strings unchanged, and numbers, dates, times and UUIDs in their usual text form.

    Raises:
        UsageError: a value has no usual text form.
    """
    return tuple(map(_text, several(given)))


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bool():  # an integer in Python, but not in files
            pass
        case float():
            return repr(float(value))
        case date():  # a datetime is one
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case Integral():  # NumPy's too
            return str(int(value))
    raise UsageError(
        f"a value to probe is text, a number, a date or a UUID, not {type(value).__name__}",
        hint="give it as text: true, 0x0fff for binary",
    )
