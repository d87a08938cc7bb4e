"""Shortens bounds of texts and byte arrays as writers do, so that no value is outside of them.

A minimum is cut after `BOUND_BYTES` bytes, a maximum too, and then incremented, so that it stays above all values.
Text is cut between characters, and its last character is incremented: such a bound is text again.

The length is that of parquet-java (`parquet.columnindex.truncate.length`).
"""

from __future__ import annotations

import codecs
from typing import Final

BOUND_BYTES: Final = 64
"""The maximum length of a minimum, and of nearly every maximum, that may be cut."""
LONGEST_BOUND: Final = BOUND_BYTES + 1
"""The maximum length of a maximum that was cut: its incremented character may take a byte more."""
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def cut_low(bound: bytes) -> bytes:
    """The lower bound, cut to `BOUND_BYTES`."""
    if len(bound) <= BOUND_BYTES:
        return bound
    text = _text(bound[:BOUND_BYTES])
    return bound[:BOUND_BYTES] if text is None else text.encode()


def cut_high(bound: bytes) -> bytes:
    """The upper bound, cut to `BOUND_BYTES` and incremented; the whole bound if that isn't possible.

    The incremented character of a text may take a byte more.
    """
    if len(bound) <= BOUND_BYTES:
        return bound
    text = _text(bound[:BOUND_BYTES])
    shorter = _next_bytes(bound[:BOUND_BYTES]) if text is None else _next_text(text)
    return bound if shorter is None else shorter


def _text(cut: bytes) -> str | None:
    """The whole characters at the start of some bytes; None if the bytes aren't text."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(cut)
    except UnicodeDecodeError:
        return None


def _next_bytes(bound: bytes) -> bytes | None:
    """The least shorter or equally long bytes that are above all that begin with `bound`; None if there are none."""
    kept = bound.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(text: str) -> bytes | None:
    kept = text.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return (kept[:-1] + chr(following)).encode()
