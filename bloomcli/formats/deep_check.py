"""The deep check of every format: builds a filter from its column's values, and compares it with the stored one.

The stored filter must have all bits that the values set, or values are missing. Its other bits are stray: a bit
flipped, or the filter was made from other data. If a value is a zero, the stored filter may also have all bits of the
zero of the other sign, since writers may insert both.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final, Generic, TypeVar

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.words import are, counted

_WINDOW: Final = 1 << 20
"""Bytes of filters that are compared at a time."""
MISSING_SHOWN: Final = 5
"""The number of missing values that a finding names."""


B = TypeVar("B", SplitBlockFilter, KirschMitzenmacherFilter)


class FilterComparison(Generic[B]):
    """Compares a stored filter with one that is built from its column's values."""

    def __init__(self, stored: B, zeros: Sequence[int] = ()) -> None:
        """`zeros`: the hashes of +0.0 and -0.0 in a floating-point column."""
        self._stored: B = stored
        self._rebuilt: B = stored.emptied()
        self._zeros = zeros
        self._has_zero = False
        self._only_negative_zero = bool(zeros) and stored.check(zeros[1]) and not stored.check(zeros[0])
        self._allowed: B | None = None
        self.count = 0
        self.negative_zero = False
        """A value is -0.0, and the stored filter doesn't hold +0.0."""

    def insert(self, hashes: bytes | bytearray, count: int, *, has_zero: bool) -> None:
        """Insert values; `has_zero`: one of them is a zero of either sign."""
        self._rebuilt.insert_hashes(hashes, count)
        self.count += count
        self._has_zero = self._has_zero or has_zero
        if has_zero and self._only_negative_zero and not self.negative_zero:
            self.negative_zero = self._zeros[1] in set(memoryview(hashes)[: count * 8].cast("Q"))

    def has_missing_bits(self) -> bool:
        """Whether the values set a bit that the stored filter doesn't have: values are missing."""
        if self._rebuilt.bitset == self._stored.bitset:
            return False
        return any(rebuilt & ~stored for rebuilt, stored in _windows(self._rebuilt, self._stored))

    def allow(self, hashes: bytes | bytearray) -> None:
        """Allow hashes that the stored filter needn't hold: those that some readers compute for a value."""
        if hashes:
            flags = bytearray(len(hashes) // 8)
            self._stored.check_hashes(hashes, len(flags), flags)
            self._allowed = self._allowed or self._stored.emptied()
            held = array("Q", compress(memoryview(hashes).cast("Q"), flags))
            self._allowed.insert_hashes(memoryview(held).cast("B"), len(held))

    def stray_bits(self, allowed: bytes | bytearray = b"") -> int:
        """Count the bits of the stored filter that no value sets, and no allowed hash that the filter holds."""
        if self._rebuilt.bitset == self._stored.bitset:
            return 0
        self.allow(allowed)
        if self._has_zero:
            self.allow(bytes(array("Q", self._zeros)))
        windows = _windows(self._stored, self._rebuilt, *([] if self._allowed is None else [self._allowed]))
        return sum((stored & ~reduce(or_, masks)).bit_count() for stored, *masks in windows)


def _windows(*filters: SplitBlockFilter | KirschMitzenmacherFilter) -> Iterator[list[int]]:
    """Yield the bits of filters of one size as integers, part by part: a filter may have 128 MiB."""
    views = [memoryview(bits.bitset) for bits in filters]
    for at in range(0, len(views[0]), _WINDOW):
        yield [int.from_bytes(view[at : at + _WINDOW], "little") for view in views]


def add_missing(missing: list[str], flags: bytearray, text_of: Callable[[int], str]) -> None:
    """Append the text of values whose flag is 0, each text once, until `missing` has `MISSING_SHOWN`."""
    at = -1
    while len(missing) < MISSING_SHOWN and (at := flags.find(0, at + 1)) >= 0:
        text = text_of(at)
        if text not in missing:
            missing.append(text)


def missing_values_message(lost: int, checked: int) -> str:
    """The finding's message."""
    its = "its" if lost == 1 else "their"
    return f"{lost} of {counted(checked, 'value')} {are(lost)} not in {its} filter: readers lose {its} rows"


def missing_bound_message(which: str) -> str:
    """The finding's message: the filter doesn't have the minimum or the maximum of the statistics."""
    return f"the {which} of the row group's own statistics is not in its filter: readers lose its rows"


def stray_bits_message(stray: int) -> str:
    """The finding's message."""
    bits = f"{counted(stray, 'bit')} {are(stray)}"
    return f"{bits} set that no value of the column sets: flipped, or of other data"


_FLOATS: Final = {"FLOAT": "<f", "DOUBLE": "<d"}


def has_two_forms(bound: bytes, kind: str) -> bool:
    """Whether a bound has several encodings: a zero has either sign, a NaN any bits."""
    if kind not in _FLOATS:
        return False
    (value,) = struct.unpack(_FLOATS[kind], bound)
    return bool(value == 0 or math.isnan(value))


NEGATIVE_ZERO: Final = "the column holds -0.0 and its filter doesn't hold +0.0"
