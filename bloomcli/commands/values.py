"""Converts values to probe from Python objects to the texts that a person types."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from numbers import Integral
from typing import TypeAlias
from uuid import UUID

from bloomcli.commands.option import several
from bloomcli.errors import UsageError

Value: TypeAlias = str | bytes | int | float | Decimal | date | UUID
"""A value to probe that has one usual text form."""


def texts(values: Value | Iterable[Value]) -> tuple[str, ...]:
    """Return strings unchanged, and numbers, dates, times, UUIDs and bytes in their usual text form.

    Bytes that are UTF-8 stand for that text, others for themselves: ``0x`` and hexadecimal digits.

    Raises:
        UsageError: a value has no usual text form.
    """
    return tuple(map(_text, several(values)))


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bytes() | bytearray() | memoryview():
            return _text_of_bytes(bytes(value))
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
        f"a value to probe is text, bytes, a number, a date or a UUID, not {type(value).__name__}",
        hint="give it as text: true, 0x0fff for binary",
    )


def _text_of_bytes(value: bytes) -> str:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    if text[:2].lower() == "0x":
        raise UsageError(
            f"{value!r} can be a text, or hexadecimal digits of a binary value",
            hint="give it as text: 0x0fff for the bytes 15 and 255, 0x307866 for the text 0xf in a binary column",
        )
    return text
