"""Finds a filter's missing values, once it is known that some are missing: reads the column again, value by value."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress

from bloomcli.concurrency.cancellation import Stop
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.deep_check import FilterComparison, add_missing
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.hashes import ColumnHasher, HashBatch, column_hasher
from bloomcli.formats.orc.schema import OrcType
from bloomcli.storage.base import Source


@dataclass(frozen=True, slots=True)
class MissingValues:
    """The result of checking one filter again."""

    count: int
    """Values that no reader finds."""
    missing: tuple[str, ...]
    """The texts of the first missing values."""
    stray: int
    """Bits that no value sets; 0 if values are missing."""


class MissingValueReader:
    """Reads a column of a stripe again, row group by row group, in order."""

    def __init__(self, source: Source, footer: Footer, streams: StripeFooter, orc: OrcType, stop: Stop) -> None:
        self._footer, self._stripe = footer, streams.stripe
        self._open = partial(column_hasher, source, footer, streams, orc, stop, repeats=True)
        self._next = 0

    def missing_values(self, group: int, filters: Sequence[KirschMitzenmacherFilter]) -> list[MissingValues]:
        """Return each filter's missing values in a row group: neither their own hashes nor those of other readers are
        in it."""
        while self._next < group:
            deque(self._row_group(), maxlen=0)
        checks = [_FilterCheck(bits) for bits in filters]
        for batch in self._row_group():
            for check in checks:
                check.take(batch, partial(self._hasher.leaf.text, batch.values))
        return [check.result() for check in checks]

    @cached_property
    def _hasher(self) -> ColumnHasher:
        return self._open()

    def _row_group(self) -> Iterator[HashBatch]:
        """The next row group. The rows before it have been read."""
        group, self._next = self._next, self._next + 1
        return self._hasher.take(self._footer.rows_in(self._stripe, group))


class _FilterCheck:
    """Checks one filter for the values that it should hold."""

    def __init__(self, bits: KirschMitzenmacherFilter) -> None:
        self._bits = bits
        self._comparison = FilterComparison(bits)
        self._count = 0
        self._missing: list[str] = []

    def take(self, batch: HashBatch, text: Callable[[int], str]) -> None:
        """Check the next values."""
        flags = bytearray(batch.count)
        self._bits.check_hashes(batch.hashes, batch.count, flags)
        found = array("Q", compress(memoryview(batch.hashes).cast("Q"), flags))
        self._comparison.insert(bytearray(found.tobytes()), len(found), has_zero=False)
        self._comparison.allow(batch.other_hashes)
        _find_other_hashes(batch, flags, self._bits)
        self._count += flags.count(0)
        add_missing(self._missing, flags, text)

    def result(self) -> MissingValues:
        """The result."""
        return MissingValues(self._count, tuple(self._missing), 0 if self._count else self._comparison.stray_bits())


def _find_other_hashes(batch: HashBatch, flags: bytearray, bits: KirschMitzenmacherFilter) -> None:
    """Set the flags of values whose hashes of other readers are in the filter."""
    count = len(batch.other_hashes) // 8
    held = bytearray(count)
    bits.check_hashes(batch.other_hashes, count, held)
    for owner in compress(memoryview(batch.owners).cast("q"), held):
        flags[owner] = 1
