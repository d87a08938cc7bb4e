"""Decoded metadata as JSON values."""

from __future__ import annotations

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
"""A JSON value."""


def binary(value: bytes, *, text: bool) -> Tree:
    """Bytes as ``{"hex": "..."}``; the bytes of a string as text, if they are UTF-8."""
    if text:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return {"hex": value.hex()}
