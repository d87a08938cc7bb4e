"""The deep check of every format: builds a filter from its column's values, and compares it with the stored one.

The stored filter must have all bits that the values set, or values are missing. Its other bits are stray: a bit
flipped, or the filter was made from other data. If a value is a zero, the stored filter may also have all bits of the
zero of the other sign, since writers may insert both.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import compress
from operator import or_
from typing import Any, Final, Generic, TypeVar

from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import HINT_REPLACE, DeepCheck
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES
from bloomcli.words import are, counted

_WINDOW: Final = 1 << 20
"""Bytes of filters that are compared at a time."""
_COMPARED_BYTES: Final = 8
"""Bytes of a filter for each value that is looked up, up to which comparing the filter's bits is faster."""
MISSING_SHOWN: Final = 5
"""The number of missing values that a finding names."""


B = TypeVar("B", SplitBlockFilter, KirschMitzenmacherFilter)


def filter_finding(
    id: str,  # noqa: A002  it is the rule's id
    message: str,
    *,
    severity: Severity | None = None,
    hint: str | None = HINT_REPLACE,
    missing: Sequence[str] = (),
    **place: Any,
) -> Finding:
    """A finding about a filter, by default with the severity of its rule. `place`: other fields of the `Finding`."""
    severity = severity or RULES[id].severity
    return Finding(id=id, severity=severity, message=message, hint=hint, missing=tuple(missing), **place)


class FilterCheck(Generic[B]):
    """Compares a stored filter with its column's values, of which it builds another one.

    Attributes:
        count: the values.
        lost: values of `take` that no reader finds: neither their own hashes nor those of other readers are in the
            filter.
        negative_zero: a value is -0.0, and the stored filter doesn't hold +0.0.
    """

    def __init__(self, stored: B, zeros: Sequence[int] = ()) -> None:
        """`zeros`: the hashes of +0.0 and -0.0 in a floating-point column."""
        self._stored: B = stored
        self._rebuilt: B = stored.emptied()
        self._zeros = zeros
        self._has_zero = False
        self._only_negative_zero = bool(zeros) and stored.check(zeros[1]) and not stored.check(zeros[0])
        self._allowed: B | None = None
        self._missing: list[str] = []
        self.count = self.lost = 0
        self.negative_zero = False

    def insert(self, hashes: bytes | bytearray, count: int, *, has_zero: bool = False) -> None:
        """Insert values without looking them up; `has_zero`: one of them is a zero of either sign."""
        self.count += count
        self._insert(hashes, count, has_zero=has_zero)

    def _insert(self, hashes: bytes | bytearray, count: int, *, has_zero: bool) -> None:
        self._rebuilt.insert_hashes(hashes, count)
        self._has_zero = self._has_zero or has_zero
        if has_zero and self._only_negative_zero and not self.negative_zero:
            self.negative_zero = self._zeros[1] in set(memoryview(hashes)[: count * 8].cast("Q"))

    def take(
        self,
        hashes: bytes | bytearray,
        count: int,
        texts: Callable[[], Callable[[int], str]],
        *,
        has_zero: bool = False,
        others: bytes | bytearray = b"",
        owners: bytes | bytearray = b"",
    ) -> None:
        """Insert values that the filter has, and count the others as lost.

        Args:
            hashes: their hashes, uint64s in native order.
            count: their number.
            texts: returns the function that returns the text of a value by its number.
            has_zero: as for `insert`.
            others: hashes that some readers compute for a value in place of its own.
            owners: for each of these, the number of its value, as int64.
        """
        # comparing the bits is faster than looking each value up, unless the filter is large for the values
        together = not others and len(self._stored.bitset) <= _COMPARED_BYTES * count
        self.count += count
        if together:
            self._insert(hashes, count, has_zero=has_zero)
            if not self.has_missing_bits():
                return
        flags = bytearray(count)
        self._stored.check_hashes(hashes, count, flags)
        if not together:
            held = array("Q", compress(memoryview(hashes).cast("Q"), flags)).tobytes()
            self._insert(held, len(held) // 8, has_zero=has_zero)
            self.allow(others)
            other_flags = bytearray(len(others) // 8)
            self._stored.check_hashes(others, len(other_flags), other_flags)
            for owner in compress(memoryview(owners).cast("q"), other_flags):
                flags[owner] = 1
        if lost := flags.count(0):
            self.lost += lost
            add_missing(self._missing, flags, texts())

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

    def result(self, finding: Callable[..., Finding], stray: int | None = None) -> DeepCheck:
        """The outcome. `finding`: `filter_finding` with the filter's place. `stray`: the number of stray bits, if it
        isn't that of `stray_bits`."""
        if self.lost:
            its = "its" if self.lost == 1 else "their"
            message = f"{self.lost} of {counted(self.count, 'value')} {are(self.lost)} not in {its} filter"
            missed = finding("value-missing", f"{message}: readers lose {its} rows", missing=self._missing)
            return DeepCheck(self.count, missed)
        stray = self.stray_bits() if stray is None else stray
        zero = "the column holds -0.0 and its filter doesn't hold +0.0"
        return DeepCheck(
            self.count,
            finding("filter-stray-bits", stray_bits_message(stray)) if stray else None,
            finding("reader-negative-zero", zero) if self.negative_zero else None,
        )


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


def missing_bound_message(which: str) -> str:
    """The finding's message: the filter doesn't have the minimum or the maximum of the statistics."""
    return f"the {which} of the row group's own statistics is not in its filter: readers lose its rows"


def stray_bits_message(stray: int) -> str:
    """The finding's message."""
    bits = f"{counted(stray, 'bit')} {are(stray)}"
    return f"{bits} set that no value of the column sets: flipped, or of other data"
