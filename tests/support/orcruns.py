"""An encoder for all of ORC's run-length encodings in plain Python, from the specification."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from support.thrift import varint

WIDTHS: Final = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""The bit widths that have a code: a width's code is its position here."""
_MASK: Final = (1 << 64) - 1


def wrapped(value: int) -> int:
    """Convert to a signed 64-bit integer."""
    return ((value + (1 << 63)) & _MASK) - (1 << 63)


def zigzag(value: int) -> int:
    """The zigzag encoding of a signed 64-bit integer."""
    return ((value << 1) ^ (value >> 63)) & _MASK


def number(value: int, *, signed: bool) -> int:
    """The stored number of a value."""
    return zigzag(value) if signed else value & _MASK


def packed(values: Sequence[int], width: int) -> bytes:
    """Big-endian bits, filled up to a byte with zeros."""
    bits = "".join(f"{v:0{width}b}" for v in values)
    assert len(bits) == width * len(values), "a value is too wide"
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""


def closest(bits: int) -> int:
    """The narrowest width with a code that holds `bits` bits."""
    return next(w for w in WIDTHS if w >= bits)


def _head(kind: int, width: int | None, count: int) -> bytes:
    code = 0 if width is None else WIDTHS.index(width)
    return bytes([kind << 6 | code << 1 | (count - 1) >> 8, count - 1 & 0xFF])


def short_repeat(value: int, count: int, *, signed: bool) -> bytes:
    """3 to 10 equal values."""
    stored = number(value, signed=signed)
    width = max(-(-stored.bit_length() // 8), 1)
    return bytes([(width - 1) << 3 | count - 3]) + stored.to_bytes(width, "big")


def direct(values: Sequence[int], *, signed: bool) -> bytes:
    """1 to 512 values."""
    stored = [number(v, signed=signed) for v in values]
    width = closest(max(v.bit_length() for v in stored))
    return _head(1, width, len(values)) + packed(stored, width)


def delta(values: Sequence[int], *, signed: bool, width: int = 2) -> bytes:
    """2 to 512 ascending or descending values; the steps have at least `width` bits."""
    steps = [b - a for a, b in itertools.pairwise(values[1:])]
    down = values[1] < values[0]
    sizes = [-s if down else s for s in steps]
    width = closest(max(max((s.bit_length() for s in sizes), default=0), width))
    first = varint(number(values[0], signed=signed)) + varint(zigzag(values[1] - values[0]))
    return _head(3, width, len(values)) + first + packed(sizes, width)


def fixed_delta(value: int, step: int, count: int, *, signed: bool) -> bytes:
    """1 to 512 values, each a step from the one before."""
    return _head(3, None, count) + varint(number(value, signed=signed)) + varint(zigzag(step))


def patched(values: Sequence[int], width: int) -> bytes:
    """1 to 512 values; those that exceed the minimum by `width` bits or more become patches."""
    base = min(values)
    above = [v - base for v in values]
    wide = [(i, v >> width) for i, v in enumerate(above) if v >> width]
    patch_width = closest(max(v.bit_length() for _, v in wide))
    entries, at = [], 0
    for place, patch in wide:
        while place - at > 255:
            entries.append((255, 0))
            at += 255
        entries.append((place - at, patch))
        at = place
    assert len(entries) <= 31, "more patches than a run has room for"
    gap_width = max(gap.bit_length() or 1 for gap, _ in entries)
    base_bytes = -(-(abs(base).bit_length() + 1) // 8)
    sign = 1 << (base_bytes * 8 - 1) if base < 0 else 0
    return (
        _head(2, width, len(values))
        + bytes([(base_bytes - 1) << 5 | WIDTHS.index(patch_width), (gap_width - 1) << 5 | len(entries)])
        + (abs(base) | sign).to_bytes(base_bytes, "big")
        + packed([v & ((1 << width) - 1) for v in above], width)
        + packed([gap << patch_width | patch for gap, patch in entries], closest(patch_width + gap_width))
    )


def run_v1(value: int, step: int, count: int, *, signed: bool) -> bytes:
    """3 to 130 values, each a step of -128 to 127 from the one before."""
    return bytes([count - 3, step & 0xFF]) + varint(number(value, signed=signed))


def literals_v1(values: Sequence[int], *, signed: bool) -> bytes:
    """1 to 128 values."""
    return bytes([256 - len(values)]) + b"".join(varint(number(v, signed=signed)) for v in values)


def byte_run(value: int, count: int) -> bytes:
    """3 to 130 equal bytes."""
    return bytes([count - 3, value])


def byte_literals(values: bytes) -> bytes:
    """1 to 128 bytes."""
    return bytes([256 - len(values)]) + values
